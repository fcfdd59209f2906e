import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.gaps import difference_of_gaps, prompt_gap, task_gap_differences
from evalpipe_tests.stats import golden

COUNTS = st.lists(st.integers(0, 4), min_size=3, max_size=12)


def test_golden_gap_with_its_ratio() -> None:
    gap = prompt_gap(golden.AGENT_A, golden.TERSE_A)
    assert gap is not None
    assert gap.paired.difference == pytest.approx(0.111111, abs=5e-7)
    assert gap.paired.interval is not None
    assert gap.paired.interval.low == pytest.approx(0.047544, abs=5e-7)
    assert gap.paired.interval.high == pytest.approx(0.174678, abs=5e-7)
    assert (gap.paired.p_value, gap.paired.discordant) == (0.0078125, 8)
    assert gap.ratio == pytest.approx(gap.terse_rate / 0.5138889, abs=5e-7)


def test_golden_difference_of_gaps() -> None:
    found = difference_of_gaps(task_gap_differences(golden.AGENT_A, golden.TERSE_A, golden.AGENT_B, golden.TERSE_B))
    assert found is not None
    assert found.difference == pytest.approx(0.097222, abs=5e-7)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.034858, abs=5e-7)
    assert found.interval.high == pytest.approx(0.159586, abs=5e-7)
    assert found.p_value == 0.015625


def test_a_task_without_one_of_the_prompts_is_left_out() -> None:
    original = {"a": TaskCount(4, 4), "b": TaskCount(2, 4)}
    gap = prompt_gap(original, {"b": TaskCount(1, 4), "c": TaskCount(4, 4)})
    assert gap is not None
    assert (gap.paired.tasks, gap.original_rate, gap.terse_rate) == (1, 0.5, 0.25)
    assert prompt_gap(original, {}) is None
    assert task_gap_differences(original, original, original, {}) == []
    assert difference_of_gaps([]) is None


def test_an_agent_that_solves_nothing_has_no_ratio() -> None:
    nothing = {"a": TaskCount(0, 2)}
    gap = prompt_gap(nothing, nothing)
    assert gap is not None
    assert gap.ratio is None


@given(COUNTS)
def test_two_agents_with_one_gap_do_not_differ_in_it(passes: list[int]) -> None:
    original = golden.passes_of_four(passes)
    terse = golden.passes_of_four([max(0, count - 1) for count in passes])
    found = difference_of_gaps(task_gap_differences(original, terse, original, terse))
    assert found is not None
    assert (found.difference, found.p_value, found.interval) == (0.0, 1.0, None)
