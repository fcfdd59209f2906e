"""Results by id: the worst counts, whatever the order, and what came twice is told."""

from __future__ import annotations

import itertools

import pytest

from evalpipe.runners.report import TestOutcome, TestResult
from evalpipe.runners.results import Results, shortened


@pytest.mark.parametrize("outcomes", list(itertools.product(TestOutcome, repeat=2)))
def test_the_order_decides_nothing_and_a_pass_needs_two(outcomes: tuple[TestOutcome, TestOutcome]) -> None:
    found = []
    for order in (outcomes, outcomes[::-1]):
        results = Results()
        for outcome in order:
            results.add(TestResult("t", outcome))
        assert results.duplicates == {"t"}
        found.append(results.tests["t"].outcome)
    assert found[0] is found[1]
    assert (found[0] is TestOutcome.PASSED) == (set(outcomes) == {TestOutcome.PASSED})


def test_the_first_message_of_the_worst_is_kept() -> None:
    results = Results()
    for outcome, message in ((TestOutcome.ERROR, "a"), (TestOutcome.FAILED, "b"), (TestOutcome.FAILED, "c")):
        results.add(TestResult("t", outcome, message=message))
    assert results.tests["t"].message == "b"


@pytest.mark.parametrize("first", ["run", "blame"])
def test_what_befalls_a_test_besides_its_run_counts_and_makes_no_duplicate(first: str) -> None:
    results = Results()
    for kind in ("run", "blame") if first == "run" else ("blame", "run"):
        if kind == "run":
            results.add(TestResult("t", TestOutcome.PASSED, 2.5))
        else:
            results.blame(TestResult("t", TestOutcome.ERROR, message="its hook failed"))
    assert results.duplicates == frozenset()
    assert (results.tests["t"].outcome, results.tests["t"].message) == (TestOutcome.ERROR, "its hook failed")


def test_what_is_taken_out_is_gone() -> None:
    results = Results()
    for test_id in ("a", "b", "a"):
        results.add(TestResult(test_id, TestOutcome.PASSED))
    taken = results.pop("a")
    assert taken is not None
    assert taken.test_id == "a"
    assert results.pop("a") is None
    assert list(results.tests) == ["b"]
    assert results.duplicates == frozenset()


def test_a_long_message_keeps_both_ends() -> None:
    assert shortened("x" * 4000) == "x" * 4000
    assert shortened("a" + "x" * 9000 + "z")[0::4006] == "az"
