"""Coverage of the interval and level of the test, from seeded samples of populations with a known truth.

Each bound is the figure that the statistics reference has for that case (A4, A5, A7), less or plus three standard
errors of the runs here. Two cases are near the reference's and not the same, because its page does not say how rates
gain fifteen points there, nor which weights its totals have; so the least of its five coverages holds for all five.
"""

import math
from collections.abc import Callable

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
_Rates = NDArray[np.float64]
_Drawn = Callable[[np.random.Generator, tuple[int, int]], _Rates]


def _mixed(always: float, never: float) -> _Drawn:
    """Rates of 1 and of 0 for these shares of the tasks, uniform for the others."""

    def drawn(rng: np.random.Generator, shape: tuple[int, int]) -> _Rates:
        kind = rng.random(shape)
        return np.where(kind < always, 1.0, np.where(kind < always + never, 0.0, rng.random(shape)))

    return drawn


# The seven other populations of the robustness run of A4, with their means; below, its least coverage by tasks.
_OTHERS: dict[str, tuple[float, _Drawn]] = {
    "three tenths always, three never": (0.5, _mixed(0.3, 0.3)),
    "eight tenths always": (0.9, _mixed(0.8, 0.0)),
    "seven tenths never": (0.15, _mixed(0.0, 0.7)),
    "rates of .15 and .85": (0.5, lambda rng, shape: rng.choice([0.15, 0.85], size=shape)),
    "always or never": (0.5, _mixed(0.5, 0.5)),
    "one rate of .7": (0.7, lambda rng, shape: np.full(shape, 0.7)),
    "one rate of .95": (0.95, lambda rng, shape: np.full(shape, 0.95)),
}
_LEAST = {5: 0.962, 18: 0.947, 45: 0.943}


def _one_rate(alpha: float, beta: float) -> Callable[[np.random.Generator, int], tuple[_Rates, _Rates]]:
    """Both agents have one rate at each task."""

    def drawn(rng: np.random.Generator, tasks: int) -> tuple[_Rates, _Rates]:
        rates = rng.beta(alpha, beta, size=tasks)
        return rates, rates

    return drawn


def _own_rates(rng: np.random.Generator, tasks: int) -> tuple[_Rates, _Rates]:
    return rng.beta(0.5, 0.5, size=tasks), rng.beta(0.5, 0.5, size=tasks)


def _gains_and_losses(rng: np.random.Generator, tasks: int) -> tuple[_Rates, _Rates]:
    """The second is better by .1 on eight tenths of the tasks and worse by .4 on the others: alike in the mean."""
    first = rng.uniform(0.4, 0.9, size=tasks)
    return first, first + np.where(rng.random(tasks) < 0.8, 0.1, -0.4)


# Reference A5, the level of the sign-flip test: scenarios S0, S1, S2, S3 and S4, at so many tasks.
_LEVELS = [
    pytest.param(_one_rate(0.5, 0.5), 10, 0.006, id="S0, 10 tasks"),
    pytest.param(_one_rate(0.5, 0.5), 45, 0.032, id="S0, 45 tasks"),
    pytest.param(_one_rate(2, 2), 10, 0.021, id="S1, 10 tasks"),
    pytest.param(_one_rate(1.8, 0.2), 18, 0.009, id="S2, 18 tasks"),
    pytest.param(_own_rates, 10, 0.032, id="S3, 10 tasks"),
    pytest.param(_own_rates, 45, 0.039, id="S3, 45 tasks"),
    pytest.param(_gains_and_losses, 18, 0.037, id="S4, 18 tasks"),
]
# Reference A7: tasks and weights of four categories, and the Beta population of their rates.
_TOTALS = [
    pytest.param((18, 12, 9, 6), (0.4, 0.3, 0.2, 0.1), (0.5, 0.5), id="balanced"),
    pytest.param((18, 12, 9, 3), (0.2, 0.2, 0.1, 0.5), (0.5, 0.5), id="half on three tasks"),
    pytest.param((18, 12, 9, 6), (0.4, 0.3, 0.2, 0.1), (1.8, 0.2), id="high rates"),
    pytest.param((18, 12, 9, 3), (0.2, 0.2, 0.1, 0.5), (1.8, 0.2), id="high rates, half on three tasks"),
    pytest.param((18, 12, 3, 2), (0.4, 0.3, 0.2, 0.1), (0.5, 0.5), id="two small ones"),
]
_LEAST_OF_TOTALS = 0.957


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
@pytest.mark.parametrize("tasks", _LEAST)
@pytest.mark.parametrize("population", _OTHERS)
def test_the_interval_covers_the_true_rate_of_populations_of_any_shape(population: str, tasks: int) -> None:
    rng = np.random.default_rng(20260105)
    truth, drawn = _OTHERS[population]
    runs, covered = 500, 0
    for passes in rng.binomial(_SAMPLES, drawn(rng, (runs, tasks))):
        estimate = task_clustered_wilson(_counts(passes))
        assert estimate is not None
        covered += estimate.interval.low <= truth <= estimate.interval.high
    assert covered / runs >= _LEAST[tasks] - _three_errors(_LEAST[tasks], runs)


@pytest.mark.slow
@pytest.mark.parametrize(("drawn", "tasks", "figure"), _LEVELS)
def test_the_test_keeps_its_level(
    drawn: Callable[[np.random.Generator, int], tuple[_Rates, _Rates]], tasks: int, figure: float
) -> None:
    rng = np.random.default_rng(20260102)
    rejected = 0
    for _ in range(_RUNS):
        first, second = drawn(rng, tasks)
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
@pytest.mark.parametrize(("sizes", "weights", "population"), _TOTALS)
def test_the_weighted_total_covers_the_truth(
    sizes: tuple[int, ...], weights: tuple[float, ...], population: tuple[float, float]
) -> None:
    rng = np.random.default_rng(20260104)
    alpha, beta = population
    truth, runs, covered = alpha / (alpha + beta), 1000, 0
    for _ in range(runs):
        drawn = [rng.binomial(_SAMPLES, rng.beta(alpha, beta, size=size)) for size in sizes]
        counts = {str(number): _counts(passes) for number, passes in enumerate(drawn)}
        interval = weighted_total(counts, {str(number): weight for number, weight in enumerate(weights)}).interval
        covered += interval.low <= truth <= interval.high
    assert covered / runs >= _LEAST_OF_TOTALS - _three_errors(_LEAST_OF_TOTALS, runs)
