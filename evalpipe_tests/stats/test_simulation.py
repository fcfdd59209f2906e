"""Coverage of the interval and level of the test, from seeded samples of populations with a known truth.

Each bound is the figure that the statistics reference has for that case (A4, A5, A7), less or plus three standard
errors of the runs here. Two cases are near the reference's and not the same: its page does not say how rates gain
fifteen points there, and its weighted totals have four categories.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import task_clustered_wilson
from evalpipe.stats.paired import compare_paired
from evalpipe.stats.weighted import weighted_total

_RUNS, _SAMPLES = 2000, 4
# Reference A4, task-clustered Wilson: coverage at 10 and at 45 tasks, by the Beta population of the tasks' rates.
_COVERAGE = {
    (0.5, 0.5): {10: 0.964, 45: 0.943},
    (2, 2): {10: 0.975, 45: 0.955},
    (0.4, 1.6): {10: 0.979, 45: 0.961},
    (1.8, 0.2): {10: 0.982, 45: 0.971},
    (0.95, 0.05): {10: 0.972, 45: 0.975},
}
# Reference A5, sign-flip test, scenarios S0 (both agents have one rate at each task) and S3 (rates of their own).
_LEVEL = {True: {10: 0.006, 45: 0.032}, False: {10: 0.032, 45: 0.039}}


def _three_errors(figure: float, runs: int = _RUNS) -> float:
    return 3 * math.sqrt(figure * (1 - figure) / runs)


def _counts(passes: NDArray[np.int64]) -> list[TaskCount]:
    return [TaskCount(int(number), _SAMPLES) for number in passes]


def _by_task(passes: NDArray[np.int64]) -> dict[str, TaskCount]:
    return {str(index): count for index, count in enumerate(_counts(passes))}


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [10, 45])
@pytest.mark.parametrize("population", _COVERAGE, ids=str)
def test_the_interval_covers_the_true_rate(population: tuple[float, float], tasks: int) -> None:
    rng = np.random.default_rng(20260101)
    alpha, beta = population
    truth, figure = alpha / (alpha + beta), _COVERAGE[population][tasks]
    covered = 0
    for passes in rng.binomial(_SAMPLES, rng.beta(alpha, beta, size=(_RUNS, tasks))):
        estimate = task_clustered_wilson(_counts(passes))
        assert estimate is not None
        covered += estimate.interval.low <= truth <= estimate.interval.high
    assert covered / _RUNS >= figure - _three_errors(figure)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [10, 45])
@pytest.mark.parametrize("same_rates", [True, False], ids=["one rate at each task", "rates of their own"])
def test_the_test_keeps_its_level(tasks: int, same_rates: bool) -> None:
    rng = np.random.default_rng(20260102)
    figure = _LEVEL[same_rates][tasks]
    rejected = 0
    for _ in range(_RUNS):
        first = rng.beta(0.5, 0.5, size=tasks)
        second = first if same_rates else rng.beta(0.5, 0.5, size=tasks)
        found = compare_paired(_by_task(rng.binomial(_SAMPLES, first)), _by_task(rng.binomial(_SAMPLES, second)))
        assert found is not None
        rejected += found.p_value <= 0.05
    assert rejected / _RUNS <= figure + _three_errors(figure)


@pytest.mark.slow
def test_the_test_sees_a_difference_of_fifteen_points_in_45_tasks() -> None:
    rng = np.random.default_rng(20260103)
    seen, runs, figure = 0, 200, 0.913
    for _ in range(runs):
        first = rng.beta(0.5, 0.5, size=45)
        # Moves a share of the way to 1, so that the mean gain is .15 and no rate leaves the unit range.
        second = first + 0.3 * (1 - first)
        found = compare_paired(_by_task(rng.binomial(_SAMPLES, first)), _by_task(rng.binomial(_SAMPLES, second)))
        assert found is not None
        seen += found.p_value <= 0.05 and found.difference > 0
    assert seen / runs >= figure - _three_errors(figure, runs)


@pytest.mark.slow
def test_the_weighted_total_covers_the_truth_where_a_small_category_has_half_of_the_weight() -> None:
    rng = np.random.default_rng(20260104)
    sizes = {"a": 18, "b": 12, "c": 3}
    weights = {"a": 0.3, "b": 0.2, "c": 0.5}
    # High rates and half of the weight on three tasks.
    covered, figure = 0, 0.971
    for _ in range(_RUNS):
        counts = {name: _counts(rng.binomial(_SAMPLES, rng.beta(1.8, 0.2, size=size))) for name, size in sizes.items()}
        interval = weighted_total(counts, weights).interval
        covered += interval.low <= 0.9 <= interval.high
    assert covered / _RUNS >= figure - _three_errors(figure)
