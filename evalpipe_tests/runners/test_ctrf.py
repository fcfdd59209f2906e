"""CTRF: what a test is called and how it ended, in the older form and the newer, and that anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import TestOutcome
from evalpipe.runners.ctrf import CtrfTest, DamagedCtrf, read_ctrf


def document(*tests: dict[str, Any]) -> bytes:
    return json.dumps({"reportFormat": "CTRF", "results": {"tool": {"name": "x"}, "tests": tests}}).encode()


def one(**fields: Any) -> CtrfTest:
    (test,) = read_ctrf(document({"name": "t", "status": "passed", "duration": 1500, **fields}))
    return test


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({}, TestOutcome.PASSED),
        ({"status": "failed"}, TestOutcome.FAILED),
        ({"status": "skipped"}, TestOutcome.SKIPPED),
        ({"status": "pending"}, TestOutcome.SKIPPED),
        ({"status": "other"}, TestOutcome.ERROR),
        ({"flaky": True}, TestOutcome.FAILED),
        ({"retries": 1}, TestOutcome.FAILED),
        ({"retryAttempts": [{"attempt": 1, "status": "failed"}]}, TestOutcome.FAILED),
        ({"retryAttempts": []}, TestOutcome.PASSED),
        ({"steps": [{"name": "one", "status": "passed"}, {"name": "two", "status": "failed"}]}, TestOutcome.FAILED),
        ({"steps": [{"name": "one", "status": "other"}]}, TestOutcome.FAILED),
        ({"steps": [{"name": "one", "status": "skipped"}, "two", {}]}, TestOutcome.PASSED),
        ({"flaky": False, "retries": 0}, TestOutcome.PASSED),
        ({"status": "failed", "retries": 2}, TestOutcome.FAILED),
    ],
)
def test_only_what_passed_at_once_has_passed(fields: dict[str, Any], outcome: TestOutcome) -> None:
    assert one(**fields).outcome is outcome


def test_names_stand_as_they_are_and_groups_come_as_a_list_or_as_one_text() -> None:
    name = ' x[ "a" ] it\'s [\n'
    assert one(name=name, suite=["a > b", ""], filePath="src/a b.ts") == CtrfTest(
        "src/a b.ts", ("a > b", ""), name, TestOutcome.PASSED, 1.5
    )
    assert one(suite="a > b").suites == ("a > b",)
    assert one(name="\ud800").name == r"\ud800"


def test_the_message_and_the_trace_are_both_told() -> None:
    assert one(status="failed", message="here is why", trace="at line 3").message == "here is why\nat line 3"
    assert len(one(status="failed", message="x" * 10**6).message) < 5000


@pytest.mark.parametrize("duration", [None, "1", True, -5, float("nan"), float("inf"), 10**400, []])
def test_a_duration_that_is_none_is_no_reason_to_refuse(duration: object) -> None:
    assert one(duration=duration).seconds == 0


def test_a_report_of_no_tests_is_one() -> None:
    assert read_ctrf(document()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"results": []}',
        b'{"results": {"tests": {}}}',
        b'{"results": {"tests": [3]}}',
        document({"name": "t"}),
        document({"status": "passed"}),
        document({"name": 3, "status": "passed"}),
        document({"name": "t", "status": "excellent"}),
        document({"name": "t", "status": ["passed"]}),
        document({"name": "t", "status": "passed", "suite": 3}),
        document({"name": "t", "status": "passed", "suite": [3]}),
        document({"name": "t", "status": "passed", "filePath": {}}),
        document({"name": "t", "status": "passed"})[:-1],
    ],
)
def test_what_is_no_such_report_is_refused(content: bytes) -> None:
    with pytest.raises(DamagedCtrf):
        read_ctrf(content)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
TESTS = st.fixed_dictionaries(
    {"name": st.text(max_size=5) | JSON, "status": st.sampled_from(["passed", "failed", "other"]) | JSON},
    optional={
        name: JSON | st.text(max_size=5) | st.lists(st.text(max_size=3))
        for name in ("suite", "filePath", "message", "trace", "duration", "flaky", "retries")
    },
)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()) | st.lists(TESTS).map(lambda t: document(*t)))
@pytest.mark.slow
def test_any_content_is_read_or_refused(content: bytes) -> None:
    try:
        tests = read_ctrf(content)
    except DamagedCtrf as error:
        str(error).encode()
    else:
        for test in tests:
            "".join((test.file, *test.suites, test.name, test.message)).encode()
            assert test.seconds >= 0
