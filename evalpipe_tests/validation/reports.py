"""Reports and passes in one line each, for tests of the judgement."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from evalpipe.runners import RunStatus, SuiteReport, TestOutcome, TestResult
from evalpipe.validation import TwoSides

OUTCOMES = {
    "P": TestOutcome.PASSED,
    "F": TestOutcome.FAILED,
    "E": TestOutcome.ERROR,
    "S": TestOutcome.SKIPPED,
    "x": TestOutcome.XFAILED,
    "X": TestOutcome.XPASSED,
}
OWN = (b"tests/test_own.py",)
"""Test files of the change in these tests; `own::` in an id stands for its path."""


def full(test_id: str) -> str:
    """`own::t` as a whole test id."""
    return test_id.replace("own::", "tests/test_own.py::")


def report(
    tests: Mapping[str, str],
    *,
    messages: Mapping[str, str] | None = None,
    uncollected: Mapping[str, str] | None = None,
    duplicates: Collection[str] = (),
) -> SuiteReport:
    """A complete report of tests by the letters of OUTCOMES; `-` and a blank leave the test out."""
    texts = messages or {}
    return SuiteReport(
        RunStatus.COMPLETED,
        tests={
            full(test): TestResult(full(test), OUTCOMES[letter], 0.1, texts.get(test, ""))
            for test, letter in tests.items()
            if letter not in "- "
        },
        uncollected=uncollected or {},
        duplicates=frozenset(map(full, duplicates)),
        canary_failed=True,
    )


def sides(tests: Mapping[str, str], day: str = "2026-10-01") -> TwoSides:
    """A pass of tests by two letters each: before and after."""
    return TwoSides(
        report({test: letters[0] for test, letters in tests.items()}),
        report({test: letters[1] for test, letters in tests.items()}),
        day,
    )


def passes(tests: Mapping[str, str], days: tuple[str, str] = ("2026-10-01", "2026-10-02")) -> dict[str, TwoSides]:
    """Two passes of tests by two pairs of letters each, as in `FP FP`."""
    return {
        "first": sides({test: letters[:2] for test, letters in tests.items()}, days[0]),
        "second": sides({test: letters[3:] for test, letters in tests.items()}, days[1]),
    }
