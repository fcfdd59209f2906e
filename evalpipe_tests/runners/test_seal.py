import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalpipe.runners
from evalpipe.runners.seal import BrokenSeal, new_key, open_sealed
from evalpipe_tests.runners.seals import sealed

RECORDS = [b'{"a": 1}', b"", b'{"b": " 2"}', b"\xff"]
KEY = new_key()


def _program() -> Any:
    path = Path(evalpipe.runners.__file__).parent / "inside" / "evalpipe_seal.py"
    spec = importlib.util.spec_from_file_location("evalpipe_seal", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("evalpipe_seal", module)
    spec.loader.exec_module(module)
    return module


def test_what_the_program_writes_is_what_is_read(tmp_path: Path) -> None:
    report = _program().SealedReport(str(tmp_path / "report"), KEY)
    records = [{"id": "a\n b", "n": 1}, {"id": "é\ud800"}, {}]
    for record in records:
        report.write(record)
    written = (tmp_path / "report").read_bytes()
    assert [json.loads(record) for record in open_sealed(written, KEY)] == records
    assert written == sealed(b"".join(json.dumps(record).encode() + b"\n" for record in records), KEY)


def test_the_settings_are_gone_once_they_are_taken(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"key": "0"}')
    assert _program().take_settings(str(tmp_path)) == {"key": "0"}
    assert not settings.exists()


def test_a_whole_report_opens_and_its_end_may_be_missing() -> None:
    report = sealed(b"\n".join(RECORDS), KEY)
    assert open_sealed(report, KEY) == RECORDS
    assert open_sealed(report[:-1], KEY) == RECORDS[:-1]
    assert open_sealed(b"", KEY) == []
    assert open_sealed(b"cut", KEY) == []


def test_keys_are_long_and_of_one_run_only() -> None:
    assert len({new_key() for _ in range(100)}) == 100
    assert len(bytes.fromhex(KEY)) == 32


def _without(report: bytes, number: int) -> bytes:
    lines = report.splitlines(keepends=True)
    return b"".join(lines[:number] + lines[number + 1 :])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_line_that_is_missing_twice_there_or_elsewhere_breaks_the_seal(number: int) -> None:
    report = sealed(b"\n".join(RECORDS), KEY)
    lines = report.splitlines(keepends=True)
    for damaged in (_without(report, number), report + lines[number], b"".join(reversed(lines))):
        with pytest.raises(BrokenSeal, match="not written by the test runner"):
            open_sealed(damaged, KEY)


@given(st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_other_bytes_anywhere_leave_at_most_the_records_before_them(place: int, other: bytes) -> None:
    report = sealed(b"\n".join(RECORDS), KEY)
    damaged = report[:place] + other + report[place + len(other) :]
    try:
        opened = open_sealed(damaged, KEY)
    except BrokenSeal:
        assert damaged != report
        return
    assert opened == RECORDS[: len(opened)]
    assert damaged == report or len(opened) < len(RECORDS)


@given(st.binary())
def test_bytes_without_the_key_never_open_as_a_record(data: bytes) -> None:
    try:
        assert open_sealed(data, KEY) == []
    except BrokenSeal:
        assert b"\n" in data
