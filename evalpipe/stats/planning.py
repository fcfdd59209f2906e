"""What a sweep would see before it is run, from what is known or assumed of the spread of task rates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.power import (
    PLANNING_CORRELATION,
    least_discordant_tasks,
    minimum_detectable_difference,
    within_task_variance,
)


@dataclass(frozen=True, slots=True)
class Spread:
    """How two agents would differ over tasks: `task_variance` is omega², the variance of the difference of true rates;
    `chance_variance` is sigma_A² + sigma_B², the chance inside a task of one sample of each."""

    task_variance: float
    chance_variance: float


# Beta(.5, .5): most tasks are nearly always or nearly never solved. Var(theta) = E[theta(1-theta)] = 1/8.
ASSUMED_SPREAD = Spread(task_variance=2 * 0.125 * (1 - PLANNING_CORRELATION), chance_variance=2 * 0.125)


def planned_difference(spread: Spread, *, tasks: int, samples: int, alpha: float = 0.05) -> float | None:
    """Return the difference of rates that so many tasks and samples of each agent can see with 80 % power.

    Never below what the test can reach at all; None when it could reach nothing. Source: Miller 2024.
    """
    if tasks < least_discordant_tasks(alpha) or samples < 1:
        return None
    found = minimum_detectable_difference(
        task_variance=spread.task_variance,
        sample_variance=spread.chance_variance / samples,
        tasks=tasks,
        alpha=alpha,
    )
    difference = max(found, least_discordant_tasks(alpha) / (samples * tasks))
    return difference if difference < 1 else None


def tasks_needed(spread: Spread, *, difference: float, samples: int, alpha: float = 0.05) -> int:
    """Return how many tasks see `difference` (of rates) with so many samples. Raises ValueError unless positive.

    n = (z_{alpha/2} + z_beta)²·(omega² + sigma²/k)/delta²; the inverse of `planned_difference`.
    """
    if difference <= 0 or samples < 1:
        raise ValueError("a difference to see must be above zero, with at least one sample")
    one = minimum_detectable_difference(
        task_variance=spread.task_variance, sample_variance=spread.chance_variance / samples, tasks=1, alpha=alpha
    )
    least = least_discordant_tasks(alpha)
    return max(math.ceil((one / difference) ** 2 - 1e-9), math.ceil(least / (samples * difference)), least)


def pilot_spread(first: Mapping[str, TaskCount], second: Mapping[str, TaskCount]) -> Spread | None:
    """Return the spread that two agents showed on the tasks graded for both; None with fewer than two tasks.

    omega² = max(0, Var(d) - sigma_A²/k_A - sigma_B²/k_B). Where an agent has single samples only, chance and tasks
    cannot be told apart, and all of Var(d) counts as omega²: the side that promises less of more samples.
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        return None
    differences = [second[task].rate - first[task].rate for task in shared]
    mean = math.fsum(differences) / len(shared)
    variance = math.fsum((value - mean) ** 2 for value in differences) / (len(shared) - 1)
    sides = [[counts[task] for task in shared] for counts in (first, second)]
    if not all(any(count.samples > 1 for count in side) for side in sides):
        return Spread(task_variance=variance, chance_variance=0.0)
    chances = [within_task_variance(side) for side in sides]
    inverse = [math.fsum(1 / count.samples for count in side) / len(shared) for side in sides]
    chance = math.fsum(sigma * part for sigma, part in zip(chances, inverse, strict=True))
    return Spread(task_variance=max(0.0, variance - chance), chance_variance=math.fsum(chances))
