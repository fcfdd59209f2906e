"""Questions that every judgement asks of a report: which tests passed, failed, or ended otherwise than elsewhere."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from evalpipe.runners import SuiteReport, TestOutcome

FAILED = frozenset({TestOutcome.FAILED, TestOutcome.ERROR})


def passed(report: SuiteReport) -> frozenset[str]:
    """The tests that passed."""
    return frozenset(test_id for test_id, result in report.tests.items() if result.outcome is TestOutcome.PASSED)


def failed(report: SuiteReport) -> frozenset[str]:
    """The tests that failed or stopped with an error."""
    return frozenset(test_id for test_id, result in report.tests.items() if result.outcome in FAILED)


def differing(reports: Sequence[SuiteReport]) -> frozenset[str]:
    """Tests that did not end alike in all `reports`; failing and stopping with an error are one way to end."""
    endings = [_endings(report) for report in reports]
    if not endings:
        return frozenset()
    return frozenset(test_id for test_id, _, _ in endings[0].union(*endings) - endings[0].intersection(*endings))


def without(report: SuiteReport, test_ids: Collection[str]) -> SuiteReport:
    """The same report as if these tests had not been in the run."""
    return replace(report, tests={test: result for test, result in report.tests.items() if test not in test_ids})


def _endings(report: SuiteReport) -> set[tuple[str, TestOutcome, bool]]:
    return {
        (
            test_id,
            TestOutcome.FAILED if result.outcome in FAILED else result.outcome,
            test_id in report.duplicates,
        )
        for test_id, result in report.tests.items()
    }
