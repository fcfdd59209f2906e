"""The gate of a team's CI: a few tasks that an agent always solved, run again, and whether it solves fewer now."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evalpipe.config import AgentConfig, SweepConfig
from evalpipe.manifest import describe_differences, differences
from evalpipe.stages.bench import Workbench
from evalpipe.stages.sweeps import configuration_key, find_agent_sweep, load_sweep_task_set, recorded_manifests
from evalpipe.stats.chosen_tasks import fall_back_p_value
from evalpipe.stats.counts import TaskCount
from evalpipe.stats.paired import PairedComparison, compare_paired
from evalpipe.stats.power import least_discordant_tasks
from evalpipe.tasks import LoadedTaskSet, PromptMode

LEVEL = 0.05


class GateImpossible(Exception):
    """There is nothing that a gate could be held against; the text says what to do."""


class GateVerdict(StrEnum):
    """Whether an agent still solves what it always solved."""

    HELD = "held"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class GateTasks:
    """The tasks of a gate with their counts `before`, some of those `always_solved`, and the manifest of that."""

    before: Mapping[str, TaskCount]
    always_solved: int
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate showed.

    `paired` is now minus before. `fall_back_p` is the chance of so many failures among tasks that were chosen because
    they had none. `lost` are tasks without a sample that counts, `changes` what is not as it was, a line each.
    """

    verdict: GateVerdict
    after: Mapping[str, TaskCount]
    paired: PairedComparison
    fall_back_p: float
    lost: tuple[str, ...]
    changes: tuple[str, ...]


def gate_sweep(sweep: SweepConfig, agent: str, samples: int, label: str | None) -> SweepConfig:
    """The sweep that a gate runs: one agent, the first prompt mode. Its attempts lie beside those of the sweep.

    Attempts under one label are made once; another label makes new ones.
    """
    name = f"{sweep.name}.gate" + (f"-{label}" if label else "")
    changes = {"name": name, "agents": (agent,), "samples": samples, "modes": sweep.modes[:1]}
    return sweep.model_copy(update={**changes, "comparisons": (), "cutoffs": {}})


def gate_tasks(bench: Workbench, sweep: SweepConfig, agent: str, number: int) -> GateTasks:
    """At most `number` of the tasks that an agent solved on every sample when it was measured last in a sweep.

    The same ones each time, and no nearer to one repository or month than to another: drawn by the hash of their ids.
    Raises GateImpossible, TaskSetError, ManifestError.
    """
    task_set = load_sweep_task_set(bench, sweep)
    mode = PromptMode(sweep.modes[0])
    for manifest in reversed(recorded_manifests(bench, sweep.name, agent, mode, task_set)):
        counts = _counts(bench, sweep.name, agent, manifest, task_set)
        if counts:
            break
    else:
        raise GateImpossible(
            f"{agent} has no graded results in {sweep.name} yet: `evalpipe run {sweep.name} --agent {agent}`, then "
            f"`evalpipe grade {sweep.name}`"
        )
    always = [task_id for task_id, count in counts.items() if count.passes == count.samples]
    least = least_discordant_tasks(LEVEL)
    if min(len(always), number) < least:
        raise GateImpossible(
            f"{agent} solved {len(always)} tasks of {sweep.name} on every sample, and {number} are asked for: with "
            f"fewer than {least} no drop could be told from chance"
        )
    drawn = sorted(
        always, key=lambda task_id: hashlib.sha256(f"{task_set.record.revision} {task_id}".encode()).digest()
    )
    chosen = set(drawn[:number])
    return GateTasks({task: counts[task] for task in task_set.tasks if task in chosen}, len(always), manifest)


def gate_result(bench: Workbench, gate: SweepConfig, agent: AgentConfig, chosen: GateTasks) -> GateResult:
    """Compare what a gate's sweep left in the lake with what was before.

    A drop counts as one when the paired test says so, and when the fall-back to be expected of tasks that were chosen
    for their luck does not explain it. Raises GateImpossible when no attempt counts.
    """
    task_set = load_sweep_task_set(bench, gate)
    part = find_agent_sweep(bench, gate, agent, task_set)
    manifest = part.manifests.get(PromptMode(gate.modes[0]))
    counts = {} if manifest is None else _counts(bench, gate.name, agent.name, manifest, task_set)
    after = {task_id: counts[task_id] for task_id in chosen.before if task_id in counts}
    paired = compare_paired(chosen.before, after)
    if manifest is None or paired is None:
        raise GateImpossible(f"no attempt of {agent.name} counts: see `evalpipe status` and the runs in the Dagster UI")
    fall_back = fall_back_p_value(chosen.before, after)
    dropped = paired.difference < 0 and paired.p_value <= LEVEL and fall_back <= LEVEL
    ignore = ("run_id", "created_at", "probe", "samples_per_task", "agent_images")
    found = differences(dict(chosen.manifest), dict(manifest), ignore=ignore)
    return GateResult(
        verdict=GateVerdict.DROPPED if dropped else GateVerdict.HELD,
        after=after,
        paired=paired,
        fall_back_p=fall_back,
        lost=tuple(task_id for task_id in chosen.before if task_id not in after),
        changes=tuple(describe_differences(found, "before", "now")),
    )


def _counts(
    bench: Workbench, sweep: str, agent: str, manifest: Mapping[str, Any], task_set: LoadedTaskSet
) -> dict[str, TaskCount]:
    """Passes and samples that count of each task under one manifest."""
    mode = manifest["task_set"]["prompt_mode"]
    samples: dict[str, list[bool]] = {}
    rows = bench.lake.read("graded_results", sweep, agent, configuration_key(manifest))
    for row in rows.select(["task_id", "prompt_mode", "counts", "resolved", "integrity"]).to_pylist():
        if row["counts"] and row["prompt_mode"] == mode and row["task_id"] in task_set.tasks:
            solved = row["resolved"] and row["integrity"] != "invalid"
            samples.setdefault(row["task_id"], []).append(solved)
    return {task_id: TaskCount(sum(found), len(found)) for task_id, found in samples.items()}


def gate_document(gate: SweepConfig, chosen: GateTasks, result: GateResult) -> dict[str, Any]:
    """A gate as JSON values."""
    return {
        "sweep": gate.name,
        "agent": gate.agents[0],
        "verdict": result.verdict.value,
        "tasks": {
            task_id: {"before": _fraction(count), "now": _fraction(result.after.get(task_id))}
            for task_id, count in chosen.before.items()
        },
        "always_solved": chosen.always_solved,
        "difference": result.paired.difference,
        "p_value": result.paired.p_value,
        "fall_back_p_value": result.fall_back_p,
        "lost": list(result.lost),
        "changes": list(result.changes),
    }


def gate_text(gate: SweepConfig, chosen: GateTasks, result: GateResult) -> str:
    """A gate as a few lines for the log of a CI."""
    failed = [
        f"{task_id} {_fraction(count)}" for task_id, count in result.after.items() if count.passes < count.samples
    ]
    least = least_discordant_tasks(LEVEL)
    lines = [
        f"{gate.name}, {gate.agents[0]}: {result.verdict.value}",
        f"  {len(chosen.before)} of {chosen.always_solved} tasks that were always solved: {_total(chosen.before)} "
        f"samples before, {_total(result.after)} now",
        f"  difference {100 * result.paired.difference:+.0f} points, p = {result.paired.p_value:.3f} "
        f"({result.paired.method.value}); p = {result.fall_back_p:.3f} for the luck with which they were chosen",
        f"  a drop is one when both are at most {LEVEL}; that takes {least} tasks that are solved less",
        f"  solved less: {', '.join(failed) or 'none'}",
    ]
    lines += [f"  without an attempt that counts: {', '.join(result.lost)}"] if result.lost else []
    return "\n".join([*lines, *(f"  changed: {line}" for line in result.changes)])


def _total(counts: Mapping[str, TaskCount]) -> str:
    return f"{sum(one.passes for one in counts.values())} of {sum(one.samples for one in counts.values())}"


def _fraction(count: TaskCount | None) -> str:
    return "none" if count is None else f"{count.passes}/{count.samples}"
