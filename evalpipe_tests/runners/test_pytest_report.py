"""Reading a report: the worst phase decides, only a whole report counts, and no content makes it raise."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import PytestRunner, RunStatus, SuiteReport, SuiteRequest, TestOutcome
from evalpipe.runners.pytest_report import read_report
from evalpipe.runners.report import storable_text
from evalpipe_tests.runners.seals import sealed

NAME, KEY = "test_ofnothing", "ab" * 32
CANARY = f"tests/test_a.py::{NAME}"
Record = dict[str, Any]


def phase(test_id: str, when: str = "call", outcome: str = "passed", **more: Any) -> Record:
    usual = {"xfail": False, "subtest": False, "seconds": 0.5, "message": ""}
    return {"kind": "phase", "id": test_id, "when": when, "outcome": outcome, **usual, **more}


def ran(test_id: str, *, call: str = "passed", teardown: str = "passed", **more: Any) -> list[Record]:
    """The three phases of a test; `more` belongs to its call."""
    return [
        phase(test_id, "setup"),
        phase(test_id, "call", call, **more),
        phase(test_id, "teardown", teardown),
    ]


END = [*ran(CANARY, call="failed"), {"kind": "end", "exit_status": 1}]


def lines(*records: Record) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def read(*records: Record, end: bool = True) -> SuiteReport:
    return read_report(sealed(lines(*records, *(END if end else [])), KEY), NAME, KEY)


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        (ran("t"), TestOutcome.PASSED),
        (ran("t", call="failed"), TestOutcome.FAILED),
        (ran("t", teardown="failed"), TestOutcome.ERROR),
        (ran("t", call="failed", teardown="failed"), TestOutcome.FAILED),
        ([phase("t", "setup", "failed"), phase("t", "teardown")], TestOutcome.ERROR),
        ([phase("t", "setup", "skipped"), phase("t", "teardown")], TestOutcome.SKIPPED),
        (ran("t", call="skipped"), TestOutcome.SKIPPED),
        (ran("t", call="skipped", teardown="failed"), TestOutcome.ERROR),
        (ran("t", call="skipped", xfail=True), TestOutcome.XFAILED),
        (ran("t", xfail=True), TestOutcome.XPASSED),
        # A strict xpass arrives as a failure.
        (ran("t", call="failed", message="[XPASS(strict)]"), TestOutcome.FAILED),
        # pytest-subtests lets the test itself pass beside a sub-test that failed.
        ([phase("t", "call", "failed", subtest=True), *ran("t")], TestOutcome.FAILED),
        ([phase("t", "call", "passed", subtest=True), *ran("t")], TestOutcome.PASSED),
        ([phase("t", "call", "skipped", subtest=True), *ran("t")], TestOutcome.PASSED),
        ([phase("t", "call", "skipped", subtest=True, xfail=True), *ran("t")], TestOutcome.XFAILED),
        ([phase("t", "setup"), phase("t", "call", "passed", subtest=True)], TestOutcome.ERROR),
        ([phase("t", "setup"), phase("t", "teardown")], TestOutcome.ERROR),
        # pytest-rerunfailures: it failed once, whatever came after.
        ([*ran("t", call="rerun"), *ran("t")], TestOutcome.FAILED),
        (ran("t", call="surprise"), TestOutcome.FAILED),
        ([phase("t", "setup", "rerun"), *ran("t")], TestOutcome.ERROR),
        ([phase("t", "earlier", "failed"), *ran("t")], TestOutcome.ERROR),
    ],
)
def test_the_worst_phase_decides(phases: list[Record], expected: TestOutcome) -> None:
    for order in (phases, phases[::-1]):
        report = read(*order)
        assert report.status is RunStatus.COMPLETED
        assert report.tests["t"].outcome is expected


def test_seconds_are_summed_and_the_message_is_that_of_the_failure() -> None:
    failed = [phase("t", "setup"), phase("t", "call", "failed", message="why"), phase("t", "teardown", seconds=1.5)]
    result = read(*failed).tests["t"]
    assert (result.seconds, result.message) == (2.5, "why")


def test_a_clock_that_a_test_set_back_makes_no_negative_time() -> None:
    assert read(*ran("t", seconds=-1e9)).tests["t"].seconds == 0


def test_the_canary_is_not_among_the_tests() -> None:
    report = read(*ran("t"))
    assert list(report.tests) == ["t"]
    assert report.canary_failed


@pytest.mark.parametrize(
    ("call", "xfail"), [("passed", False), ("skipped", False), ("skipped", True), ("passed", True)]
)
def test_a_canary_that_did_not_fail_is_told(call: str, xfail: bool) -> None:
    end = {"kind": "end", "exit_status": 0}
    report = read(*ran("t"), *ran(CANARY, call=call, xfail=xfail), end, end=False)
    assert report.status is RunStatus.COMPLETED
    assert not report.canary_failed


def test_a_run_that_stopped_before_its_last_test_is_no_report() -> None:
    report = read(*ran("t"), {"kind": "end", "exit_status": 2}, end=False)
    assert report.status is RunStatus.NO_REPORT
    assert report.detail.startswith("the last test, which must fail, could not run (exit status 2)")
    assert not report.tests


def test_a_run_in_which_the_last_test_could_not_even_begin_is_no_report() -> None:
    broken = phase(CANARY, "setup", "failed", message="long trace\nValueError: I/O on closed file")
    report = read(*ran("t"), broken, {"kind": "end", "exit_status": 1}, end=False)
    assert report.status is RunStatus.NO_REPORT
    assert report.detail.endswith("ValueError: I/O on closed file")


@pytest.mark.parametrize("report", [None, b""])
def test_nothing_is_no_report(report: bytes | None) -> None:
    assert read_report(report, NAME, KEY).status is RunStatus.NO_REPORT


def test_without_its_last_record_it_is_no_report() -> None:
    report = read(*ran("t"), *END[:-1], end=False)
    assert report.status is RunStatus.NO_REPORT
    assert report.detail == "the test run ended before its report was complete"
    assert not report.tests


@pytest.mark.parametrize("exit_status", [3, 4])
def test_an_internal_or_usage_error_is_no_report(exit_status: int) -> None:
    uncollected = {"kind": "uncollected", "id": "t.py", "message": "SyntaxError"}
    report = read(uncollected, *END[:-1], {"kind": "end", "exit_status": exit_status}, end=False)
    assert report.status is RunStatus.NO_REPORT
    assert report.uncollected == {"t.py": "SyntaxError"}


def test_a_report_cut_anywhere_is_none() -> None:
    whole = sealed(lines(*ran("t"), *END), KEY)
    for length in range(len(whole)):
        report = read_report(whole[:length], NAME, KEY)
        assert report.status is RunStatus.NO_REPORT
        assert not report.tests
    assert read_report(whole, NAME, KEY).status is RunStatus.COMPLETED


def test_a_line_that_the_program_did_not_write_damages_the_report() -> None:
    whole = sealed(lines(*ran("t", call="failed"), *END), KEY)
    forged = sealed(lines(*ran("t")), "cd" * 32)
    for report in (forged + whole, whole + forged, lines(*ran("t")) + whole, whole.replace(b"failed", b"passed", 1)):
        found = read_report(report, NAME, KEY)
        assert found.status is RunStatus.DAMAGED_REPORT
        assert "not written by the test runner" in found.detail


def test_ids_of_more_than_one_test_are_duplicates_and_keep_the_worst() -> None:
    collected = {"kind": "collected", "ids": ["a", "b", "a", CANARY]}
    report = read(collected, *ran("a"), *ran("b"), *ran("a", call="failed"))
    assert report.duplicates == {"a"}
    assert report.tests["a"].outcome is TestOutcome.FAILED
    assert report.tests["b"].outcome is TestOutcome.PASSED


def test_a_test_that_ran_twice_is_a_duplicate_even_if_it_was_collected_once() -> None:
    assert read({"kind": "collected", "ids": ["a"]}, *ran("a"), *ran("a")).duplicates == {"a"}


def test_sub_tests_are_no_duplicates() -> None:
    sub_tests = [phase("a", "call", subtest=True)] * 5
    assert read({"kind": "collected", "ids": ["a"]}, *sub_tests, *ran("a")).duplicates == frozenset()


def test_a_test_that_was_collected_and_never_ran_is_missing() -> None:
    assert "a" not in read({"kind": "collected", "ids": ["a", CANARY]}).tests


IDS = [
    "t.py::t[a b]",
    "t.py::t[a c]",
    'x[ "a" ]',
    "x[it's]",
    " x ",
    "x\n",
    "x\t\x1b[31m",
    "é",
    "a::b::c[::]",
    "",
    "\x00",
    "日本",
]


def test_ids_are_kept_to_the_character() -> None:
    report = read(*(record for test_id in IDS for record in ran(test_id)))
    assert list(report.tests) == IDS
    assert [result.test_id for result in report.tests.values()] == IDS


def test_lone_surrogates_become_escapes_wherever_they_stand() -> None:
    report = read(
        {"kind": "uncollected", "id": "\ud800.py", "message": "\udcff"},
        *ran("t_\udcff.py::t", call="failed", message="not \udfff"),
    )
    assert report.tests[r"t_\xff.py::t"].message == r"not \udfff"
    assert report.uncollected == {r"\ud800.py": r"\xff"}


def test_two_ids_that_become_one_are_duplicates() -> None:
    collected = {"kind": "collected", "ids": ["\udcff", r"\xff"]}
    assert read(collected, *ran("\udcff"), *ran(r"\xff")).duplicates == {r"\xff"}


@given(st.binary())
def test_a_path_that_is_not_utf8_reads_as_its_bytes_escaped(path: bytes) -> None:
    assert storable_text(path.decode("utf-8", "surrogateescape")) == path.decode("utf-8", "backslashreplace")


@given(st.text(st.characters()))
def test_storable_text_can_be_stored_and_is_stable(text: str) -> None:
    stored = storable_text(text)
    stored.encode()
    assert storable_text(stored) == stored
    if not any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        assert stored == text


FAULTS = [
    b"not JSON",
    b"[]",
    b"3",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"9" * 10_000,
    lines({"kind": "surprise"}),
    lines({"no": "kind"}),
    lines({"kind": ["phase"]}),
    lines({"kind": "phase", "id": "t"}),
    lines(phase("t", seconds="0.5")),
    lines(phase("t", seconds=None)),
    lines(phase("t", seconds=float("inf"))),
    lines(phase("t", seconds=float("nan"))),
    lines(phase("t", seconds=10**400)),
    lines(phase("t", xfail="no")),
    lines(phase("t", subtest=0)),
    lines(phase("t") | {"outcome": None}),
    lines(phase("t") | {"id": 7}),
    lines(phase("t") | {"message": ["x"]}),
    lines({"kind": "collected", "ids": None}),
    lines({"kind": "collected", "ids": [1]}),
    lines({"kind": "uncollected", "id": "x", "message": None}),
    lines({"kind": "end", "exit_status": "0"}),
    lines({"kind": "end", "exit_status": None}),
    lines(*END),  # a second end
]


@pytest.mark.parametrize("fault", FAULTS, ids=range(len(FAULTS)))
def test_one_bad_line_damages_the_report(fault: bytes) -> None:
    for report in (fault.strip() + b"\n" + lines(*ran("t"), *END), lines(*ran("t"), *END) + fault):
        found = read_report(sealed(report, KEY), NAME, KEY)
        assert found.status is RunStatus.DAMAGED_REPORT
        assert found.detail.startswith("the report cannot be read: ")
        assert len(found.detail) < 1000
        assert not found.tests


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.fixed_dictionaries(
    {"kind": st.sampled_from(["phase", "collected", "uncollected", "end", "other"])},
    optional={
        "id": st.text(max_size=5) | JSON,
        "ids": st.lists(st.text(max_size=5)) | JSON,
        "when": st.sampled_from(["setup", "call", "teardown"]) | JSON,
        "outcome": st.sampled_from(["passed", "failed", "skipped", "rerun"]) | JSON,
        "xfail": st.booleans() | JSON,
        "subtest": st.booleans() | JSON,
        "seconds": st.floats() | JSON,
        "message": st.text(max_size=5) | JSON,
        "exit_status": st.integers(0, 5) | JSON,
    },
)


@given(st.binary() | st.lists(RECORDS, max_size=6).map(lambda records: lines(*records)))
@pytest.mark.slow
def test_no_content_makes_the_reader_raise(content: bytes) -> None:
    for report in (content, lines(*ran("t")) + content, content + lines(*END)):
        assert read_report(report, NAME, KEY).status in set(RunStatus)


PHASES = st.builds(
    phase,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["setup", "call", "teardown"]),
    st.sampled_from(["passed", "failed", "skipped", "rerun"]),
    xfail=st.booleans(),
    subtest=st.booleans(),
)


@given(st.lists(PHASES, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_records_decides_no_outcome(records: list[Record], order: random.Random) -> None:
    turned = order.sample(records, len(records))
    one, other = read(*records), read(*turned)
    assert {test: result.outcome for test, result in one.tests.items()} == {
        test: result.outcome for test, result in other.tests.items()
    }
    assert one.duplicates == other.duplicates


@given(st.lists(PHASES, max_size=12))
def test_a_passed_test_has_a_call_that_passed_and_nothing_that_failed(records: list[Record]) -> None:
    for test_id, result in read(*records).tests.items():
        mine = [record for record in records if record["id"] == test_id]
        if result.outcome is TestOutcome.PASSED:
            assert any(r["when"] == "call" and r["outcome"] == "passed" and not r["subtest"] for r in mine)
            assert all(r["outcome"] in ("passed", "skipped") and not r["xfail"] for r in mine)


@given(st.lists(PHASES, max_size=8), PHASES.filter(lambda record: record["outcome"] == "failed"))
def test_one_more_failed_phase_never_makes_a_pass(records: list[Record], failed: Record) -> None:
    assert read(*records, failed).tests[failed["id"]].outcome in (TestOutcome.FAILED, TestOutcome.ERROR)


def test_two_plans_share_neither_canary_nor_report() -> None:
    one, other = PytestRunner().plan("/box", {}), PytestRunner().plan("/box", {})
    assert one.canary != other.canary
    assert one.report_path != other.report_path


def test_arguments_and_files_end_the_command() -> None:
    plan = PytestRunner(python="python3.12", arguments=("-m", "not slow")).plan(
        "/box", {}, SuiteRequest(test_files=(b"tests/test_a.py",))
    )
    assert plan.command[0] == "python3.12"
    # Files below one folder would move pytest's root there, and with it every id.
    assert plan.command[-4:] == ("-m", "not slow", "--rootdir=.", "tests/test_a.py")
    assert all(path.startswith(b"runner/") for path in plan.files)


@pytest.mark.parametrize(("missing", "status"), [(True, RunStatus.BUILD_FAILED), (False, RunStatus.NO_REPORT)])
def test_a_conftest_that_ends_pytest_is_a_build_that_failed_when_it_misses_something(
    missing: bool, status: RunStatus
) -> None:
    conftest = {"kind": "conftest", "id": "tests/conftest.py", "message": "ImportError: x", "missing": missing}
    found = read(conftest, {"kind": "end", "exit_status": 4}, end=False)
    assert found.status is status
    assert found.uncollected == {"tests/conftest.py": "ImportError: x"}
    assert found.tests == {}


def test_a_conftest_that_failed_does_not_explain_another_end() -> None:
    conftest = {"kind": "conftest", "id": "conftest.py", "message": "ImportError: x", "missing": True}
    assert read(conftest, {"kind": "end", "exit_status": 1}, end=False).status is RunStatus.NO_REPORT
