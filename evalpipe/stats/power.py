"""What difference a sweep can see: minimum detectable difference from pilot data or from one agent alone."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from scipy import stats

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import regularised_variance

# Agents that solve the same tasks are easier to tell apart; .5 is the cautious end of what pilots show.
PLANNING_CORRELATION = 0.5


def minimum_detectable_difference(
    *, task_variance: float, sample_variance: float, tasks: int, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return (z_{alpha/2} + z_beta)·sqrt((omega² + sigma_A²/k_A + sigma_B²/k_B)/n), a difference of rates.

    `task_variance` is omega², the variance over tasks of the difference of the true rates;
    `sample_variance` is the sum sigma_A²/k_A + sigma_B²/k_B, what chance adds inside tasks.
    Source: Miller 2024, arXiv 2411.00640. Raises ValueError without tasks.
    """
    if tasks < 1:
        raise ValueError("a detectable difference needs at least one task")
    factor = float(stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power))
    return factor * math.sqrt((task_variance + sample_variance) / tasks)


def within_task_variance(counts: Sequence[TaskCount]) -> float:
    """Return sigma² = E[theta(1-theta)], the mean of k/(k-1)·m(1-m) over tasks with several samples.

    0 without such tasks: one sample says nothing of the chance inside its task.
    """
    spreads = [
        count.samples / (count.samples - 1) * count.rate * (1 - count.rate) for count in counts if count.samples > 1
    ]
    return math.fsum(spreads) / len(spreads) if spreads else 0.0


def least_discordant_tasks(alpha: float = 0.05) -> int:
    """Return how many tasks must differ, all one way, for the sign-flip test to reach `alpha` (6 at .05)."""
    return math.ceil(1 - math.log2(alpha))


def planned_detectable_difference(counts: Sequence[TaskCount], alpha: float = 0.05) -> float | None:
    """Return what could be told apart from a second agent much like this one, before there is a second.

    omega² = 2·Var(theta)·(1-rho) with rho = PLANNING_CORRELATION; Var(m) is regularised by two pseudo-tasks
    so that a few tasks that agree do not promise sharp sight. None when so few tasks could never reach
    `alpha`, or when the difference would be more than everything.
    """
    tasks = len(counts)
    if tasks < least_discordant_tasks(alpha):
        return None
    _, variance = regularised_variance([count.rate for count in counts])
    # With single samples chance and tasks cannot be told apart; all of it taken as chance is the safe side.
    chance = variance
    if any(count.samples > 1 for count in counts):
        chance = within_task_variance(counts) * math.fsum(1 / count.samples for count in counts) / tasks
    between = max(0.0, variance - chance)
    found = minimum_detectable_difference(
        task_variance=2 * between * (1 - PLANNING_CORRELATION),
        sample_variance=2 * chance,
        tasks=tasks,
        alpha=alpha,
    )
    return _possible(found, tasks, max(count.samples for count in counts), alpha)


def pilot_detectable_difference(
    first: Mapping[str, TaskCount], second: Mapping[str, TaskCount], alpha: float = 0.05
) -> float | None:
    """Return what difference these data of two agents could have seen, with 80 % power.

    The variance of the tasks' differences already holds omega² and the chance inside tasks, so it goes in
    as it is. With fewer discordant tasks than the test needs, that variance says too little, and the larger
    of it and the planned difference of either agent is returned. None when no difference could have been
    seen.
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < least_discordant_tasks(alpha):
        return None
    found = _from_spread([second[task].rate - first[task].rate for task in shared], alpha)
    most_samples = max(agent[task].samples for agent in (first, second) for task in shared)
    discordant = sum(first[task].exact_rate != second[task].exact_rate for task in shared)
    if discordant < least_discordant_tasks(alpha):
        for agent in (first, second):
            planned = planned_detectable_difference([agent[task] for task in shared], alpha)
            found = max(found, 1.0 if planned is None else planned)
    return _possible(found, len(shared), most_samples, alpha)


def gap_detectable_difference(differences: Sequence[Fraction], alpha: float = 0.05) -> float | None:
    """Return what mean difference of gaps these differences, task by task, could have shown, with 80 % power.

    None with fewer discordant tasks than the test needs: their spread then says too little.
    """
    if sum(map(bool, differences)) < least_discordant_tasks(alpha):
        return None
    return _from_spread([float(difference) for difference in differences], alpha)


def _from_spread(differences: Sequence[float], alpha: float) -> float:
    mean = math.fsum(differences) / len(differences)
    variance = math.fsum((value - mean) ** 2 for value in differences) / (len(differences) - 1)
    return minimum_detectable_difference(
        task_variance=variance, sample_variance=0.0, tasks=len(differences), alpha=alpha
    )


def _possible(found: float, tasks: int, most_samples: int, alpha: float) -> float | None:
    # The test cannot reach alpha below this, whatever the variance: that many tasks, one sample apart each.
    least = least_discordant_tasks(alpha) / (most_samples * tasks)
    difference = max(found, least)
    return difference if difference < 1 else None
