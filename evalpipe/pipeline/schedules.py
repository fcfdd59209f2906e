"""Schedules, and the sensors that carry a scheduled sweep on. All are stopped until somebody switches them on."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from evalpipe.config import SweepConfig
from evalpipe.pipeline.jobs import stage_keys, sweep_job_name
from evalpipe.pipeline.partitions import whole_sweep
from evalpipe.tasks import LoadedTaskSet

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

    Jobs = Mapping[str, UnresolvedAssetJobDefinition]

# 06:00 UTC on the first day of each quarter.
QUARTERLY = "0 6 1 1,4,7,10 *"


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


def _covers(run: dg.DagsterRun, tags: Mapping[str, str], keys: Sequence[dg.AssetKey]) -> bool:
    """Whether a run was of every agent, task and sample: a run of one agent belongs to whoever started it."""
    selected = run.asset_selection
    return tags.items() <= run.tags.items() and (not selected or selected >= set(keys))
