"""Sensors that carry a sweep on by itself, from its calibration to its report. All are stopped until switched on."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from evalpipe.config import AgentConfig, SweepConfig
from evalpipe.pipeline.jobs import calibrate_job_name, stage_keys, sweep_job_name
from evalpipe.pipeline.partitions import whole_sweep
from evalpipe.pipeline.schedules import RERUN_OF
from evalpipe.tasks import LoadedTaskSet

if TYPE_CHECKING:
    from evalpipe.pipeline.schedules import Jobs

ROUND = "evalpipe/round"
"""On a run of attempts that a sensor asked for again: which one it is, from 2 on."""

AGAIN_S = 900
"""How often failed attempts are looked for: an engine or a provider that was gone needs a while."""


def sweep_sensors(
    sweep: SweepConfig, agents: Mapping[str, AgentConfig], task_set: LoadedTaskSet, jobs: "Jobs"
) -> list[dg.SensorDefinition]:
    """Attempts after a rerun's calibration, grades after attempts, the report after grades.

    They follow only runs over the whole sweep: a run of one agent belongs to whoever started it.
    """
    names = ("agent_runs", "graded_results", "report")
    attempts, grades, report = (jobs[sweep_job_name(sweep.name, stage)] for stage in names)
    tags = whole_sweep(sweep, task_set)
    attempted, graded = stage_keys(sweep, "agent_runs"), stage_keys(sweep, "graded_results")
    rounds = max(agents[name].retry_policy.max_attempts for name in sweep.agents)

    @dg.run_status_sensor(
        name=sweep_job_name(sweep.name, "attempts_after_calibration"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[jobs[calibrate_job_name(sweep.task_set)]],
        request_job=attempts,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Makes the attempts of {sweep.name} after the calibration with which its rerun began.",
    )
    def attempts_after_calibration(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if context.dagster_run.tags.get(RERUN_OF) != sweep.name:
            return dg.SkipReason(f"the calibration was not for a rerun of {sweep.name}")
        return dg.RunRequest(run_key=context.dagster_run.run_id, tags={**tags, RERUN_OF: sweep.name})

    @dg.run_status_sensor(
        name=sweep_job_name(sweep.name, "grade_after_attempts"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[attempts],
        request_job=grades,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Grades {sweep.name} when all of its attempts are made.",
    )
    def grade_after_attempts(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if not _covers(context.dagster_run, tags, attempted):
            return dg.SkipReason("the run made a part of the attempts")
        return dg.RunRequest(run_key=context.dagster_run.run_id, tags=tags)

    @dg.run_status_sensor(
        name=sweep_job_name(sweep.name, "again_after_failed_attempts"),
        run_status=dg.DagsterRunStatus.FAILURE,
        monitored_jobs=[attempts],
        request_jobs=[attempts, grades],
        minimum_interval_seconds=AGAIN_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Makes invalid attempts of {sweep.name} again, as often as its agents may; then grades them.",
    )
    def again_after_failed_attempts(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        run = context.dagster_run
        if not _covers(run, tags, attempted):
            return dg.SkipReason("the run made a part of the attempts")
        next_round = int(run.tags.get(ROUND, "1")) + 1
        if next_round <= rounds:
            return dg.RunRequest(run.run_id, job_name=attempts.name, tags={**tags, ROUND: str(next_round)})
        # Attempts that stay invalid are no reason to have no report: it names them.
        return dg.RunRequest(run.run_id, job_name=grades.name, tags=tags)

    @dg.run_status_sensor(
        name=sweep_job_name(sweep.name, "report_after_grades"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[grades],
        request_job=report,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Writes the report of {sweep.name} when all of its attempts are graded.",
    )
    def report_after_grades(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if not _covers(context.dagster_run, tags, graded):
            return dg.SkipReason("the run graded a part of the attempts")
        return dg.RunRequest(run_key=context.dagster_run.run_id)

    return [attempts_after_calibration, grade_after_attempts, again_after_failed_attempts, report_after_grades]


def _covers(run: dg.DagsterRun, tags: Mapping[str, str], keys: Sequence[dg.AssetKey]) -> bool:
    """Whether a run was of every agent, task and sample."""
    selected = run.asset_selection
    return tags.items() <= run.tags.items() and (not selected or selected >= set(keys))
