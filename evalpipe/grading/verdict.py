"""The verdict on an attempt: a pure function of the task's test lists and the report of the run."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.runners import RunStatus, SuiteReport, TestOutcome

MESSAGE_CHARACTERS = 2000
UNMET_TESTS = 50
"""How many unmet tests keep their message; the counts are always whole."""


class Verdict(StrEnum):
    """What a grading says, in the order in which the first that applies is taken."""

    PATCH_REJECTED = "patch_rejected"
    PATCH_DOES_NOT_APPLY = "patch_does_not_apply"
    BUILD_FAILED = "build_failed"
    TEST_TIMEOUT = "test_timeout"
    NO_REPORT = "no_report"
    CANARY_PASSED = "canary_passed"
    FAIL_TO_PASS_FAILED = "fail_to_pass_failed"
    PASS_TO_PASS_BROKEN = "pass_to_pass_broken"
    RESOLVED = "resolved"
    NOT_GRADED = "not_graded"


class ExpectedIn(StrEnum):
    """The list of the task in which a test stands."""

    FAIL_TO_PASS = "fail_to_pass"
    PASS_TO_PASS = "pass_to_pass"


@dataclass(frozen=True, slots=True)
class UnmetTest:
    """A test that should have passed and did not; `outcome` is `missing` or `duplicate` where there is no one."""

    test_id: str
    expected_in: ExpectedIn
    outcome: str
    message: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its evidence."""

    verdict: Verdict
    detail: str
    fail_to_pass_passed: int = 0
    pass_to_pass_passed: int = 0
    unmet_tests: tuple[UnmetTest, ...] = ()

    @property
    def resolved(self) -> bool:
        return self.verdict is Verdict.RESOLVED


_BAD_RUNS = {
    RunStatus.TIMEOUT: Verdict.TEST_TIMEOUT,
    RunStatus.OUT_OF_MEMORY: Verdict.NO_REPORT,
    RunStatus.BUILD_FAILED: Verdict.BUILD_FAILED,
    RunStatus.NO_REPORT: Verdict.NO_REPORT,
    RunStatus.DAMAGED_REPORT: Verdict.NO_REPORT,
}


def judge_report(fail_to_pass: Collection[str], pass_to_pass: Collection[str], report: SuiteReport) -> Judgement:
    """Resolved when every fail-to-pass and every pass-to-pass test has exactly one outcome, `passed`.

    Skipped, xfailed, xpassed, missing and doubled tests have not passed. A run without a whole report, or one in
    which the canary did not fail, resolves nothing, whatever its tests say. Raises ValueError for an empty
    fail-to-pass list: such a task is invalid.
    """
    if not fail_to_pass:
        raise ValueError("a task without fail-to-pass tests cannot be graded")
    if report.status is not RunStatus.COMPLETED:
        return Judgement(_BAD_RUNS[report.status], report.detail)
    if not report.canary_failed:
        return Judgement(Verdict.CANARY_PASSED, "the test that must fail did not: something turns failures into passes")
    unmet_fail_to_pass = _unmet(fail_to_pass, ExpectedIn.FAIL_TO_PASS, report)
    unmet_pass_to_pass = _unmet(pass_to_pass, ExpectedIn.PASS_TO_PASS, report)
    if unmet_fail_to_pass:
        verdict = Verdict.FAIL_TO_PASS_FAILED
        detail = f"{len(unmet_fail_to_pass)} of {len(fail_to_pass)} fail-to-pass tests did not pass"
    elif unmet_pass_to_pass:
        verdict = Verdict.PASS_TO_PASS_BROKEN
        detail = f"{len(unmet_pass_to_pass)} of {len(pass_to_pass)} pass-to-pass tests did not pass"
    else:
        verdict, detail = Verdict.RESOLVED, "every expected test passed"
    return Judgement(
        verdict,
        detail,
        fail_to_pass_passed=len(fail_to_pass) - len(unmet_fail_to_pass),
        pass_to_pass_passed=len(pass_to_pass) - len(unmet_pass_to_pass),
        unmet_tests=tuple((unmet_fail_to_pass + unmet_pass_to_pass)[:UNMET_TESTS]),
    )


def _unmet(expected: Collection[str], expected_in: ExpectedIn, report: SuiteReport) -> list[UnmetTest]:
    unmet = []
    for test_id in sorted(expected):
        result = report.tests.get(test_id)
        if test_id in report.duplicates:
            unmet.append(UnmetTest(test_id, expected_in, "duplicate", "more than one test has this id"))
        elif result is None:
            reason = report.uncollected.get(test_id.partition("::")[0], "")
            unmet.append(UnmetTest(test_id, expected_in, "missing", reason[:MESSAGE_CHARACTERS]))
        elif result.outcome is not TestOutcome.PASSED:
            message = result.message[:MESSAGE_CHARACTERS]
            unmet.append(UnmetTest(test_id, expected_in, result.outcome.value, message))
    return unmet
