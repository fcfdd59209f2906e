"""Coverage of the interval and level of the test, from seeded samples of populations with a known truth.

The bounds are the reference's own figures for these populations, less three standard errors of the simulation.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import task_clustered_wilson
from evalpipe.stats.paired import compare_paired
from evalpipe.stats.weighted import weighted_total

_RUNS, _SAMPLES = 600, 4


def _counts(passes: NDArray[np.int64]) -> list[TaskCount]:
    return [TaskCount(int(number), _SAMPLES) for number in passes]


def _by_task(passes: NDArray[np.int64]) -> dict[str, TaskCount]:
    return {str(index): count for index, count in enumerate(_counts(passes))}


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [10, 45])
@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.5, 0.5), (2, 2), (1.8, 0.2), (0.95, 0.05)], ids=["bimodal", "middle", "high", "very high"]
)
def test_the_interval_covers_the_true_rate(alpha: float, beta: float, tasks: int) -> None:
    rng = np.random.default_rng(20260101)
    truth = alpha / (alpha + beta)
    covered = 0
    for passes in rng.binomial(_SAMPLES, rng.beta(alpha, beta, size=(_RUNS, tasks))):
        estimate = task_clustered_wilson(_counts(passes))
        assert estimate is not None
        covered += estimate.interval.low <= truth <= estimate.interval.high
    assert covered / _RUNS >= 0.943 - 3 * 0.0095


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [10, 45])
@pytest.mark.parametrize("same_tasks", [True, False], ids=["equal task rates", "exchangeable agents"])
def test_the_test_keeps_its_level(tasks: int, same_tasks: bool) -> None:
    rng = np.random.default_rng(20260102)
    rejected = 0
    for _ in range(_RUNS):
        first = rng.beta(0.5, 0.5, size=tasks)
        second = first if same_tasks else rng.beta(0.5, 0.5, size=tasks)
        found = compare_paired(_by_task(rng.binomial(_SAMPLES, first)), _by_task(rng.binomial(_SAMPLES, second)))
        assert found is not None
        rejected += found.p_value <= 0.05
    assert rejected / _RUNS <= 0.05 + 2 * 0.009


@pytest.mark.slow
def test_the_test_sees_a_difference_of_fifteen_points_in_45_tasks() -> None:
    rng = np.random.default_rng(20260103)
    seen = 0
    runs = 200
    for _ in range(runs):
        first = rng.beta(0.5, 0.5, size=45)
        # Moves a share of the way to 1, so that the mean gain is .15 and no rate leaves the unit range.
        second = first + 0.3 * (1 - first)
        found = compare_paired(_by_task(rng.binomial(_SAMPLES, first)), _by_task(rng.binomial(_SAMPLES, second)))
        assert found is not None
        seen += found.p_value <= 0.05 and found.difference > 0
    assert seen / runs >= 0.85


@pytest.mark.slow
def test_the_weighted_total_covers_the_truth_where_a_small_category_has_half_of_the_weight() -> None:
    rng = np.random.default_rng(20260104)
    sizes = {"a": 18, "b": 12, "c": 3}
    weights = {"a": 0.3, "b": 0.2, "c": 0.5}
    covered = 0
    for _ in range(_RUNS):
        counts = {name: _counts(rng.binomial(_SAMPLES, rng.beta(1.8, 0.2, size=size))) for name, size in sizes.items()}
        interval = weighted_total(counts, weights).interval
        covered += interval.low <= 0.9 <= interval.high
    assert covered / _RUNS >= 0.95 - 3 * 0.009
