"""Schedules, and the sensors that carry a scheduled sweep on. All are stopped until somebody switches them on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from evalpipe.config import RepositoryConfig, SweepConfig
from evalpipe.pipeline.due_passes import due_passes, runs_over
from evalpipe.pipeline.jobs import JUDGE, VALIDATE, stage_keys, sweep_job_name
from evalpipe.pipeline.partitions import CANDIDATES, RANGE_END, RANGE_START, whole_sweep
from evalpipe.stages.bench import Workbench
from evalpipe.stages.validating import ValidationPass
from evalpipe.stages.validation_rows import day_of
from evalpipe.tasks import LoadedTaskSet

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

    Jobs = Mapping[str, UnresolvedAssetJobDefinition]

# 06:00 UTC on the first day of each quarter.
QUARTERLY = "0 6 1 1,4,7,10 *"

FOLLOW_UP_S = 3600
"""How often it is looked for passes that are due: the lake is read for each candidate."""


def quarterly_schedule(sweep: SweepConfig, task_set: LoadedTaskSet, jobs: "Jobs") -> dg.ScheduleDefinition:
    """Runs every agent of a sweep each quarter; what was run under the same configuration is not run again."""
    tags = whole_sweep(sweep, task_set)

    @dg.schedule(
        name=sweep_job_name(sweep.name, "quarterly"),
        job=jobs[sweep_job_name(sweep.name, "agent_runs")],
        cron_schedule=QUARTERLY,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"The quarterly rerun of {sweep.name}: its agents; the sensors of the sweep then grade and report.",
    )
    def quarterly() -> dg.RunRequest:
        # Not as tags of the schedule: Dagster lets only a run request name a range.
        return dg.RunRequest(tags=tags)

    return quarterly


def sweep_sensors(sweep: SweepConfig, task_set: LoadedTaskSet, jobs: "Jobs") -> list[dg.SensorDefinition]:
    """Grades after attempts, reports after grades: only after runs that covered the sweep and succeeded."""
    attempts, grades, report = (
        jobs[sweep_job_name(sweep.name, stage)] for stage in ("agent_runs", "graded_results", "report")
    )
    tags = whole_sweep(sweep, task_set)
    attempted, graded = stage_keys(sweep, "agent_runs"), stage_keys(sweep, "graded_results")

    @dg.run_status_sensor(
        name=sweep_job_name(sweep.name, "grade_after_attempts"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[attempts],
        request_job=grades,
        default_status=dg.DefaultSensorStatus.STOPPED,
    )
    def grade_after_attempts(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if not _covers(context.dagster_run, tags, attempted):
            return dg.SkipReason("the run made a part of the attempts")
        return dg.RunRequest(run_key=context.dagster_run.run_id, tags=tags)

    @dg.run_status_sensor(
        name=sweep_job_name(sweep.name, "report_after_grades"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[grades],
        request_job=report,
        default_status=dg.DefaultSensorStatus.STOPPED,
    )
    def report_after_grades(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if not _covers(context.dagster_run, tags, graded):
            return dg.SkipReason("the run graded a part of the attempts")
        return dg.RunRequest(run_key=context.dagster_run.run_id)

    return [grade_after_attempts, report_after_grades]


def follow_up_sensors(repositories: Mapping[str, RepositoryConfig], jobs: "Jobs") -> list[dg.SensorDefinition]:
    """Asks for second passes whose day has come and for stress passes, and judges after validations that succeeded."""
    passes = (ValidationPass.SECOND, ValidationPass.STRESS)

    @dg.sensor(
        name="passes_that_are_due",
        job=jobs[VALIDATE],
        minimum_interval_seconds=FOLLOW_UP_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Second passes over candidates whose first is a day old, and stress passes over what looks valid.",
    )
    def passes_that_are_due(
        context: dg.SensorEvaluationContext, bench: dg.ResourceParam[Workbench]
    ) -> Iterator[dg.RunRequest]:
        known = context.instance.get_materialized_partitions(dg.AssetKey("validation_runs"))
        order = context.instance.get_dynamic_partitions(str(CANDIDATES.name))
        today = day_of(bench.clock())
        for one in passes:
            found = due_passes(bench, list(repositories.values()), one, known)
            for tags in runs_over(order, found, one):
                # What fails is asked for again on the next day, and not at every look.
                yield dg.RunRequest(run_key=f"{tags[RANGE_START]} {tags[RANGE_END]} {today}", tags=tags)

    @dg.run_status_sensor(
        name="judge_after_validation",
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[jobs[VALIDATE]],
        request_job=jobs[JUDGE],
        default_status=dg.DefaultSensorStatus.STOPPED,
    )
    def judge_after_validation(context: dg.RunStatusSensorContext) -> Iterator[dg.RunRequest]:
        for name in repositories:
            yield dg.RunRequest(run_key=f"{context.dagster_run.run_id} {name}", partition_key=name)

    return [passes_that_are_due, judge_after_validation]


def _covers(run: dg.DagsterRun, tags: Mapping[str, str], keys: Sequence[dg.AssetKey]) -> bool:
    """Whether a run was of every agent, task and sample: a run of one agent belongs to whoever started it."""
    selected = run.asset_selection
    return tags.items() <= run.tags.items() and (not selected or selected >= set(keys))
