"""The fall-back of tasks that were chosen for having passed: by hand, and against drawn ones."""

import numpy as np
import pytest
from scipy import stats

from evalpipe.stats.chosen_tasks import fall_back_p_value
from evalpipe.stats.counts import TaskCount
from evalpipe.stats.paired import compare_paired


def always(tasks: int, samples: int) -> dict[str, TaskCount]:
    return {str(number): TaskCount(samples, samples) for number in range(tasks)}


@pytest.mark.parametrize(("before", "failed", "expected"), [(3, 1, 0.125), (1, 1, 0.25), (3, 0, 1.0)])
def test_one_further_sample_of_one_task(before: int, failed: int, expected: float) -> None:
    """The rate is Beta(K + 1/2, 1/2), whose mean of failures is 1 / (2 (K + 1))."""
    assert fall_back_p_value(always(1, before), {"0": TaskCount(1 - failed, 1)}) == pytest.approx(expected)


def test_many_tasks_with_one_sample_each_are_a_binomial() -> None:
    after = {str(number): TaskCount(int(number >= 6), 1) for number in range(20)}
    expected = float(stats.binom.sf(5, 20, 0.125))
    assert fall_back_p_value(always(20, 3), after) == pytest.approx(expected)
    assert expected == pytest.approx(0.0312, abs=5e-5)


def test_only_tasks_of_both_sides_count() -> None:
    after = {"0": TaskCount(0, 2), "other": TaskCount(0, 2)}
    assert fall_back_p_value(always(5, 3), after) == fall_back_p_value(always(1, 3), {"0": TaskCount(0, 2)})
    assert fall_back_p_value(always(5, 3), {}) == 1.0


def test_a_task_that_was_not_always_solved_is_refused() -> None:
    with pytest.raises(ValueError, match="2 of 3"):
        fall_back_p_value({"a": TaskCount(2, 3)}, {"a": TaskCount(1, 1)})


@pytest.mark.slow
def test_an_unchanged_agent_is_called_worse_at_most_as_often_as_the_level_says() -> None:
    """Tasks drawn as planning assumes, the always solved ones chosen and run again; the paired test alone errs more."""
    rng = np.random.default_rng(7)
    called = paired = runs = 0
    for _ in range(600):
        rates = rng.beta(0.5, 0.5, 60)
        chosen = [rate for rate in rates if rng.binomial(3, rate) == 3][:20]
        after = {str(n): TaskCount(int(rng.binomial(2, rate)), 2) for n, rate in enumerate(chosen)}
        runs += 1
        called += fall_back_p_value(always(len(chosen), 3), after) <= 0.05
        comparison = compare_paired(always(len(chosen), 3), after)
        assert comparison is not None
        paired += comparison.p_value <= 0.05
    assert called / runs <= 0.07
    assert paired > called
