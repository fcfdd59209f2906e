"""Reading the JSON lines of evalpipe's own programs: ids that cannot be confused, and nothing makes it raise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import RunStatus, SuiteReport, TestOutcome
from evalpipe.runners.json_lines import joined_id, read_json_lines
from evalpipe.runners.seal import new_key
from evalpipe_tests.runners.seals import sealed

CANARY, KEY = "test_1", new_key()
Record = dict[str, Any]


def ran(test_id: str | list[str], outcome: str = "passed", **more: Any) -> Record:
    return {"kind": "test", "id": test_id, "outcome": outcome, "seconds": 0.5, "message": "", **more}


def fault(test_id: str | list[str], outcome: str = "error", message: str = "its hook failed") -> Record:
    return {"kind": "fault", "id": test_id, "outcome": outcome, "message": message}


END = [ran(["a.test.js", CANARY], "failed"), {"kind": "end"}]


def lines(*records: Record) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def read(*records: Record, end: bool = True) -> SuiteReport:
    return read_json_lines(sealed(lines(*records, *(END if end else [])), KEY), CANARY, KEY)


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (["a.js", "b", "c"], "a.js::b::c"),
        (["a.js", " b [c] 'd' \"e\" ", "f\ng\t"], "a.js:: b [c] 'd' \"e\" ::f\ng\t"),
        (["a.js", "b: c", "http://d", r"e\f"], r"a.js::b: c::http://d::e\f"),
        (["a.js", "b::c"], r"a.js::b\:\:c"),
        (["a.js", ":b", "c:"], r"a.js::\:b::c\:"),
        (["a.js", r"b\:c"], r"a.js::b\\\:c"),
        (["a.js", "", ""], "a.js::::"),
        (["a.js"], "a.js"),
    ],
)
def test_titles_stand_as_they_are_unless_the_separator_could_be_read_into_them(parts: list[str], joined: str) -> None:
    assert joined_id(parts) == joined


TITLES = st.lists(st.text(st.sampled_from("a:\\ "), max_size=5), min_size=1, max_size=4)


@given(TITLES, TITLES)
def test_other_titles_are_another_id(one: list[str], other: list[str]) -> None:
    assert (joined_id(one) == joined_id(other)) == (one == other)


def test_the_worst_decides_and_only_a_second_run_is_a_duplicate() -> None:
    report = read(
        ran(["a", "1"]), fault(["a", "1"]), ran(["a", "2"]), ran(["a", "2"], "failed"), fault(["a", "3"]), ran("a::4")
    )
    found = {test_id: result.outcome.value for test_id, result in report.tests.items()}
    assert found == {"a::1": "error", "a::2": "failed", "a::3": "error", "a::4": "passed"}
    assert report.tests["a::1"].message == "its hook failed"
    assert report.duplicates == {"a::2"}
    assert report.canary_failed


def test_two_ids_that_become_one_are_duplicates() -> None:
    assert read(ran("\udcff"), ran(r"\xff")).duplicates == {r"\xff"}


@pytest.mark.parametrize("outcome", ["passed", "skipped", "xfailed", "xpassed"])
def test_one_canary_that_did_not_fail_is_told(outcome: str) -> None:
    report = read(ran("t"), ran(["other.js", "deep", CANARY], outcome))
    assert report.status is RunStatus.COMPLETED
    assert list(report.tests) == ["t"]
    assert not report.canary_failed


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([], "its arguments leave it out"),
        ([fault(CANARY, message="closed")], "closed"),
        ([{"kind": "uncollected", "file": f"x/{CANARY}.js", "message": "SyntaxError"}], "SyntaxError"),
    ],
)
def test_a_run_without_its_canary_is_no_report(records: list[Record], reason: str) -> None:
    report = read(ran("t"), *records, {"kind": "end"}, end=False)
    assert report.status is RunStatus.NO_REPORT
    assert report.detail.startswith("the test that must fail did not run: ")
    assert reason in report.detail
    assert not report.tests
    assert not report.uncollected


def test_where_not_even_the_file_of_the_canary_loads_nothing_builds() -> None:
    files = ("a.test.js", f"src/{CANARY}.test.js")
    report = read(
        *({"kind": "uncollected", "file": file, "message": "broken setup"} for file in files), END[-1], end=False
    )
    assert report.status is RunStatus.BUILD_FAILED
    assert report.uncollected == {"a.test.js": "broken setup"}
    assert report.detail == "the test that must fail did not run: broken setup"


def test_files_that_were_not_collected_keep_all_their_messages() -> None:
    report = read(*({"kind": "uncollected", "file": "a.js", "message": text} for text in ("one", "two")))
    assert report.uncollected == {"a.js": "one\ntwo"}


@pytest.mark.parametrize("report", [None, b""])
def test_nothing_is_no_report(report: bytes | None) -> None:
    assert read_json_lines(report, CANARY, KEY).status is RunStatus.NO_REPORT


def test_a_report_cut_anywhere_is_none_or_damaged() -> None:
    whole = sealed(lines(ran("t"), *END), KEY)
    for length in range(len(whole)):
        report = read_json_lines(whole[:length], CANARY, KEY)
        assert report.status in (RunStatus.NO_REPORT, RunStatus.DAMAGED_REPORT)
        assert not report.tests


def test_a_line_without_a_seal_damages_the_report() -> None:
    whole = sealed(lines(ran("t"), *END), KEY)
    for forged in (lines(ran("t")) + whole, whole + lines(ran("t")), whole.replace(b'"passed"', b'"failed"')):
        assert read_json_lines(forged, CANARY, KEY).status is RunStatus.DAMAGED_REPORT


FAULTS: list[Record] = [
    {"kind": "surprise"},
    {"no": "kind"},
    {"kind": "test", "id": "t"},
    {"kind": "end"},
    ran("t", seconds=None),
    ran("t", seconds=True),
    ran("t", seconds=float("inf")),
    ran("t", seconds=10**400),
    ran("t", outcome="excellent"),
    ran("t", message=3),
    ran([]),
    ran([1]),  # type: ignore[list-item]
    fault("t") | {"id": {}},
    {"kind": "uncollected", "file": None, "message": ""},
]


@pytest.mark.parametrize("record", FAULTS, ids=range(len(FAULTS)))
def test_one_bad_record_damages_the_report(record: Record) -> None:
    report = read(ran("t"), record, *END, *([record] if record == {"kind": "end"} else []), end=False)
    assert report.status is RunStatus.DAMAGED_REPORT
    assert not report.tests


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.fixed_dictionaries(
    {"kind": st.sampled_from(["test", "fault", "uncollected", "end", "other"])},
    optional={
        "id": st.text(max_size=5) | st.lists(st.text(max_size=3)) | JSON,
        "file": st.text(max_size=5) | JSON,
        "outcome": st.sampled_from(list(map(str, TestOutcome))) | JSON,
        "seconds": st.floats() | JSON,
        "message": st.text(max_size=5) | JSON,
    },
)


@given(st.binary() | st.lists(RECORDS, max_size=6).map(lambda records: lines(*records)))
def test_no_content_makes_the_reader_raise(content: bytes) -> None:
    for report in (content, sealed(content, KEY), sealed(lines(ran("t")) + content, KEY), sealed(content, KEY)[:-1]):
        assert read_json_lines(report, CANARY, KEY).status in set(RunStatus)
