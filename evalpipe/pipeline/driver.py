"""Runs the pipeline's jobs in this process, on the workspace's own Dagster instance, as the command line does.

The runs are the same as those of the UI and land in the same history; what is done already is found by the assets.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterAssetCheckFailedError
from dagster._core.events import RunFailureReason
from dagster_shared.error import SerializableErrorInfo

from evalpipe.config import ConfigError, Problem, RepositoryConfig, SweepConfig, Workspace
from evalpipe.environments import SETTLED, BuildStatus
from evalpipe.lake import DiskFullError
from evalpipe.pipeline import jobs
from evalpipe.pipeline.assembly import build_definitions
from evalpipe.pipeline.due_passes import due_passes, runs_over
from evalpipe.pipeline.partitions import CANDIDATES, RANGE_END, RANGE_START, samples_between
from evalpipe.pipeline.pools import size_pools
from evalpipe.pipeline.sweep_assets import REGRADED_FROM
from evalpipe.pipeline.task_set_assets import LEFT_OUT, task_set_key
from evalpipe.sandbox.owners import is_leftover, owner_id
from evalpipe.stages.attempts import is_attempted
from evalpipe.stages.bench import Workbench
from evalpipe.stages.calibrating import calibration_rows, is_calibrated
from evalpipe.stages.gradings import is_graded
from evalpipe.stages.side_by_side import mine_ahead
from evalpipe.stages.sweeps import (
    EVERY_SAMPLE,
    AgentSweep,
    SampleChoice,
    SampleKey,
    load_sweep_task_set,
    open_agent_sweep,
    sample_keys,
)
from evalpipe.stages.validating import ValidationPass
from evalpipe.tasks import Sampling

OWNER_TAG = ".dagster/evalpipe_owner"
"""On every run of a driver: the process that it runs in, so that a later one knows whether that is still there. The UI
hides tags with this prefix."""

FREE_BYTES_FLOOR = 16 * 1024**2
"""Below this no job starts: Dagster's database and a table of the lake must have a place."""

IsDone = Callable[[Workbench, AgentSweep, SampleKey], bool]

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


@dataclass
class JobFailed(Exception):
    """A job did not do all that was asked. `reasons` are for people; what was done is kept."""

    job: str
    reasons: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self.reasons) or f"the job {self.job} failed; `evalpipe status` and the Dagster UI tell more"


class Driver:
    """The pipeline of one workspace, to be run from this process."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.workspace: Workspace = bench.workspace

    @cached_property
    def instance(self) -> dg.DagsterInstance:
        """The Dagster instance of the workspace, with its state below data/. Raises DiskFullError."""
        _require_room(self.workspace)
        instance = open_instance(self.workspace)
        _end_orphaned_runs(instance)
        size_pools(instance, self.workspace.load_agents().items)
        return instance

    @cached_property
    def definitions(self) -> dg.Definitions:
        """The definitions of the workspace; `freeze` drops them, because it adds to them."""
        return build_definitions(self.workspace, self.bench)

    def run(
        self,
        job: str,
        *,
        partition: str | None = None,
        tags: Mapping[str, str] | None = None,
        ops: Mapping[str, Any] | None = None,
        assets: Sequence[dg.AssetKey] | None = None,
    ) -> None:
        """Run a job to its end. Raises JobFailed when any of it failed, KeyboardInterrupt when it was stopped."""
        self._require_job(job)
        definition = self.definitions.resolve_job_def(job)
        result = definition.execute_in_process(
            run_config={**_QUIET, **({"ops": dict(ops)} if ops else {})},
            instance=self.instance,
            partition_key=partition,
            tags={OWNER_TAG: owner_id(), **(tags or {})},
            asset_selection=assets,
            raise_on_error=False,
        )
        if _was_stopped(result):
            raise KeyboardInterrupt
        if not result.success:
            raise JobFailed(job, list(_reasons(result)))

    def mine(self, repositories: Iterable[RepositoryConfig]) -> None:
        """Mine each repository, side by side. Raises JobFailed after all that could be mined was, and DiskFullError."""
        failures: list[str] = []
        names = [config.name for config in repositories]
        _require_room(self.workspace)
        mine_ahead(self.bench, names)
        for name in names:
            self._collect(failures, jobs.MINE, partition=name)
        if failures:
            raise JobFailed(jobs.MINE, failures)

    def validate(
        self,
        repositories: Sequence[RepositoryConfig],
        *,
        newest: int | None,
        same_day: bool,
        retry_failed: bool = False,
    ) -> list[str]:
        """Build images, run the passes that are due and classify; returns the candidates whose second pass waits.

        `newest` limits the work to so many of the newest candidates of each repository, `retry_failed` tries builds
        again that failed before. Raises JobFailed after all that could be done was done.
        """
        failures: list[str] = []
        options = {"newest": newest, "retry_failed": retry_failed}
        ready = [config for config in repositories if self._build_images(config.name, options, failures)]
        ops = {"validation_runs": {"config": {"same_day": same_day}}}
        waiting: list[str] = []
        for validation_pass in ValidationPass:
            known = self._materialized(["validation_runs"])
            found = due_passes(self.bench, ready, validation_pass, known, newest=newest, same_day=same_day)
            if validation_pass is ValidationPass.SECOND:
                waiting = found.waiting
            # The lake is the truth: Dagster's state may be younger than it, for it can be deleted without loss.
            self.instance.add_dynamic_partitions(str(CANDIDATES.name), found.due)
            order = self.instance.get_dynamic_partitions(str(CANDIDATES.name))
            for tags in runs_over(order, found, validation_pass):
                self._collect(failures, jobs.VALIDATE, tags=tags, ops=ops)
        for config in repositories:
            self._collect(failures, jobs.JUDGE, partition=config.name)
        if failures:
            raise JobFailed(jobs.VALIDATE, failures)
        return waiting

    def freeze(
        self, name: str, repositories: Sequence[str], *, provisional: bool, sampling: Sampling | None = None
    ) -> dict[str, Any]:
        """Freeze the valid candidates of `repositories`, or a sample, as a task set. Raises JobFailed.

        Returns what was left out: `counts` by reason, and the `candidates` that a person can do something about, each
        with `candidate`, `reason` and `detail`.
        """
        options: dict[str, Any] = {"name": name, "repositories": list(repositories), "provisional": provisional}
        if sampling is not None:
            options |= {"sample": sampling.size, "seed": sampling.seed}
        self.run(jobs.FREEZE, ops={"write_task_set": {"config": options}})
        del self.definitions
        event = self.instance.get_latest_materialization_event(task_set_key(name))
        assert event is not None  # the job has just logged it
        assert event.asset_materialization is not None
        left_out = event.asset_materialization.metadata[LEFT_OUT].value
        assert isinstance(left_out, dict)
        return left_out

    def calibrate(self, sweep: SweepConfig) -> None:
        """Calibrate every task of a sweep's set. Raises JobFailed."""
        task_set = load_sweep_task_set(self.bench, sweep)
        known = self._materialized(["task_sets", sweep.task_set, "calibration"])
        due = [
            task_id
            for task_id in task_set.tasks
            if task_id not in known or not is_calibrated(calibration_rows(self.bench, task_set, task_id))
        ]
        if due:
            self.run(jobs.calibrate_job_name(sweep.task_set), tags={RANGE_START: due[0], RANGE_END: due[-1]})

    def attempt(self, sweep: SweepConfig, agents: Sequence[str], choice: SampleChoice = EVERY_SAMPLE) -> None:
        """Make the attempts of `agents` that a sweep, or `choice` of it, still needs. Raises JobFailed."""
        self._sweep_stage(sweep, agents, "agent_runs", is_attempted, choice=choice)

    def grade(self, sweep: SweepConfig, agents: Sequence[str], *, regrade: bool = False) -> None:
        """Grade the attempts of `agents`; with `regrade` also those that were graded before. Raises JobFailed."""
        if regrade:
            tags = {REGRADED_FROM: self.bench.clock().isoformat()}
            self._sweep_stage(sweep, agents, "graded_results", lambda *_: False, run_tags=tags)
        else:
            self._sweep_stage(sweep, agents, "graded_results", is_graded)

    def report(self, sweep: SweepConfig) -> None:
        """Write the tables and the HTML report of a sweep. Raises JobFailed."""
        self.run(jobs.sweep_job_name(sweep.name, "report"))

    def _sweep_stage(
        self,
        sweep: SweepConfig,
        agents: Sequence[str],
        stage: str,
        is_done: IsDone,
        *,
        run_tags: Mapping[str, str] | None = None,
        choice: SampleChoice | None = None,
    ) -> None:
        """Run the stage for the agents that still need it, in one run over the samples between the first due and the
        last: to log again what is done costs 20 ms a partition, and the second `make demo` has 320."""
        due_agents: list[dg.AssetKey] = []
        due: list[SampleKey] = []
        for name in agents:
            key = dg.AssetKey([sweep.name, name, stage])
            part = open_agent_sweep(self.bench, sweep, self.workspace.load_agent(name), run_id="none")
            known = self._materialized(key.path)
            missing = [
                sample
                for sample in sample_keys(sweep, part.task_set)
                if (choice is None or choice.has(sample))
                and (f"{sample.sample}|{sample.task_id}" not in known or not is_done(self.bench, part, sample))
            ]
            if missing:
                due_agents.append(key)
                due += missing
        if due:
            tags = {**samples_between(sweep, load_sweep_task_set(self.bench, sweep), due), **(run_tags or {})}
            self._require_job(jobs.sweep_job_name(sweep.name, stage))
            # A run is over a block of samples, and what was not chosen in it is not to be paid for.
            config = {"tasks": list(choice.tasks), "samples": list(choice.samples)} if choice else {}
            ops = {self._op_name(key): {"config": config} for key in due_agents} if choice else None
            self.run(jobs.sweep_job_name(sweep.name, stage), tags=tags, assets=due_agents, ops=ops)

    def _require_job(self, job: str) -> None:
        if job not in self.definitions.get_repository_def().job_names:
            raise JobFailed(job, [f"there is no job {job}: what it needs was left out, as the warning says"])

    def _op_name(self, key: dg.AssetKey) -> str:
        return self.definitions.get_repository_def().assets_defs_by_key[key].op.name

    def _materialized(self, asset: Sequence[str]) -> set[str]:
        return self.instance.get_materialized_partitions(dg.AssetKey(asset))

    def _collect(self, failures: list[str], job: str, **options: Any) -> None:
        try:
            self.run(job, **options)
        except JobFailed as failed:
            failures += failed.reasons

    def _build_images(self, repository: str, options: Mapping[str, Any], failures: list[str]) -> bool:
        """Build a repository's images; whether any candidate can run. A failed build costs its candidates alone."""
        self._collect(failures, jobs.BUILD_IMAGES, partition=repository, ops={"task_images": {"config": options}})
        rows = self.bench.lake.rows("task_images", repository)
        if any(row["status"] == BuildStatus.BUILT for row in rows):
            return True
        hint = f"; `evalpipe validate {repository} --retry-builds` tries again"
        for row in rows:
            why = row["status"] + (hint if row["status"] in SETTLED else "")
            failures.append(f"{repository}: the environment was not built ({why}):\n{row['log_tail']}")
        return False


def set_dagster_home(workspace: Workspace) -> None:
    """Point Dagster (and what writes caches under it) at the workspace. Absolute paths: a relative one means another
    folder to every process."""
    os.environ["DAGSTER_HOME"] = str(workspace.root)
    os.environ["EVALPIPE_STATE_DIR"] = str(workspace.state_dir)
    os.environ["EVALPIPE_WORKSPACE"] = str(workspace.root)
    os.environ["MPLCONFIGDIR"] = str(workspace.state_dir / "matplotlib")
    # Else a backfill fails for good when the daemon looks at it while the code server starts again.
    os.environ["DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR"] = "1"


def open_instance(workspace: Workspace) -> dg.DagsterInstance:
    """The Dagster instance of the workspace, which is made when there is none.

    One process at a time: of two that make its database together, one fails or leaves it broken.
    """
    set_dagster_home(workspace)
    workspace.state_dir.mkdir(parents=True, exist_ok=True)
    with (workspace.state_dir / "opening.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return dg.DagsterInstance.get()


def initialise_instance(workspace: Workspace) -> None:
    """Make the instance before the UI's processes start, which would all make it."""
    with open_instance(workspace) as instance:
        instance.upgrade()
        size_pools(instance, workspace.load_agents().items)


def known_sweep(workspace: Workspace, name: str, *, even_archived: bool = False) -> SweepConfig:
    """The configuration of a sweep that can run, with every agent that it names there. Raises ConfigError.

    With `even_archived` also one that can be read only.
    """
    sweep = workspace.load_sweep(name)
    file = workspace.shown(workspace.sweeps_dir / f"{name}.yaml")
    problems = [problem for problem in workspace.check_references() if problem.file == file]
    if sweep.archived and not even_archived:
        problems.append(
            Problem(file, "the sweep is archived; remove this line to work with it again", field="archived")
        )
    if problems:
        raise ConfigError(problems)
    return sweep


def _require_room(workspace: Workspace) -> None:
    # Before anything begins: SQLite reports a full disk as an I/O error, and cannot even be read on one.
    workspace.state_dir.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(workspace.state_dir).free
    if free < FREE_BYTES_FLOOR:
        raise DiskFullError(
            errno.ENOSPC,
            f"only {free >> 20} MiB are free for {workspace.data}: free some space there, then run the same again",
        )


def _end_orphaned_runs(instance: dg.DagsterInstance) -> None:
    """End the runs of drivers that were killed: Dagster would show them as running, and keep their places in pools."""
    unfinished = [status for status in dg.DagsterRunStatus if status not in _ENDED]
    for run in instance.get_runs(dg.RunsFilter(statuses=unfinished)):
        owner = run.tags.get(OWNER_TAG)
        if owner is not None and is_leftover(owner, frozenset()):
            instance.report_run_failed(run, "the process of this run was killed; what it had finished is kept")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def _was_stopped(result: dg.ExecuteInProcessResult) -> bool:
    """Whether an interrupt ended the run, which Dagster takes in and gives out as one more failure."""
    return any(
        event.job_failure_data.failure_reason is RunFailureReason.UNEXPECTED_TERMINATION
        for event in result.all_events
        if event.is_job_failure
    )


def _reasons(result: dg.ExecuteInProcessResult) -> Iterable[str]:
    for check in result.get_asset_check_evaluations():
        if not check.passed and check.blocking and check.severity is dg.AssetCheckSeverity.ERROR:
            yield f"{check.asset_key.to_user_string()}: the check {check.check_name} failed: {check.description}"
    for event in result.all_events:
        if not event.is_step_failure:
            continue
        failure = event.step_failure_data
        if failure.error is not None and failure.error.cls_name == DagsterAssetCheckFailedError.__name__:
            continue  # told above, with what it found
        if failure.user_failure_data is not None and failure.user_failure_data.description:
            yield failure.user_failure_data.description
            continue
        texts = list(_causes(failure.error))
        # `package.module.NotARepository: text` is for programmers; the text says what to do.
        ours = [text.partition(": ")[2] for text in texts if text.startswith("evalpipe.")]
        yield ours[0] if ours else f"{texts[-1]} (run {result.run_id}; the Dagster UI has the whole trace)"


def _causes(error: SerializableErrorInfo | None) -> Iterator[str]:
    """The texts of an error and of what caused it, outermost first."""
    while error is not None:
        yield error.message.strip()
        error = error.cause
