"""A report that a run's script prints: found whole behind any output, and never taken for whole when it is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners.report_on_output import ReportOnOutput


def run(report: Path, command: str, way: ReportOnOutput | None = None) -> subprocess.CompletedProcess[bytes]:
    way = way or ReportOnOutput(str(report))
    return subprocess.run(
        ["/bin/sh", "-c", way.script, "sh", "/bin/sh", "-c", command], capture_output=True, check=False
    )


@pytest.mark.parametrize("content", [b"", b"\n", b"no line feed", bytes(range(256)) * 1000])
def test_what_the_command_wrote_comes_behind_what_it_printed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "content").write_bytes(content)
    report = tmp_path / "a 'report'"
    way = ReportOnOutput(str(report))
    done = run(report, f'echo printed; cp {tmp_path}/content "{report}"; printf tail; exit 3', way)
    assert done.returncode == 3
    assert way.found_in(done.stdout) == (content, b"printed\ntail")


@pytest.mark.parametrize(
    ("command", "status"), [("true", 0), ("kill -9 $$", 137), ("mkdir REPORT", 0), ("ln -s /etc/passwd REPORT", 0)]
)
def test_without_a_regular_file_there_is_no_report(tmp_path: Path, command: str, status: int) -> None:
    report = tmp_path / "report"
    way = ReportOnOutput(str(report))
    done = run(report, command.replace("REPORT", str(report)), way)
    assert (done.returncode, done.stdout) == (status, b"")
    assert way.found_in(done.stdout) is None


def test_a_long_report_is_left_to_be_read(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_bytes(bytes(256 * 1024 + 1))
    assert run(report, "true").stdout == b""


def printed(way: ReportOnOutput, tmp_path: Path, content: bytes) -> bytes:
    report = tmp_path / "report"
    report.write_bytes(content)
    script = way.script.replace(way._path, str(report))
    return subprocess.run(["/bin/sh", "-c", script, "sh", "true"], capture_output=True, check=True).stdout


def test_output_in_the_middle_of_a_report_and_a_lost_end_leave_no_report(tmp_path: Path) -> None:
    way = ReportOnOutput("/report")
    whole = printed(way, tmp_path, b"one\ntwo\n")
    assert way.found_in(whole) == (b"one\ntwo\n", b"")
    for place in range(1, len(whole)):
        for torn in (whole[:place] + b"x" + whole[place:], whole[:place], whole[place:]):
            found = way.found_in(torn)
            assert found is None or found.report == b"one\ntwo\n"


@given(before=st.binary(), after=st.binary(), other=st.binary())
def test_only_the_last_that_was_printed_counts(before: bytes, after: bytes, other: bytes) -> None:
    way = ReportOnOutput("/report")
    token = way._token.encode()
    framed = b"\n%s %d\n" % (token, len(other)) + other + token + b"\n"
    assert way.found_in(before + framed + after) == (other, before + after)
    assert way.found_in(before) is None
    assert way.found_in(before + b"\n" + token + b" x\n" + other) is None
