"""Agents of two or more sweeps side by side, on the tasks that the sweeps share; the same agent over time is one case.

Nothing here was fixed before the runs, so all of it is exploratory and says so: Holm runs over every pair shown.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalpipe.manifest import describe_differences, differences
from evalpipe.reports import wording
from evalpipe.reports.comparisons import RUN_ITSELF, Comparison, Pair, conditions_that_differ, judge_family
from evalpipe.reports.findings import why_no_result
from evalpipe.reports.records import Prices, SweepResults
from evalpipe.reports.samples import Samples, Tally, collect_samples
from evalpipe.reports.solved import SolvedBy, solved_by
from evalpipe.reports.usage import UsageRow, usage_rows
from evalpipe.stats.counts import TaskCount
from evalpipe.stats.paired import PairedComparison, compare_paired


class NotComparable(ValueError):
    """The sweeps cannot be put side by side; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """An agent of a sweep in one prompt mode, on the common tasks."""

    label: str
    agent: str
    mode: str
    tally: Tally
    manifest: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Drift:
    """The difference in one category, second minus first; exploratory and not tested."""

    category: str
    first: tuple[TaskCount, ...]
    second: tuple[TaskCount, ...]
    paired: PairedComparison


@dataclass(frozen=True, slots=True)
class SweepPair:
    """Two sides from different sweeps; `footnotes` are differences of their manifests."""

    comparison: Comparison
    solved: SolvedBy
    drift: tuple[Drift, ...]
    footnotes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SweepComparison:
    """`notes` say what was compared and what was left out. `usage` is on the common tasks, in one currency."""

    sweeps: tuple[str, ...]
    tasks: tuple[str, ...]
    notes: tuple[str, ...]
    pairs: tuple[SweepPair, ...]
    usage: tuple[UsageRow, ...]
    prices: Prices


def compare_sweeps(sweeps: Sequence[SweepResults], agents: Sequence[str] = ()) -> SweepComparison:
    """Compare every contender of each of different sweeps (or those of `agents`) with those of every other, by mode.

    Tasks are common when every sweep has one of that id with the same frozen content. Raises NotComparable for a sweep
    without results, no common task, or no pair.
    """
    for results in sweeps:
        reasons = why_no_result(results, collect_samples(results))
        if reasons:
            raise NotComparable(f"sweep {wording.plain(results.sweep)} has no results: {reasons[0].text}")
    tasks = _common_tasks(sweeps)
    if not tasks:
        raise NotComparable("the sweeps have no task in common with the same content, so nothing can be compared")
    prices = sweeps[0].prices if len({results.prices for results in sweeps}) == 1 else Prices()
    shared = [_on(results, tasks, prices) for results in sweeps]
    samples = [collect_samples(results) for results in shared]
    by_sweep = [_sides(results, found, agents) for results, found in zip(shared, samples, strict=True)]
    keys = [
        (first, second)
        for left, right in itertools.combinations(by_sweep, 2)
        for first in left
        for second in right
        if first.mode == second.mode
    ]
    if not keys:
        raise NotComparable(
            "no agent of one sweep can be compared with one of another: look at --agent and the modes; controls "
            "(reference, empty) are never compared"
        )
    category = {task.task_id: task.category for task in sweeps[0].tasks}
    return SweepComparison(
        sweeps=tuple(results.sweep for results in sweeps),
        tasks=tasks,
        notes=_notes(sweeps, tasks, shared, by_sweep),
        pairs=_pairs(keys, category),
        usage=tuple(
            replace(row, agent=_label(row.agent, results))
            for results, found in zip(shared, samples, strict=True)
            for row in usage_rows(results, found)
            if not agents or row.agent in agents
        ),
        prices=prices,
    )


def _common_tasks(sweeps: Sequence[SweepResults]) -> tuple[str, ...]:
    digests = [{task.task_id: task.digest for task in results.tasks} for results in sweeps]
    return tuple(task for task, digest in digests[0].items() if all(one.get(task) == digest for one in digests[1:]))


def _on(results: SweepResults, tasks: Sequence[str], prices: Prices) -> SweepResults:
    """The same results on these tasks alone, with costs as `prices` has them."""
    wanted = set(tasks)
    return replace(results, tasks=tuple(task for task in results.tasks if task.task_id in wanted), prices=prices)


def _label(agent: str, results: SweepResults) -> str:
    return f"{agent} ({results.sweep})"


def _sides(results: SweepResults, samples: Samples, agents: Sequence[str]) -> list[Side]:
    return [
        Side(
            label=_label(agent.name, results),
            agent=agent.name,
            mode=mode,
            tally=samples.tallies[agent.name, mode],
            manifest=results.manifests.get((agent.name, mode)),
        )
        for agent in results.contenders
        for mode in results.modes
        if not agents or agent.name in agents
    ]


def _notes(
    sweeps: Sequence[SweepResults],
    tasks: Sequence[str],
    shared: Sequence[SweepResults],
    by_sweep: Sequence[Sequence[Side]],
) -> tuple[str, ...]:
    """What was compared; and of each sweep on the common tasks, what makes it weaker than it looks."""
    notes = ["not fixed before the runs, so exploratory: p values are adjusted (Holm) over all pairs shown here"]
    if len({results.revision for results in sweeps}) > 1:
        sizes = ", ".join(f"{wording.plain(results.sweep)} {len(results.tasks)}" for results in sweeps)
        notes.append(
            f"different task set revisions: compared only on the {wording.count(len(tasks), 'task')} "
            f"that all have with the same content ({sizes})"
        )
    for results, sides in zip(shared, by_sweep, strict=True):
        name = wording.plain(results.sweep)
        missing, invalid = sum(len(side.tally.missing) for side in sides), sum(side.tally.invalid for side in sides)
        provisional = sum(task.provisional for task in results.tasks)
        if missing:
            notes.append(f"{name}: {wording.count(missing, 'sample')} not graded, so this can still change")
        if invalid:
            notes.append(f"{name}: {wording.count(invalid, 'sample')} invalid, left out")
        if provisional:
            notes.append(f"{name}: {wording.count(provisional, 'task')} {wording.PROVISIONAL}")
    return tuple(notes)


def _pairs(keys: Sequence[tuple[Side, Side]], category: Mapping[str, str]) -> tuple[SweepPair, ...]:
    family = judge_family(
        [Pair(first.label, second.label, first.mode, first.tally, second.tally) for first, second in keys]
    )
    return tuple(
        SweepPair(
            comparison=comparison,
            solved=solved_by(first.tally.counts, second.tally.counts),
            drift=_drift(first.tally.counts, second.tally.counts, category),
            footnotes=_footnotes(first, second),
        )
        for (first, second), comparison in zip(keys, family, strict=True)
    )


def _drift(
    first: Mapping[str, TaskCount], second: Mapping[str, TaskCount], category: Mapping[str, str]
) -> tuple[Drift, ...]:
    found = []
    shared = [task for task in first if task in second]
    for name in sorted({category[task] for task in shared}):
        tasks = [task for task in shared if category[task] == name]
        left, right = ({task: counts[task] for task in tasks} for counts in (first, second))
        paired = compare_paired(left, right)
        assert paired is not None
        found.append(Drift(name, tuple(left.values()), tuple(right.values()), paired))
    return tuple(found)


def _footnotes(first: Side, second: Side) -> tuple[str, ...]:
    for side in (first, second):
        if side.manifest is None:
            return (f"{wording.plain(side.label)} has no manifest: its settings are unknown",)
    # An agent that is compared with itself over time is told of in full: its own changes are what may explain it.
    left, right = dict(first.manifest or {}), dict(second.manifest or {})
    same = first.agent == second.agent
    found = differences(left, right, ignore=RUN_ITSELF) if same else conditions_that_differ(left, right)
    lines = describe_differences(found, wording.plain(first.label), wording.plain(second.label))
    return tuple(wording.plain(line, 400) for line in lines)
