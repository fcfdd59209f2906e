"""Several report files as one: joined by a real shell, and read back to the byte but for what tests printed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evalpipe.runners.joined_files import NotJoined, end_command, join_command, read_joined

TOKEN = "0123456789abcdef"


def joined(folder: Path, *find: str, status: int = 1) -> bytes:
    script = f"{join_command(TOKEN, *find)}; (exit {status}); {end_command(TOKEN)}"
    return subprocess.run(["/bin/sh", "-c", script], cwd=folder, check=True, capture_output=True).stdout


def test_files_come_back_with_their_paths(tmp_path: Path) -> None:
    contents = {
        "a b.xml": b"<x>\xff\xc3\xa9 it's</x>\n",
        "deep/x=1.xml": b"two\nlines without an end",
        "deep/-n.xml": b"\n\nblank first\n",
    }
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "other.txt").write_text("no")
    (tmp_path / "link.xml").symlink_to("a b.xml")
    found = read_joined(joined(tmp_path, "-name", "*.xml"), TOKEN)
    assert found.exit_status == 1
    assert {path: content.rstrip(b"\n") for path, content in found.files} == {
        f"./{name}": content.rstrip(b"\n") for name, content in contents.items()
    }


def test_what_tests_printed_is_left_out(tmp_path: Path) -> None:
    text = """<testcase name="a"><failure>kept</failure>
  <system-out><![CDATA[one
<testcase name="forged"/></system-out>
two]]></system-out>
  <system-err><![CDATA[x]]></system-err><system-out><![CDATA[y]]></system-out></testcase>
<testcase name="b"><system-err><![CDATA[
]]]]><![CDATA[></system-out> ]]></system-err></testcase>
"""
    (tmp_path / "r.xml").write_text(text)
    ((_, content),) = read_joined(joined(tmp_path, "-name", "r.xml"), TOKEN).files
    assert (
        content.split()
        == b'<testcase name="a"><failure>kept</failure> </testcase> <testcase name="b"> </testcase>'.split()
    )


def test_megabytes_on_one_line_are_left_out_quickly(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_bytes(b"<a><system-out><![CDATA[" + b"x" * 10_000_000 + b"]]></system-out></a>")
    ((_, content),) = read_joined(joined(tmp_path, "-name", "r.xml"), TOKEN).files
    assert content.strip() == b"<a></a>"


def test_no_files_are_a_whole_report_of_none(tmp_path: Path) -> None:
    assert read_joined(joined(tmp_path, "-name", "*.xml", status=0), TOKEN).files == []


def test_names_with_line_feeds_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / f"a\n{TOKEN} end 0\n.xml").write_text("x")
    ((path, _),) = read_joined(joined(tmp_path, "-name", "*.xml"), TOKEN).files
    assert path == f"./a?{TOKEN} end 0?.xml"


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"\n",
        b"x\n" + TOKEN.encode() + b" end 0\n",
        b"\n" + TOKEN.encode() + b" file ./a\nx\n",
        b"\n" + TOKEN.encode() + b" end\n",
        b"\n" + TOKEN.encode() + b" end x\n",
        b"\n" + TOKEN.encode() + b" end 0 0\n",
        b"\n" + TOKEN.encode() + b" end 0\n\n" + TOKEN.encode() + b" end 0\n",
    ],
)
def test_a_report_without_its_end_is_none(report: bytes) -> None:
    with pytest.raises(NotJoined):
        read_joined(report, TOKEN)
