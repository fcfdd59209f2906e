"""What a reader must know before believing a number: reasons why there is no result, and cautions.

The two controls decide whether there is a result at all. If the reference changes do not pass, or doing
nothing does, the grading is wrong and every other number with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.reports import wording
from evalpipe.reports.records import AgentInfo, AgentRole, SweepResults, is_provisional
from evalpipe.reports.samples import Samples, Tally

CALIBRATION_EMPTY = "empty"


class NoResult(StrEnum):
    """Why a sweep has no results."""

    NO_TASKS = "no_tasks"
    REFERENCE_NOT_GRADED = "reference_not_graded"
    REFERENCE_FAILED = "reference_failed"
    EMPTY_NOT_GRADED = "empty_not_graded"
    EMPTY_PASSED = "empty_passed"


class Caution(StrEnum):
    """What limits the results there are."""

    CANNOT_RANK = "cannot_rank"
    CALIBRATION_FAILED = "calibration_failed"
    NOT_CALIBRATED = "not_calibrated"
    PROVISIONAL = "provisional"
    SCRIPTED = "scripted"
    NO_CONTROL = "no_control"
    SAMPLES_MISSING = "samples_missing"
    BUDGET_STOPPED = "budget_stopped"
    ATTEMPTS_INVALID = "attempts_invalid"
    INTEGRITY_FLAGGED = "integrity_flagged"
    STRAY_ROWS = "stray_rows"
    PATCHES_LOST = "patches_lost"
    MAY_HAVE_BEEN_SEEN = "may_have_been_seen"
    FEW_TASKS = "few_tasks"
    NO_COMPARISON = "no_comparison"
    UNFINISHED = "unfinished"
    TOO_COARSE = "too_coarse"
    SMALL_DIFFERENCE = "small_difference"
    MANIFESTS_DIFFER = "manifests_differ"
    NO_MANIFEST = "no_manifest"
    WEIGHTED_TOTAL_REFUSED = "weighted_total_refused"
    UNWEIGHTED_CATEGORY = "unweighted_category"
    SATURATED_TASKS = "saturated_tasks"
    DEAD_TASKS = "dead_tasks"
    SUSPECT_TASKS = "suspect_tasks"


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason from a closed list, and the sentence that a reader sees."""

    reason: NoResult | Caution
    text: str


def why_no_result(results: SweepResults, samples: Samples) -> tuple[Finding, ...]:
    """Return why the sweep has no results; empty when it has some."""
    if not results.tasks:
        return (Finding(NoResult.NO_TASKS, f"the task set {wording.plain(results.task_set)} has no tasks"),)
    found = []
    for agent in results.agents:
        for mode in results.modes:
            finding = _control(agent, mode, samples.tallies[agent.name, mode])
            if finding:
                found.append(finding)
    return tuple(found)


def _control(agent: AgentInfo, mode: str, tally: Tally) -> Finding | None:
    name = f"the control {wording.plain(agent.name)} ({wording.plain(mode)} prompts)"
    if agent.role is AgentRole.REFERENCE:
        failed = [task for task, count in tally.counts.items() if count.passes < count.samples]
        if not tally.counts:
            return Finding(NoResult.REFERENCE_NOT_GRADED, f"{name} has no graded sample yet")
        if failed:
            return Finding(
                NoResult.REFERENCE_FAILED,
                f"{name} must solve every task and did not always solve {wording.listed(failed)}",
            )
    if agent.role is AgentRole.EMPTY:
        passed = [task for task, count in tally.counts.items() if count.passes]
        if not tally.counts:
            return Finding(NoResult.EMPTY_NOT_GRADED, f"{name} has no graded sample yet")
        if passed:
            return Finding(
                NoResult.EMPTY_PASSED,
                f"{name} changes nothing and must solve nothing, but solved {wording.listed(passed)}",
            )
    return None


def cannot_rank(results: SweepResults, samples: Samples) -> Finding | None:
    """Return why the contenders cannot be ranked whatever the intervals say, None when they could be."""
    contenders = results.contenders
    if not contenders:
        return Finding(Caution.CANNOT_RANK, "This sweep has no agent but its controls: there is nothing to rank.")
    counts = [
        count
        for agent in contenders
        for mode in results.modes
        for count in samples.tallies[agent.name, mode].counts.values()
    ]
    if not counts:
        return Finding(Caution.CANNOT_RANK, "No agent has a sample that counts: there is nothing to rank.")
    if all(count.passes == count.samples for count in counts):
        text = "Every graded sample of every agent resolved its task: these tasks cannot rank anyone."
        return Finding(Caution.CANNOT_RANK, text)
    if not any(count.passes for count in counts):
        text = "No graded sample of any agent resolved its task: these tasks cannot rank anyone."
        return Finding(Caution.CANNOT_RANK, text)
    return None


def cautions(results: SweepResults, samples: Samples) -> tuple[Finding, ...]:
    """Return what limits the results, most serious first; comparisons and weights add their own."""
    found = [
        *_calibration(results.calibration, results),
        *_provisional(results),
        *_scripted(results),
        *_controls_there(results, samples),
        *_samples_there(samples),
        *_budget_held(results),
        *_patches_there(results, samples),
        *_seen(results),
    ]
    tasks = len(results.tasks)
    if tasks < wording.LEAST_TASKS_FOR_A_RATE:
        text = f"{wording.count(tasks, 'task')}: too few for a rate, so fractions are shown"
        found.append(Finding(Caution.FEW_TASKS, text))
    return tuple(found)


def failed_calibrations(calibration: pa.Table) -> list[str]:
    """Return the tasks whose reference patch did not pass, or whose empty patch did, in some repetition."""
    empty = pc.equal(calibration["patch"], pa.scalar(CALIBRATION_EMPTY))
    wrong = calibration.filter(pc.equal(calibration["resolved"], empty))
    return sorted({str(task) for task in wrong["task_id"].to_pylist()})


def _calibration(calibration: pa.Table, results: SweepResults) -> Iterable[Finding]:
    failed = failed_calibrations(calibration)
    if failed:
        text = (
            f"the grading of {wording.listed(failed)} failed its calibration (reference patch must pass, "
            f"empty patch must fail, every time)"
        )
        yield Finding(Caution.CALIBRATION_FAILED, text)
    known = set(calibration["task_id"].to_pylist())
    absent = [task.task_id for task in results.tasks if task.task_id not in known]
    if absent:
        yield Finding(Caution.NOT_CALIBRATED, f"not calibrated yet: {wording.listed(absent)}")


def _provisional(results: SweepResults) -> Iterable[Finding]:
    tasks = [task.task_id for task in results.tasks if task.provisional]
    if is_provisional(results):
        number = len(tasks) or len(results.tasks)
        verb = "is" if number == 1 else "are"
        text = f"{number} of {wording.count(len(results.tasks), 'task')} {verb} {wording.PROVISIONAL}"
        yield Finding(Caution.PROVISIONAL, text)


def _scripted(results: SweepResults) -> Iterable[Finding]:
    names = [agent.name for agent in results.contenders if agent.scripted]
    if names:
        verb = "is" if len(names) == 1 else "are"
        text = f"{wording.listed(names)} {verb} scripted (stored patches, no model): no rate of a model"
        yield Finding(Caution.SCRIPTED, text)


def _controls_there(results: SweepResults, samples: Samples) -> Iterable[Finding]:
    roles = {agent.role for agent in results.agents}
    for role in (AgentRole.REFERENCE, AgentRole.EMPTY):
        if role not in roles:
            text = f"no {role} agent in this sweep: the grading is checked by calibration only"
            yield Finding(Caution.NO_CONTROL, text)
    for agent in results.agents:
        for mode in results.modes:
            counts = samples.tallies[agent.name, mode].counts
            unchecked = [task.task_id for task in results.tasks if task.task_id not in counts]
            if unchecked and counts and not agent.contends:
                text = (
                    f"the control {wording.plain(agent.name)} ({wording.plain(mode)} prompts) has no sample that "
                    f"counts of {wording.listed(unchecked)}: their grading is checked by calibration only"
                )
                yield Finding(Caution.NO_CONTROL, text)


def _samples_there(samples: Samples) -> Iterable[Finding]:
    yield from _per_agent(
        Caution.SAMPLES_MISSING, "not graded", {key: len(t.missing) for key, t in samples.tallies.items()}
    )
    yield from _per_agent(
        Caution.ATTEMPTS_INVALID,
        "invalid, left out of pass@1",
        {key: t.invalid for key, t in samples.tallies.items()},
    )
    yield from _per_agent(
        Caution.INTEGRITY_FLAGGED,
        "flagged for integrity, to be read by a person",
        {key: t.flagged for key, t in samples.tallies.items()},
    )
    if samples.stray:
        text = f"{wording.count(samples.stray, 'graded row')} of no task, agent or sample of this sweep left out"
        yield Finding(Caution.STRAY_ROWS, text)


def _budget_held(results: SweepResults) -> Iterable[Finding]:
    for agent, count in sorted(results.budget_stops.items()):
        missing = wording.count(count, "sample")
        text = f"{wording.plain(agent)}: {missing} not begun, because the sweep's budget was used up"
        yield Finding(Caution.BUDGET_STOPPED, text)


def _patches_there(results: SweepResults, samples: Samples) -> Iterable[Finding]:
    if results.lost_patches:
        lost = pc.is_in(samples.chosen["patch_sha256"], value_set=pa.array(sorted(results.lost_patches), pa.string()))
        rows = samples.chosen.select(["agent", "task_id", "sample"]).filter(lost).to_pylist()
        names = [f"{row['agent']} {row['task_id']} {row['sample']}" for row in rows]
        text = (
            f"the patch of {wording.count(len(names), 'attempt')} is missing from the lake or was changed there "
            f"({wording.listed(names)}): verdicts stand, its lines are not counted; restore it from a backup"
        )
        yield Finding(Caution.PATCHES_LOST, text)


def _seen(results: SweepResults) -> Iterable[Finding]:
    for agent in results.contenders:
        if agent.training_cutoff is not None:
            cutoff = agent.training_cutoff
            number = sum(task.public and task.merge_date <= cutoff for task in results.tasks)
            if number:
                text = (
                    f"{wording.count(number, 'task')} of public repositories merged up to the cutoff of "
                    f"{wording.plain(agent.name)} ({cutoff.isoformat()}): its model may have seen their answers"
                )
                yield Finding(Caution.MAY_HAVE_BEEN_SEEN, text)


def _per_agent(reason: Caution, what: str, numbers: Mapping[tuple[str, str], int]) -> Iterable[Finding]:
    one_mode = len({mode for _, mode in numbers}) == 1
    agents = [
        f"{wording.plain(agent)} {number}" if one_mode else f"{wording.plain(agent)} {wording.plain(mode)} {number}"
        for (agent, mode), number in numbers.items()
        if number
    ]
    total = sum(numbers.values())
    if total:
        text = f"{wording.count(total, 'sample')} {what} ({wording.listed(agents)})"
        yield Finding(reason, text)
