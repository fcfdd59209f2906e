"""What must hold for the numbers of a sweep to mean something, looked at one by one: the checks that the UI shows.

Nothing here runs a box or writes anything. Stages refuse on their own what would be wrong; these say it where a person
looks, before and after.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from evalpipe.agents import HistoryKind, InstanceUnproven
from evalpipe.config import SweepConfig
from evalpipe.history import HistoryError
from evalpipe.reports import SweepResults
from evalpipe.reports.comparisons import differing_conditions
from evalpipe.reports.samples import Samples
from evalpipe.reports.signals import task_signals
from evalpipe.stages.bench import Workbench
from evalpipe.stages.task_set_checks import check_task_set
from evalpipe.stats.discrimination import TaskSignal
from evalpipe.stats.multiple import LEVEL
from evalpipe.stats.planning import ASSUMED_SPREAD, planned_difference, tasks_needed
from evalpipe.tasks import LoadedTaskSet, hidden_paths

MOST_DAYS = 180
"""Since the last validation of a task: two quarters in which registries, certificates and dates have moved on."""

MOST_INVALID = 0.05
"""Of an agent's attempts: from there on what was lost can hide a difference of the size that sweeps look for."""

LEAST_INFORMATIVE = 0.5
"""Of a set's tasks: with fewer that tell agents apart, the next quarter needs new tasks."""

_CONDITIONS = ("task_set", "environment")
_HARMLESS = ("environment.engine_version",)


@dataclass(frozen=True, slots=True)
class Health:
    """What a check found. One that is `severe` makes what comes after it wrong; `numbers` are to be plotted."""

    passed: bool
    text: str
    severe: bool = True
    numbers: Mapping[str, float] = field(default_factory=dict)


def files_as_frozen(bench: Workbench, name: str) -> Health:
    """Whether the files of a set are those that were frozen, and its patches what git says. Raises TaskSetError."""
    report = check_task_set(bench, name)
    lines = [problem.text for problem in report.problems] or ["every file is as it was frozen", *report.notes]
    return Health(not report.problems, "\n".join(lines), numbers={"problems": len(report.problems)})


def instances_proven(bench: Workbench, task_set: LoadedTaskSet, kinds: Collection[HistoryKind]) -> Health:
    """Whether no repository that agents get of these tasks gives its answer away, with each kind of history."""
    faults: list[str] = []
    unseen: set[str] = set()
    for task_id, task in task_set.tasks.items():
        if not bench.mirror_path(task.repository).exists():
            unseen.add(task.repository)
            continue
        for kind in kinds:
            try:
                mirror = bench.mirror(task.repository)
                bench.instances.get(mirror, task.parent, task.commit, hidden_paths(task), kind)
            except (InstanceUnproven, HistoryError) as error:
                faults.append(f"{task_id}: {error}")
    lines = faults + [f"not looked at: run `evalpipe mine {name}`, which makes its mirror" for name in sorted(unseen)]
    return Health(
        not lines,
        "\n".join(lines) or f"{len(task_set.tasks)} repositories hold nothing of their answers",
        severe=bool(faults),
        numbers={"unproven": len(faults)},
    )


def validation_is_recent(bench: Workbench, task_set: LoadedTaskSet) -> Health:
    """Whether every task was validated in the last `MOST_DAYS` days."""
    today = bench.clock().date()
    ages = {
        task_id: (today - max(map(dt.date.fromisoformat, task.validated_on))).days
        for task_id, task in task_set.tasks.items()
    }
    old = [task_id for task_id, days in ages.items() if days > MOST_DAYS]
    text = f"the oldest validation is {max(ages.values())} days old"
    if old:
        text += f"; of {len(old)} of {len(ages)} tasks it is older than {MOST_DAYS} days: freeze a new set"
    return Health(not old, text, severe=False, numbers={"oldest_days": max(ages.values()), "old_tasks": len(old)})


def enough_tasks(sweep: SweepConfig, task_set: LoadedTaskSet) -> Health:
    """Whether tasks and samples can show the smallest difference that the sweep's decision turns on, or any at all.

    With 80 % power at the level that Holm leaves the smallest p value, over the spread that `evalpipe plan` assumes.
    """
    number = len(task_set.tasks)
    alpha = LEVEL / max(1, len(sweep.comparisons) * len(sweep.modes))
    seen = planned_difference(ASSUMED_SPREAD, tasks=number, samples=sweep.samples, alpha=alpha)
    wanted = sweep.smallest_difference
    size = f"{number} tasks with {sweep.samples} samples"
    numbers: dict[str, float] = {"tasks": number}
    if seen is not None:
        numbers["detectable_difference"] = seen
    if seen is not None and (wanted is None or seen <= wanted):
        return Health(True, f"{size} can show {seen:.2f} or more", severe=False, numbers=numbers)
    if wanted is None:
        return Health(False, f"{size} cannot show any difference: freeze more tasks", severe=False, numbers=numbers)
    needed = tasks_needed(ASSUMED_SPREAD, difference=wanted, samples=sweep.samples, alpha=alpha)
    shown = "no difference" if seen is None else f"{seen:.2f} or more"
    text = f"{size} can show {shown}, and the decision turns on {wanted:.2f}: that takes {needed} tasks"
    return Health(False, text, severe=False, numbers={**numbers, "tasks_needed": needed})


def sandboxes_probed(results: SweepResults) -> Health:
    """Whether every configuration with results ran in sandboxes that were probed before its first attempt."""
    unproven = [
        f"{agent} ({mode}): {', '.join(missing)}"
        for (agent, mode), manifest in results.manifests.items()
        if (missing := sorted(set(manifest["environment"]["images"]) - set(manifest.get("probe", {}))))
    ]
    text = "; ".join(f"no probe of {one}" for one in unproven) or "every image was probed for every configuration"
    return Health(not unproven, text, numbers={"unproven": len(unproven)})


def manifests_agree(results: SweepResults) -> Health:
    """Whether the agents of a sweep, in each prompt mode, ran on the same tasks under the same conditions.

    Another task set or environment makes a comparison wrong. Another version of the engine or of evalpipe, or other
    limits of an agent's own, must be known to a reader, and are no reason against a report, which prints them.
    """
    lines: list[str] = []
    severe = False
    for mode in results.modes:
        names = [agent.name for agent in results.agents if (agent.name, mode) in results.manifests]
        for differ in differing_conditions({name: results.manifests[name, mode] for name in names}):
            lines += [f"{mode}: {line}" for line in differ.lines()]
            severe |= any(one.path.startswith(_CONDITIONS) and one.path not in _HARMLESS for one in differ.found)
    text = "\n".join(lines) or "all agents ran under the same conditions"
    return Health(not lines, text, severe=severe, numbers={"differences": len(lines)})


def few_invalid_attempts(results: SweepResults, samples: Samples) -> Health:
    """Whether of no agent more than `MOST_INVALID` of the attempts are invalid (infrastructure)."""
    shares = {
        f"{agent} ({mode})": tally.invalid / (tally.graded + tally.invalid)
        for (agent, mode), tally in samples.tallies.items()
        if tally.graded + tally.invalid
    }
    above = {name: share for name, share in shares.items() if share > MOST_INVALID}
    high = [f"{name}: {share:.0%} of its attempts are invalid" for name, share in above.items()]
    text = "; ".join(high) or f"at most {max(shares.values(), default=0.0):.0%} of an agent's attempts are invalid"
    advice = f"; `evalpipe run {results.sweep}` makes them again while tries are left" if high else ""
    numbers = {"most_invalid": max(shares.values(), default=0.0)}
    return Health(not high, text + advice, severe=False, numbers=numbers)


def tasks_tell_agents_apart(results: SweepResults, samples: Samples) -> Health:
    """Whether enough tasks are neither solved by every agent every time nor by none ever; see `TaskSignal`."""
    signals = task_signals(results, samples).values()
    counts = {signal: sum(one.signal is signal for one in signals) for signal in TaskSignal}
    flat = counts[TaskSignal.SATURATED] + counts[TaskSignal.DEAD]
    passed = flat <= (1 - LEAST_INFORMATIVE) * len(results.tasks)
    text = (
        f"of {len(results.tasks)} tasks {counts[TaskSignal.SATURATED]} are solved by every agent in every sample and "
        f"{counts[TaskSignal.DEAD]} by none"
    )
    advice = "" if passed else ": they rank nobody; freeze a set of newer changes for the next sweep"
    numbers = {signal.value: float(count) for signal, count in counts.items()}
    return Health(passed, text + advice, severe=False, numbers=numbers)
