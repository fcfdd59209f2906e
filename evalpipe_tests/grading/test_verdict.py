"""The verdict as a pure function: what gives `resolved`, and which reason comes first when nothing does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.grading import ExpectedIn, UnmetTest, Verdict, judge_report
from evalpipe.grading.verdict import MESSAGE_CHARACTERS, UNMET_TESTS
from evalpipe.runners import RunStatus, SuiteReport, TestOutcome, TestResult

FAIL_TO_PASS = ("tests/test_a.py::test_new",)
PASS_TO_PASS = ("tests/test_a.py::test_old", "tests/test_b.py::test_other")
NOT_PASSED = [outcome for outcome in TestOutcome if outcome is not TestOutcome.PASSED]


def _report(outcomes: dict[str, TestOutcome], **fields: object) -> SuiteReport:
    tests = {test_id: TestResult(test_id, outcome, 0.1, "why") for test_id, outcome in outcomes.items()}
    return replace(SuiteReport(RunStatus.COMPLETED, tests=tests, canary_failed=True), **fields)  # type: ignore[arg-type]


ALL_PASSED = _report(dict.fromkeys((*FAIL_TO_PASS, *PASS_TO_PASS), TestOutcome.PASSED))


def test_every_expected_test_passed_is_resolved() -> None:
    judgement = judge_report(FAIL_TO_PASS, PASS_TO_PASS, ALL_PASSED)
    assert judgement.resolved
    assert (judgement.fail_to_pass_passed, judgement.pass_to_pass_passed) == (1, 2)
    assert judgement.unmet_tests == ()


def test_nothing_to_keep_passing_may_be_resolved() -> None:
    assert judge_report(FAIL_TO_PASS, (), ALL_PASSED).resolved


def test_empty_fail_to_pass_list_is_no_task() -> None:
    with pytest.raises(ValueError, match="fail-to-pass"):
        judge_report((), PASS_TO_PASS, ALL_PASSED)


@pytest.mark.parametrize("outcome", [*NOT_PASSED, None], ids=lambda outcome: str(outcome or "missing"))
@pytest.mark.parametrize(
    ("test_id", "verdict"),
    [(FAIL_TO_PASS[0], Verdict.FAIL_TO_PASS_FAILED), (PASS_TO_PASS[1], Verdict.PASS_TO_PASS_BROKEN)],
)
def test_only_passed_is_passed(test_id: str, verdict: Verdict, outcome: TestOutcome | None) -> None:
    tests = dict(ALL_PASSED.tests)
    if outcome is None:
        del tests[test_id]
    else:
        tests[test_id] = TestResult(test_id, outcome, 0.0, "why")
    judgement = judge_report(FAIL_TO_PASS, PASS_TO_PASS, replace(ALL_PASSED, tests=tests))
    assert judgement.verdict is verdict
    (unmet,) = judgement.unmet_tests
    assert (unmet.test_id, unmet.outcome) == (test_id, str(outcome or "missing"))
    assert unmet.message == ("why" if outcome else "")


def test_test_that_ran_twice_has_not_passed() -> None:
    doubled = replace(ALL_PASSED, duplicates=frozenset(FAIL_TO_PASS))
    judgement = judge_report(FAIL_TO_PASS, PASS_TO_PASS, doubled)
    assert judgement.verdict is Verdict.FAIL_TO_PASS_FAILED
    assert judgement.unmet_tests[0].outcome == "duplicate"


def test_missing_test_shows_why_its_file_was_not_collected() -> None:
    report = _report({}, uncollected={"tests/test_a.py": "ImportError: clock"})
    unmet = judge_report(FAIL_TO_PASS, PASS_TO_PASS, report).unmet_tests
    assert unmet == (
        UnmetTest(FAIL_TO_PASS[0], ExpectedIn.FAIL_TO_PASS, "missing", "ImportError: clock"),
        UnmetTest(PASS_TO_PASS[0], ExpectedIn.PASS_TO_PASS, "missing", "ImportError: clock"),
        UnmetTest(PASS_TO_PASS[1], ExpectedIn.PASS_TO_PASS, "missing", ""),
    )


def test_fail_to_pass_is_told_before_pass_to_pass() -> None:
    judgement = judge_report(FAIL_TO_PASS, PASS_TO_PASS, _report({}))
    assert judgement.verdict is Verdict.FAIL_TO_PASS_FAILED
    assert (judgement.fail_to_pass_passed, judgement.pass_to_pass_passed) == (0, 0)


def test_canary_that_did_not_fail_is_told_before_any_test() -> None:
    for report in (ALL_PASSED, _report({})):
        judgement = judge_report(FAIL_TO_PASS, PASS_TO_PASS, replace(report, canary_failed=False))
        assert judgement.verdict is Verdict.CANARY_PASSED


STATUSES = {
    RunStatus.TIMEOUT: Verdict.TEST_TIMEOUT,
    RunStatus.OUT_OF_MEMORY: Verdict.NO_REPORT,
    RunStatus.BUILD_FAILED: Verdict.BUILD_FAILED,
    RunStatus.NO_REPORT: Verdict.NO_REPORT,
    RunStatus.DAMAGED_REPORT: Verdict.NO_REPORT,
}


@pytest.mark.parametrize("status", [status for status in RunStatus if status is not RunStatus.COMPLETED])
def test_run_that_was_not_completed_resolves_nothing(status: RunStatus) -> None:
    for canary_failed in (True, False):
        report = replace(ALL_PASSED, status=status, canary_failed=canary_failed, detail="what happened")
        judgement = judge_report(FAIL_TO_PASS, PASS_TO_PASS, report)
        assert (judgement.verdict, judgement.detail) == (STATUSES[status], "what happened")


def test_verdicts_stand_in_the_order_of_the_design() -> None:
    assert [verdict.value for verdict in Verdict] == [
        "patch_rejected",
        "patch_does_not_apply",
        "build_failed",
        "test_timeout",
        "no_report",
        "canary_passed",
        "fail_to_pass_failed",
        "pass_to_pass_broken",
        "resolved",
        "not_graded",
    ]


def test_evidence_is_bounded_and_counts_are_whole() -> None:
    expected = [f"tests/test_many.py::test_{number}" for number in range(UNMET_TESTS + 30)]
    tests = {test_id: TestResult(test_id, TestOutcome.FAILED, 0.0, "x" * 100_000) for test_id in expected}
    judgement = judge_report(expected, PASS_TO_PASS, replace(ALL_PASSED, tests={**ALL_PASSED.tests, **tests}))
    assert len(judgement.unmet_tests) == UNMET_TESTS
    assert {len(unmet.message) for unmet in judgement.unmet_tests} == {MESSAGE_CHARACTERS}
    assert (judgement.fail_to_pass_passed, judgement.pass_to_pass_passed) == (0, 2)
    assert judgement.detail.startswith(f"{UNMET_TESTS + 30} of {UNMET_TESTS + 30} ")


_IDS = st.lists(st.text("abc:/[] \\x", min_size=1, max_size=8), min_size=1, max_size=12, unique=True)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[list[str], list[str], SuiteReport]:
    """Two lists and a report in which each of their tests, and some others, has some outcome or none."""
    ids = draw(_IDS)
    cut = draw(st.integers(1, len(ids)))
    outcomes = st.sampled_from([*TestOutcome, *[TestOutcome.PASSED] * 20, None])
    found = {test_id: outcome for test_id in ids if (outcome := draw(outcomes)) is not None}
    extra = {f"extra::{n}": draw(st.sampled_from(list(TestOutcome))) for n in range(draw(st.integers(0, 3)))}
    doubled = draw(st.frozensets(st.sampled_from(ids), max_size=1)) if draw(st.booleans()) else frozenset()
    report = _report({**found, **extra}, duplicates=doubled, canary_failed=draw(st.sampled_from([True] * 9 + [False])))
    return ids[:cut], ids[cut:], report


@given(case=_cases())
def test_resolved_exactly_when_every_listed_test_passed_once(case: tuple[list[str], list[str], SuiteReport]) -> None:
    fail_to_pass, pass_to_pass, report = case
    passed = {test_id for test_id, result in report.tests.items() if result.outcome is TestOutcome.PASSED}
    wanted = {*fail_to_pass, *pass_to_pass}
    judgement = judge_report(fail_to_pass, pass_to_pass, report)
    assert judgement.resolved is (wanted <= passed - report.duplicates and report.canary_failed)


@given(case=_cases(), data=st.data())
def test_a_test_that_gets_worse_never_makes_anything_resolved(
    case: tuple[list[str], list[str], SuiteReport], data: st.DataObject
) -> None:
    fail_to_pass, pass_to_pass, report = case
    worse = data.draw(st.sampled_from([*fail_to_pass, *pass_to_pass]))
    outcome = data.draw(st.sampled_from([*NOT_PASSED, None]))
    tests = {test_id: result for test_id, result in report.tests.items() if test_id != worse}
    if outcome is not None:
        tests[worse] = TestResult(worse, outcome)
    assert not judge_report(fail_to_pass, pass_to_pass, replace(report, tests=tests)).resolved


@given(case=_cases(), data=st.data())
def test_order_and_unlisted_tests_do_not_matter(
    case: tuple[list[str], list[str], SuiteReport], data: st.DataObject
) -> None:
    fail_to_pass, pass_to_pass, report = case
    shuffled = dict(data.draw(st.permutations(list(report.tests.items()))))
    shuffled["unlisted::test"] = TestResult("unlisted::test", data.draw(st.sampled_from(list(TestOutcome))))
    assert judge_report(
        data.draw(st.permutations(fail_to_pass)),
        data.draw(st.permutations(pass_to_pass)),
        replace(report, tests=shuffled),
    ) == judge_report(fail_to_pass, pass_to_pass, report)
