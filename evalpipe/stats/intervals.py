"""Intervals for a pass rate: Wilson, and Wilson on the effective sample size of clustered samples; and for a mean.

Samples of one task resemble each other, so a binomial interval on all samples is too narrow, and a normal
interval on task means shrinks to a point when every task passes. The task-clustered Wilson interval does
neither (simulations: Beta populations, 5 to 100 tasks, coverage .92 to .98 at a nominal .95).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from evalpipe.stats.counts import TaskCount

Z_95 = float(stats.norm.ppf(0.975))


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of a rate or of a difference of rates."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """A pass rate over tasks with its interval; target: work like these tasks, not only these tasks.

    `rate` is the plain mean of the tasks' rates. `shrunk_rate` (two pseudo-tasks, one all pass and one all
    fail) serves the variance only. `effective_samples` lies between the tasks and the samples.
    """

    rate: float
    interval: Interval
    tasks: int
    samples: int
    shrunk_rate: float
    effective_samples: float

    @property
    def variance(self) -> float:
        """The regularised variance of `rate`; never zero."""
        return self.shrunk_rate * (1 - self.shrunk_rate) / self.effective_samples


def wilson(rate: float, effective_samples: float, z: float = Z_95) -> Interval:
    """Return the Wilson score interval of `rate` on a sample size that may be fractional.

    Source: Wilson 1927. Raises ValueError for a rate outside 0 to 1 or a size that is not positive.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"a rate lies between 0 and 1, got {rate}")
    if effective_samples <= 0:
        raise ValueError(f"the sample size must be positive, got {effective_samples}")
    square = z * z / effective_samples
    centre = rate + square / 2
    spread = z * math.sqrt(rate * (1 - rate) / effective_samples + square / (4 * effective_samples))
    # Rounding must not let the interval leave the unit range or lose the rate it belongs to.
    low = min(rate, max(0.0, (centre - spread) / (1 + square)))
    high = max(rate, min(1.0, (centre + spread) / (1 + square)))
    return Interval(low if rate > 0 else 0.0, high if rate < 1 else 1.0)


def t_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Return the t interval of the mean of values that stand for tasks; None for fewer than two."""
    count = len(values)
    if count < 2:
        return None
    mean = math.fsum(values) / count
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = float(stats.t.ppf((1 + level) / 2, count - 1)) * spread / math.sqrt(count)
    return Interval(mean - half, mean + half)


def regularised_variance(rates: Sequence[float]) -> tuple[float, float]:
    """Return (mean, variance) of task rates after adding one task that always and one that never passes.

    The variance divides by the number of all tasks minus one. Keeps both away from 0 and 1, so that a
    handful of tasks that agree do not pass for certainty.
    """
    count = len(rates) + 2
    mean = (math.fsum(rates) + 1) / count
    squares = math.fsum(rate * rate for rate in rates) + 1
    return mean, (squares - count * mean * mean) / (count - 1)


def task_clustered_wilson(counts: Sequence[TaskCount], z: float = Z_95) -> RateEstimate | None:
    """Return pass@1 over tasks with its Wilson interval on the effective sample size; None without tasks.

    The design effect is estimated with two pseudo-tasks; the effective size is kept between the number of
    tasks and tasks x harmonic mean of samples, so unequal samples are allowed. With one sample per task,
    or when all tasks pass or all fail, this is the plain Wilson interval on tasks.
    Source: Wilson on an effective sample size as recommended by Franco, Little, Louis and Slud 2019.
    """
    if not counts:
        return None
    tasks = len(counts)
    rates = [count.rate for count in counts]
    rate = math.fsum(rates) / tasks
    shrunk_rate, variance = regularised_variance(rates)
    most = tasks * tasks / math.fsum(1 / count.samples for count in counts)
    effective = min(max(tasks * shrunk_rate * (1 - shrunk_rate) / variance, tasks), most)
    return RateEstimate(
        rate=rate,
        interval=wilson(rate, effective, z),
        tasks=tasks,
        samples=sum(count.samples for count in counts),
        shrunk_rate=shrunk_rate,
        effective_samples=effective,
    )
