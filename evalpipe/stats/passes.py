"""pass@k, pass^k, and how steadily tasks are solved: what repeated samples say beyond the mean."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalpipe.stats.counts import TaskCount


def _check(count: TaskCount, k: int) -> None:
    if not 1 <= k <= count.samples:
        raise ValueError(f"k = {k} needs between 1 and {count.samples} of the samples there are")


def pass_at_k(count: TaskCount, k: int) -> float:
    """Return the unbiased chance that at least one of `k` samples passes: 1 - C(N-c,k)/C(N,k).

    Source: Chen et al. 2021, arXiv 2107.03374. Raises ValueError when there are fewer than `k` samples.
    """
    _check(count, k)
    return 1 - math.comb(count.samples - count.passes, k) / math.comb(count.samples, k)


def pass_hat_k(count: TaskCount, k: int) -> float:
    """Return the unbiased chance that all of `k` samples pass (pass^k): C(c,k)/C(N,k).

    Source: tau-bench, arXiv 2406.12045. Raises ValueError when there are fewer than `k` samples.
    """
    _check(count, k)
    return math.comb(count.passes, k) / math.comb(count.samples, k)


@dataclass(frozen=True, slots=True)
class RepeatedPasses:
    """pass@k and pass^k averaged over tasks, at the largest k that every task has samples for."""

    k: int
    pass_at_k: float
    pass_hat_k: float


def mean_pass_at_k(counts: Sequence[TaskCount], k: int) -> float | None:
    """Return pass@k averaged over tasks, None without tasks."""
    return math.fsum(pass_at_k(count, k) for count in counts) / len(counts) if counts else None


def mean_pass_hat_k(counts: Sequence[TaskCount], k: int) -> float | None:
    """Return pass^k averaged over tasks, None without tasks."""
    return math.fsum(pass_hat_k(count, k) for count in counts) / len(counts) if counts else None


def repeated_passes(counts: Sequence[TaskCount]) -> RepeatedPasses | None:
    """Return both averages at k = the smallest number of samples of any task; None without tasks.

    tau-bench lowers k the same way: a larger k would drop the tasks that miss samples.
    """
    if not counts:
        return None
    k = min(count.samples for count in counts)
    best, every = mean_pass_at_k(counts, k), mean_pass_hat_k(counts, k)
    assert best is not None
    assert every is not None
    return RepeatedPasses(k, best, every)


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Numbers of tasks solved in every graded sample, in some, and in none."""

    stable: int
    sometimes: int
    never: int


def steadiness(counts: Sequence[TaskCount]) -> Steadiness:
    """Sort tasks by whether all, some or none of their samples passed."""
    stable = sum(count.passes == count.samples for count in counts)
    never = sum(count.passes == 0 for count in counts)
    return Steadiness(stable=stable, sometimes=len(counts) - stable - never, never=never)
