"""Which tasks tell agents apart: solved always, solved never, and how far each separates strong from weak agents."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scipy import stats

from evalpipe.stats.counts import TaskCount

# Twelve of twelve leave a true rate of .74 or more (Clopper-Pearson); four of four would leave .40.
LEAST_SAMPLES = 12
# A correlation over fewer agents is noise; the spread between them is given instead.
LEAST_AGENTS = 5


class TaskSignal(StrEnum):
    """What a task says over all agents: nothing more when all or none of them solve it."""

    SATURATED = "saturated"
    DEAD = "dead"
    INFORMATIVE = "informative"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class TaskDiscrimination:
    """One task over all agents.

    `spread` is the largest minus the smallest rate of an agent. `item_rest` is the correlation of an agent's rate on
    this task with its mean on the others: negative ones make a task suspect. `suspect_p` is its one-sided p value, of
    agents whose rate on the task has nothing to do with the rest. Both are None with fewer than five agents, or where
    nothing varies.
    """

    signal: TaskSignal
    passes: int
    samples: int
    spread: float
    item_rest: float | None
    suspect_p: float | None


def discriminate(agents: Sequence[Mapping[str, TaskCount]]) -> dict[str, TaskDiscrimination]:
    """Return for each task that any agent was graded on how it tells them apart. Source: reference A10."""
    tasks = dict.fromkeys(task for counts in agents for task in counts)
    sums = [math.fsum(count.rate for count in counts.values()) for counts in agents]
    return {task: _of_task(task, agents, sums) for task in tasks}


def _of_task(task: str, agents: Sequence[Mapping[str, TaskCount]], sums: Sequence[float]) -> TaskDiscrimination:
    """`sums` are of the rates of each agent over all tasks."""
    graded = [(counts, total) for counts, total in zip(agents, sums, strict=True) if task in counts]
    rates = [counts[task].rate for counts, _ in graded]
    passes = sum(counts[task].passes for counts, _ in graded)
    samples = sum(counts[task].samples for counts, _ in graded)
    item_rest = _item_rest(rates, [(total, len(counts)) for counts, total in graded])
    return TaskDiscrimination(
        signal=_signal(passes, samples),
        passes=passes,
        samples=samples,
        spread=max(rates) - min(rates),
        item_rest=item_rest,
        suspect_p=None if item_rest is None else _lower_tail(item_rest, len(rates)),
    )


def _signal(passes: int, samples: int) -> TaskSignal:
    if 0 < passes < samples:
        return TaskSignal.INFORMATIVE
    if samples < LEAST_SAMPLES:
        return TaskSignal.UNDECIDED
    return TaskSignal.SATURATED if passes else TaskSignal.DEAD


def _item_rest(rates: Sequence[float], all_tasks: Sequence[tuple[float, int]]) -> float | None:
    """`all_tasks` has the sum of an agent's rates, this task's among them, and how many they are."""
    if len(rates) < LEAST_AGENTS or any(number < 2 for _, number in all_tasks):
        return None
    rests = [(total - rate) / (number - 1) for rate, (total, number) in zip(rates, all_tasks, strict=True)]
    return _correlation(rates, rests)


def _lower_tail(correlation: float, number: int) -> float:
    """The chance of so low a correlation of two unrelated normal variables, r·sqrt((n-2)/(1-r²)) as Student's t."""
    room = max(1e-12, 1 - correlation * correlation)
    return float(stats.t.cdf(correlation * math.sqrt((number - 2) / room), number - 2))


def _correlation(left: Sequence[float], right: Sequence[float]) -> float | None:
    mean_left, mean_right = math.fsum(left) / len(left), math.fsum(right) / len(right)
    pairs = [(one - mean_left, other - mean_right) for one, other in zip(left, right, strict=True)]
    scale = math.sqrt(math.fsum(one * one for one, _ in pairs) * math.fsum(other * other for _, other in pairs))
    # Rates that are equal on paper may differ in their last bits.
    return math.fsum(one * other for one, other in pairs) / scale if scale > 1e-12 else None
