"""Gathers the results of one run by test id: the worst outcome of an id counts, and an id that comes twice is told."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from evalpipe.runners.report import TestOutcome, TestResult

MESSAGE_CHARACTERS: Final = 4000

UNPROVEN: Final = "the test here that must fail was not seen to fail, so the tests that passed here are left out"
"""Said of a part whose passes are not believed. As failures they would look like tests that a change repairs."""

_WORST_FIRST = (
    TestOutcome.FAILED,
    TestOutcome.ERROR,
    TestOutcome.SKIPPED,
    TestOutcome.XFAILED,
    TestOutcome.XPASSED,
    TestOutcome.PASSED,
)


def worse(one: TestOutcome, other: TestOutcome) -> TestOutcome:
    """Of two outcomes for one test, the one that counts."""
    return min(one, other, key=_WORST_FIRST.index)


def shortened(text: str) -> str:
    """`text`, or its beginning and its end where it is longer than a message should be."""
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    half = MESSAGE_CHARACTERS // 2
    return f"{text[:half]}\n[...]\n{text[-half:]}"


class Results:
    """The tests of a run, in the order in which their ids first came."""

    def __init__(self) -> None:
        self._tests: dict[str, TestResult] = {}
        self._ran: set[str] = set()
        self._duplicates: set[str] = set()

    @property
    def tests(self) -> Mapping[str, TestResult]:
        """One result for each id."""
        return self._tests

    @property
    def duplicates(self) -> frozenset[str]:
        """Ids that stood for more than one test, or whose test ran more than once."""
        return frozenset(self._duplicates)

    def add(self, result: TestResult) -> None:
        """Add the result of one run; a second one of the same id makes it a duplicate."""
        if result.test_id in self._ran:
            self._duplicates.add(result.test_id)
        self._ran.add(result.test_id)
        self.blame(result)

    def blame(self, result: TestResult) -> None:
        """Add what befell a test besides its run, such as a hook that failed: no run of its own, but it counts."""
        known = self._tests.get(result.test_id)
        if known is None or (
            result.outcome is not known.outcome and worse(result.outcome, known.outcome) is result.outcome
        ):
            seconds = max(result.seconds, known.seconds if known else 0.0)
            self._tests[result.test_id] = replace(result, seconds=seconds)

    def pop(self, test_id: str) -> TestResult | None:
        """Take one test out, such as the canary."""
        self._ran.discard(test_id)
        self._duplicates.discard(test_id)
        return self._tests.pop(test_id, None)
