import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.config.problems import ConfigError
from evalpipe.config.yaml_files import dotted, read_yaml, scalar


def _problems(folder: Path, data: bytes) -> str:
    path = folder / "shop.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path, "data/repos/shop.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "data/repos/shop.yaml: the file is empty; write `field: value` lines"),
        (b"# only a comment\n", "data/repos/shop.yaml: the file is empty; write `field: value` lines"),
        (b"\n- a\n", "data/repos/shop.yaml:2: a list stands at the top; write `field: value` lines"),
        (b"just text\n", "data/repos/shop.yaml:1: a single value stands at the top; write `field: value` lines"),
        (b"a:\n\tb: 1\n", "data/repos/shop.yaml:2: a tab in the indentation; use spaces"),
        (b"a: 1\nb: \xff\n", "data/repos/shop.yaml:2: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"a: 1\nb:\n  c: 1\n  c: 2\n", "data/repos/shop.yaml:4: b.c: is written twice (first in line 3); keep one"),
        (
            b"a: 1\n---\nb: 1\n",
            "data/repos/shop.yaml:2: a second document begins here; remove the `---` line and what follows",
        ),
        (
            b"a: &x [1]\nb: *x\n",
            "data/repos/shop.yaml:2: b: anchors and aliases are not supported; write the value out",
        ),
        (
            b"a: &x\n  b: *x\n",
            "data/repos/shop.yaml:2: a.b: anchors and aliases are not supported; write the value out",
        ),
        (b"a: !env HOME\n", "data/repos/shop.yaml:1: a: the tag !env is not supported; remove it"),
        (b"? [a]\n: 1\n", "data/repos/shop.yaml:1: a field's name must be plain text"),
        (b"[" * 1000, "data/repos/shop.yaml: is nested too deeply"),
    ],
)
def test_a_file_that_is_no_plain_mapping_is_refused(tmp_path: Path, data: bytes, text: str) -> None:
    assert _problems(tmp_path, data) == text


@pytest.mark.parametrize(
    "data", [b"a: [1\n", b"a: b: c\n", b"a: @x\n", b"a: *nowhere\n", b"a: \x01\n", b"a: 1\n b: 2\n"]
)
def test_broken_syntax_is_named_with_the_file(tmp_path: Path, data: bytes) -> None:
    text = _problems(tmp_path, data)
    assert text.startswith("data/repos/shop.yaml")
    assert "is not YAML" in text


def test_every_problem_of_a_file_is_collected(tmp_path: Path) -> None:
    assert len(_problems(tmp_path, b"a: 1\na: 2\nb: !x 1\nb: 3\n").splitlines()) == 3


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^x\.yaml: there is no such file$"):
        read_yaml(tmp_path / "x.yaml", "x.yaml")
    with pytest.raises(ConfigError, match=r"^d\.yaml: this is a folder; a YAML file belongs here$"):
        read_yaml(tmp_path, "d.yaml")


def test_values_keep_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "v.yaml"
    path.write_bytes(
        b"\xef\xbb\xbfno: no\nday: 2026-10-01\nsize: 2g\nversion: 1.10\ncount: 017\nhex: 0x1f\n"
        b"on: true\nempty:\nquoted: '1'\nratio: 1e3\nclock: 12:30\nlist: [a, {b: ~}]\n"
    )
    document = read_yaml(path, "v.yaml")
    assert document.value == {
        "no": "no",
        "day": "2026-10-01",
        "size": "2g",
        "version": 1.1,
        "count": 17,
        "hex": 31,
        "on": True,
        "empty": None,
        "quoted": "1",
        "ratio": 1000.0,
        "clock": "12:30",
        "list": ["a", {"b": None}],
    }
    assert document.texts["version",] == "1.10"
    assert document.line_of(("list", 1, "b")) == 12
    assert document.line_of(("list", 7, "x")) == 12
    assert document.line_of(("empty",)) == 8


def test_yaml_1_1_switches_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "v.yaml"
    path.write_text("%YAML 1.1\n---\na: no\n")
    assert read_yaml(path, "v.yaml").value == {"a": "no"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(string.printable, max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(string.ascii_letters, min_size=1, max_size=8), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_json_which_is_yaml_too_is_read_back(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.mktemp("yaml") / "v.yaml"
    path.write_text(json.dumps({"value": value}))
    assert read_yaml(path, "v.yaml").value == {"value": value}


@given(st.sampled_from(["int", "float", "bool", "null", "str", "timestamp"]), st.text(max_size=20))
def test_any_text_of_any_type_gives_a_value(kind: str, text: str) -> None:
    assert scalar(kind, text) is None or isinstance(scalar(kind, text), str | int | float)


def test_paths_are_shown_dotted() -> None:
    assert dotted(("comparisons", 0, 1)) == "comparisons[0][1]"
    assert dotted(("runner", "name")) == "runner.name"
    assert dotted(()) == ""
