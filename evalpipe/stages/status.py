"""Where a workspace stands: what is done, what waits, and the next command. Reads the lake, runs nothing."""

from dataclasses import asdict, dataclass, field
from typing import Any

from evalpipe.agents import OUTCOME_RULES, AttemptOutcome
from evalpipe.config import AgentConfig, RepositoryConfig, SweepConfig
from evalpipe.stages.attempts import needs_attempt
from evalpipe.stages.bench import Workbench
from evalpipe.stages.calibrating import calibration_rows, is_calibrated
from evalpipe.stages.images import ImageCounts, count_images
from evalpipe.stages.sweeps import find_agent_sweep, load_sweep_task_set, sample_keys
from evalpipe.stages.validating import SIDES, ValidationPass, second_pass_done, second_pass_due, stress_pass_due
from evalpipe.tasks import LoadedTaskSet, TaskSetError, frozen_sets, load_task_set
from evalpipe.validation import ValidationClass


@dataclass
class RepositoryStatus:
    """A repository: changes seen, candidates kept, passes done, second passes that could run now, images, classes."""

    name: str
    changes: int
    kept: int
    first_passes: int
    second_passes: int
    second_passes_due: int
    stress_passes_due: int
    images: ImageCounts
    classes: dict[str, int]


@dataclass
class TaskSetStatus:
    """A frozen set."""

    name: str
    tasks: int
    revision: str
    provisional: bool
    calibrated: int


@dataclass
class AgentStatus:
    """One agent of a sweep, in samples: asked for, attempted so that they count, invalid, to be run, graded."""

    name: str
    samples: int
    attempted: int
    invalid: int
    due: int
    graded: int


@dataclass
class SweepStatus:
    """A sweep that is not archived; `waits_for` names what keeps it from running."""

    name: str
    task_set: str
    agents: list[AgentStatus] = field(default_factory=list)
    report: str | None = None
    waits_for: str | None = None


@dataclass
class WorkspaceStatus:
    """The whole workspace. `problems` are files that do not load; `next_steps` are commands, the first one first."""

    repositories: list[RepositoryStatus]
    task_sets: list[TaskSetStatus]
    sweeps: list[SweepStatus]
    problems: list[str]
    next_steps: list[str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def workspace_status(bench: Workbench) -> WorkspaceStatus:
    """Gather the status of a workspace. Raises LakeError when a table cannot be read."""
    workspace = bench.workspace
    repositories, agents, sweeps = workspace.load_repositories(), workspace.load_agents(), workspace.load_sweeps()
    problems = [*repositories.problems, *agents.problems, *sweeps.problems, *workspace.check_references()]
    texts = [str(problem) for problem in problems]
    found = WorkspaceStatus(
        repositories=[_repository(bench, config) for config in repositories.items.values()],
        task_sets=_task_sets(bench, texts),
        sweeps=[_sweep(bench, sweep, agents.items) for sweep in sweeps.items.values() if not sweep.archived],
        problems=texts,
        next_steps=[],
    )
    found.next_steps = _next_steps(found)
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
        record = task_set.record
        found.append(
            TaskSetStatus(
                record.name, len(task_set.tasks), record.revision, record.provisional, _calibrated(bench, task_set)
            )
        )
    return found


def _calibrated(bench: Workbench, task_set: LoadedTaskSet) -> int:
    return sum(is_calibrated(calibration_rows(bench, task_set, task_id)) for task_id in task_set.tasks)


def _sweep(bench: Workbench, sweep: SweepConfig, agents: dict[str, AgentConfig]) -> SweepStatus:
    status = SweepStatus(sweep.name, sweep.task_set)
    try:
        task_set = load_sweep_task_set(bench, sweep)
    except TaskSetError as error:
        status.waits_for = str(error)
        return status
    for name in sweep.agents:
        if name in agents:
            status.agents.append(_agent(bench, sweep, agents[name], task_set))
    path = bench.report_path(sweep.name)
    status.report = str(path) if path.exists() else None
    return status


def _agent(bench: Workbench, sweep: SweepConfig, agent: AgentConfig, task_set: LoadedTaskSet) -> AgentStatus:
    part = find_agent_sweep(bench, sweep, agent, task_set)
    asked = {(key.task_id, key.sample) for key in sample_keys(sweep, task_set)}
    attempts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    graded: set[tuple[str, str]] = set()
    for mode in part.manifests:
        place = (sweep.name, agent.name, part.configuration(mode))
        runs = bench.lake.read("agent_runs", *place).select(["task_id", "sample", "attempt", "outcome"])
        for row in runs.sort_by("attempt").to_pylist():
            attempts.setdefault((row["task_id"], row["sample"]), []).append(row)
        rows = bench.lake.read("graded_results", *place).select(["task_id", "sample"]).to_pylist()
        graded |= {(row["task_id"], row["sample"]) for row in rows}
    found = [rows for key, rows in attempts.items() if key in asked]
    attempted = sum(OUTCOME_RULES[AttemptOutcome(rows[-1]["outcome"])].counts for rows in found)
    again = sum(needs_attempt(rows, agent.retry_policy.max_attempts) for rows in found)
    return AgentStatus(
        name=agent.name,
        samples=len(asked),
        attempted=attempted,
        invalid=len(found) - attempted,
        due=len(asked) - len(found) + again,
        graded=len(graded & asked),
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
        elif any(agent.graded < agent.samples for agent in sweep.agents):
            steps.append(f"evalpipe grade {sweep.name}")
        elif sweep.report is None:
            steps.append(f"evalpipe report {sweep.name}")
    return steps


def _has_passes_due(repository: RepositoryStatus) -> bool:
    return bool(repository.second_passes_due or repository.stress_passes_due)


def _is_behind(repository: RepositoryStatus) -> bool:
    """Whether both passes ran and the classes do not know it: evalpipe was stopped between the two."""
    pending = repository.classes.get(ValidationClass.PENDING, 0)
    return repository.second_passes == repository.kept and (pending > 0 or not repository.classes)
