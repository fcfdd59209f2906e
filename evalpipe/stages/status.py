"""Where a workspace stands: what is done, what is stale, what is blocked and by what, and the next command.

Reads the lake, runs nothing. What is running now only Dagster knows.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from evalpipe.agents import OUTCOME_RULES, AttemptOutcome
from evalpipe.config import AgentConfig, RepositoryConfig, SweepConfig
from evalpipe.stages.attempts import needs_attempt
from evalpipe.stages.bench import Workbench
from evalpipe.stages.calibrating import calibration_rows, is_calibrated
from evalpipe.stages.images import ImageCounts, count_images
from evalpipe.stages.sweeps import find_agent_sweep, load_sweep_task_set, recorded_configurations, sample_keys
from evalpipe.stages.validating import SIDES, ValidationPass, second_pass_done, second_pass_due, stress_pass_due
from evalpipe.tasks import LoadedTaskSet, PromptMode, TaskSetError, frozen_sets, load_task_set
from evalpipe.validation import ValidationClass


@dataclass
class RepositoryStatus:
    """A repository: changes seen, candidates kept, passes done, images, classes.

    Second passes are due when they could run now, and waiting when their day has not come.
    """

    name: str
    changes: int
    kept: int
    first_passes: int
    second_passes: int
    second_passes_due: int
    second_passes_waiting: int
    stress_passes_due: int
    images: ImageCounts
    classes: dict[str, int]


@dataclass
class TaskSetStatus:
    """A frozen set; `miscalibrated` are tasks whose reference or empty patch was misjudged."""

    name: str
    tasks: int
    revision: str
    provisional: bool
    calibrated: int
    miscalibrated: list[str]


@dataclass
class AgentStatus:
    """One agent of a sweep, in samples: asked for, attempted so that they count, invalid, to be run, graded.

    `given_up` are invalid ones whose tries are used up, `over_budget` those that the sweep's budget stopped, `stale`
    those that were attempted under an earlier state of the agent's file and not under the present one, `unrecorded`
    those of whose attempts the manifest is gone.
    """

    name: str
    samples: int
    attempted: int
    invalid: int
    due: int
    graded: int
    given_up: int
    over_budget: int
    stale: int
    unrecorded: int
    graded_at: dt.datetime | None = field(repr=False, default=None)


@dataclass
class SweepStatus:
    """A sweep that is not archived; `waits_for` names what keeps it from running.

    `without_text` counts, by prompt mode, the tasks that have no text in a mode that the sweep asks for.
    """

    name: str
    task_set: str
    agents: list[AgentStatus] = field(default_factory=list)
    without_text: dict[str, int] = field(default_factory=dict)
    report: str | None = None
    report_is_old: bool = False
    waits_for: str | None = None


@dataclass
class WorkspaceStatus:
    """The whole workspace. `problems` are files that do not load; `next_steps` are commands, the first one first.

    `running`, `stale` and `blocked` are for people, a line each.
    """

    repositories: list[RepositoryStatus]
    task_sets: list[TaskSetStatus]
    sweeps: list[SweepStatus]
    problems: list[str]
    next_steps: list[str]
    stale: list[str]
    blocked: list[str]
    running: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        document = asdict(self)
        for sweep in document["sweeps"]:
            for agent in sweep["agents"]:
                del agent["graded_at"]
        return document


def workspace_status(bench: Workbench) -> WorkspaceStatus:
    """Gather the status of a workspace. Raises LakeError when a table cannot be read."""
    workspace = bench.workspace
    repositories, agents, sweeps = workspace.load_repositories(), workspace.load_agents(), workspace.load_sweeps()
    problems = [*repositories.problems, *agents.problems, *sweeps.problems, *workspace.check_references()]
    texts = [str(problem) for problem in problems]
    task_sets = _task_sets(bench, texts)
    miscalibrated = {task_set.name: frozenset(task_set.miscalibrated) for task_set in task_sets}
    found = WorkspaceStatus(
        repositories=[_repository(bench, config) for config in repositories.items.values()],
        task_sets=task_sets,
        sweeps=[
            _sweep(bench, sweep, agents.items, miscalibrated.get(sweep.task_set, frozenset()))
            for sweep in sweeps.items.values()
            if not sweep.archived
        ],
        problems=texts,
        next_steps=[],
        stale=[],
        blocked=[],
    )
    found.next_steps = _next_steps(found)
    found.stale = list(_stale(found))
    found.blocked = [*_blocked(found), *_failed_probes(bench, found), *_waiting(bench)]
    return found


def _repository(bench: Workbench, config: RepositoryConfig) -> RepositoryStatus:
    name = config.name
    rows = bench.lake.rows("candidate_commits", name)
    kept = [row["candidate_id"] for row in rows if row["reason"] == "kept"]
    done = {one: {key for key in kept if bench.lake.has("validation_runs", key, one)} for one in SIDES}
    classes: dict[str, int] = {}
    for row in bench.lake.rows("validated_tasks", name):
        classes[row["validation_class"]] = classes.get(row["validation_class"], 0) + 1
    return RepositoryStatus(
        name=name,
        changes=len(rows),
        kept=len(kept),
        first_passes=len(done[ValidationPass.FIRST]),
        second_passes=len(done[ValidationPass.SECOND]),
        second_passes_due=sum(
            second_pass_due(bench, key) and not second_pass_done(bench, key) for key in done[ValidationPass.FIRST]
        ),
        second_passes_waiting=sum(
            not second_pass_due(bench, key) for key in done[ValidationPass.FIRST] - done[ValidationPass.SECOND]
        ),
        stress_passes_due=sum(stress_pass_due(bench, config, key) for key in done[ValidationPass.FIRST]),
        images=count_images(bench.lake.rows("task_images", name)),
        classes=classes,
    )


def _task_sets(bench: Workbench, problems: list[str]) -> list[TaskSetStatus]:
    found = []
    for folder in frozen_sets(bench.workspace.task_sets_dir):
        try:
            task_set = load_task_set(folder)
        except TaskSetError as error:
            problems.append(str(error))
            continue
        rows = {task_id: calibration_rows(bench, task_set, task_id) for task_id in task_set.tasks}
        found.append(
            TaskSetStatus(
                name=task_set.record.name,
                tasks=len(task_set.tasks),
                revision=task_set.record.revision,
                provisional=task_set.record.provisional,
                calibrated=sum(map(is_calibrated, rows.values())),
                miscalibrated=[task_id for task_id, made in rows.items() if made and not is_calibrated(made)],
            )
        )
    return found


def _sweep(
    bench: Workbench, sweep: SweepConfig, agents: dict[str, AgentConfig], miscalibrated: frozenset[str]
) -> SweepStatus:
    status = SweepStatus(sweep.name, sweep.task_set)
    folder = bench.workspace.task_sets_dir / sweep.task_set
    # Drafts of prompts may be there before the set is; its tasks only come with it.
    if folder not in frozen_sets(folder.parent) and not (folder / "tasks").is_dir():
        status.waits_for = f"its task set {sweep.task_set} is not frozen yet"
        return status
    try:
        task_set = load_sweep_task_set(bench, sweep)
    except TaskSetError as error:
        status.waits_for = str(error)
        return status
    possible = _possible_samples(sweep, task_set, miscalibrated)
    for name in sweep.agents:
        if name in agents:
            status.agents.append(_agent(bench, sweep, agents[name], task_set, possible))
    for mode in map(PromptMode, sweep.modes):
        if lacking := sum(mode not in task.problem.texts() for task in task_set.tasks.values()):
            status.without_text[mode.value] = lacking
    path = bench.report_path(sweep.name)
    bench.lake.folder.refresh(path)
    if path.exists():
        written = dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC)
        status.report = str(path)
        status.report_is_old = any(agent.graded_at and agent.graded_at > written for agent in status.agents)
    return status


def _possible_samples(
    sweep: SweepConfig, task_set: LoadedTaskSet, miscalibrated: frozenset[str]
) -> set[tuple[str, str]]:
    """Those that `evalpipe run` would make: of tasks with a text in the sample's mode that did not fail calibration."""
    return {
        (key.task_id, key.sample)
        for key in sample_keys(sweep, task_set)
        if key.mode in task_set.tasks[key.task_id].problem.texts() and key.task_id not in miscalibrated
    }


def _agent(
    bench: Workbench,
    sweep: SweepConfig,
    agent: AgentConfig,
    task_set: LoadedTaskSet,
    possible: set[tuple[str, str]],
) -> AgentStatus:
    part = find_agent_sweep(bench, sweep, agent, task_set)
    asked = {(key.task_id, key.sample) for key in sample_keys(sweep, task_set)}
    present = {part.configuration(mode) for mode in part.manifests}
    recorded = recorded_configurations(bench, sweep.name, agent.name)
    attempts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    earlier: set[tuple[str, str]] = set()
    unrecorded: set[tuple[str, str]] = set()
    runs = bench.lake.read("agent_runs", sweep.name, agent.name)
    for row in runs.select(["configuration", "task_id", "sample", "attempt", "outcome"]).sort_by("attempt").to_pylist():
        key = (row["task_id"], row["sample"])
        if row["configuration"] not in recorded:
            unrecorded.add(key)
        elif row["configuration"] not in present:
            earlier.add(key)
        elif key in asked:
            attempts.setdefault(key, []).append(row)
    grades = bench.lake.read("graded_results", sweep.name, agent.name)
    graded = {
        (row["task_id"], row["sample"]): row["graded_at"]
        for row in grades.select(["configuration", "task_id", "sample", "graded_at"]).to_pylist()
        if row["configuration"] in present
    }
    found = list(attempts.values())
    last = [AttemptOutcome(rows[-1]["outcome"]) for rows in found]
    attempted = sum(OUTCOME_RULES[outcome].counts for outcome in last)
    due = {key for key, rows in attempts.items() if needs_attempt(rows, agent.retry_policy.max_attempts)}
    return AgentStatus(
        name=agent.name,
        samples=len(asked),
        attempted=attempted,
        invalid=len(found) - attempted,
        due=len(possible & (due | (asked - attempts.keys() - unrecorded))),
        graded=len(graded.keys() & asked),
        given_up=len(found) - attempted - len(due),
        over_budget=last.count(AttemptOutcome.BUDGET_STOP),
        stale=len((earlier & asked) - attempts.keys()),
        unrecorded=len((unrecorded & asked) - attempts.keys()),
        graded_at=max(graded.values(), default=None),
    )


def _next_steps(status: WorkspaceStatus) -> list[str]:
    steps = ["evalpipe doctor"] if status.problems else []
    for repository in status.repositories:
        if not repository.changes:
            steps.append(f"evalpipe mine {repository.name}")
        elif repository.first_passes < repository.kept or _has_passes_due(repository) or _is_behind(repository):
            steps.append(f"evalpipe validate {repository.name}")
    valid = sum(repository.classes.get(ValidationClass.VALID, 0) for repository in status.repositories)
    frozen = {task_set.name for task_set in status.task_sets}
    for sweep in status.sweeps:
        if sweep.task_set not in frozen:
            if valid:
                steps.append(f"evalpipe freeze {sweep.task_set}")
        elif any(agent.due for agent in sweep.agents):
            steps.append(f"evalpipe run {sweep.name}")
        elif any(agent.graded < agent.attempted + agent.invalid for agent in sweep.agents):
            steps.append(f"evalpipe grade {sweep.name}")
        elif sweep.report is None or sweep.report_is_old:
            steps.append(f"evalpipe report {sweep.name}")
    return steps


def _stale(status: WorkspaceStatus) -> Iterator[str]:
    for sweep in status.sweeps:
        for agent in sweep.agents:
            if agent.stale:
                yield (
                    f"{sweep.name}: {agent.stale} samples of {agent.name} are of an earlier state of its file or its "
                    f"sweep; `evalpipe run {sweep.name} --agent {agent.name}` makes them anew, beside the old ones"
                )
        if sweep.report_is_old:
            yield f"{sweep.name}: its report is older than its grades; `evalpipe report {sweep.name}`"


def _blocked(status: WorkspaceStatus) -> Iterator[str]:
    for one in status.repositories:
        if one.second_passes_waiting:
            yield f"{one.name}: {one.second_passes_waiting} second passes wait for tomorrow (UTC)"
        if one.images.candidates_without:
            yield (
                f"{one.name}: {one.images.candidates_without} candidates have no environment, because "
                f"{one.images.failed_builds} builds failed; `evalpipe validate {one.name} --retry-builds` tries again"
            )
    for task_set in status.task_sets:
        if task_set.miscalibrated:
            names = ", ".join(task_set.miscalibrated)
            yield f"{task_set.name}: no attempt is made at {names}, which failed the calibration"
    for sweep in status.sweeps:
        if sweep.waits_for:
            yield f"{sweep.name}: {sweep.waits_for}"
        for mode, tasks in sweep.without_text.items():
            yield (
                f"{sweep.name}: {tasks} tasks have no {mode} text, so no agent is run on them with one; write texts "
                f"(`evalpipe prompts draft`) and freeze a set of another name, or take `{mode}` out of the modes"
            )
        for agent in sweep.agents:
            yield from (f"{sweep.name}: {reason}" for reason in _held_back(agent))


def _held_back(agent: AgentStatus) -> Iterator[str]:
    if agent.unrecorded:
        yield (
            f"the manifest of {agent.unrecorded} attempted samples of {agent.name} is gone, so they are in no report; "
            "`evalpipe lake verify` names what to restore"
        )
    if agent.given_up:
        yield f"{agent.given_up} samples of {agent.name} stay invalid, their tries are used up"
    if agent.over_budget:
        yield f"{agent.over_budget} samples of {agent.name} wait for a larger budget_usd"


def _failed_probes(bench: Workbench, status: WorkspaceStatus) -> Iterator[str]:
    """Sandboxes that were not as promised when an agent was to run the last time."""
    for sweep in status.sweeps:
        newest: dict[tuple[str, str], dict[str, Any]] = {}
        for row in bench.lake.read("probes", sweep.name).sort_by("probed_at").to_pylist():
            newest[row["agent"], row["image_digest"]] = row
        for (agent, image), row in newest.items():
            if row["findings"]:
                yield f"{sweep.name}: {agent} is not run in {image}: {'; '.join(row['findings'])}"


def _waiting(bench: Workbench) -> Iterator[str]:
    """Files that the store of the lake does not have: to read the lake has just put there what could be put."""
    if count := len(bench.lake.folder.waiting()):
        yield f"the lake: {count} files wait to be put into {bench.lake.folder.place}; `evalpipe lake push` says which"


def _has_passes_due(repository: RepositoryStatus) -> bool:
    return bool(repository.second_passes_due or repository.stress_passes_due)


def _is_behind(repository: RepositoryStatus) -> bool:
    """Whether both passes ran and the classes do not know it: evalpipe was stopped between the two."""
    pending = repository.classes.get(ValidationClass.PENDING, 0)
    return repository.second_passes == repository.kept and (pending > 0 or not repository.classes)
