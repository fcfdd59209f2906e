"""Sensors that carry a sweep on by itself, from its calibration to its report. All are stopped until switched on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from evalpipe.config import AgentConfig, SweepConfig
from evalpipe.pipeline.jobs import calibrate_job_name, stage_keys, sweep_job_name
from evalpipe.pipeline.partitions import whole_sweep
from evalpipe.pipeline.schedules import RERUN_OF
from evalpipe.tasks import LoadedTaskSet

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

    from evalpipe.pipeline.schedules import Jobs

ROUND = "evalpipe/round"
"""On a run of attempts that a sensor asked for again: which one it is, from 2 on."""

AGAIN_S = 900
"""How often failed attempts are looked for: an engine or a provider that was gone needs a while."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """What the links of a sweep's chain share: its three jobs, and the tags of runs over the whole of it."""

    sweep: SweepConfig
    attempts: "UnresolvedAssetJobDefinition"
    grades: "UnresolvedAssetJobDefinition"
    report: "UnresolvedAssetJobDefinition"
    tags: Mapping[str, str]

    def is_whole(self, run: dg.DagsterRun, stage: str) -> bool:
        """Whether a run was of every agent, task and sample."""
        selected = run.asset_selection
        return self.tags.items() <= run.tags.items() and (
            not selected or selected >= set(stage_keys(self.sweep, stage))
        )

    def name(self, link: str) -> str:
        return sweep_job_name(self.sweep.name, link)


def sweep_sensors(
    sweep: SweepConfig, agents: Mapping[str, AgentConfig], task_set: LoadedTaskSet, jobs: "Jobs"
) -> list[dg.SensorDefinition]:
    """Attempts after a rerun's calibration, grades after attempts, the report after grades.

    They follow only runs over the whole sweep: a run of one agent belongs to whoever started it.
    """
    names = ("agent_runs", "graded_results", "report")
    attempts, grades, report = (jobs[sweep_job_name(sweep.name, stage)] for stage in names)
    chain = _Chain(sweep, attempts, grades, report, whole_sweep(sweep, task_set))
    return [
        _attempts_after_calibration(chain, jobs[calibrate_job_name(sweep.task_set)]),
        _grade_after_attempts(chain),
        _again_after_failed_attempts(chain, max(agents[name].retry_policy.max_attempts for name in sweep.agents)),
        _report_after_grades(chain),
    ]


def _attempts_after_calibration(chain: _Chain, calibrate: "UnresolvedAssetJobDefinition") -> dg.SensorDefinition:
    name = chain.sweep.name

    @dg.run_status_sensor(
        name=chain.name("attempts_after_calibration"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[calibrate],
        request_job=chain.attempts,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Makes the attempts of {name} after the calibration with which its rerun began.",
    )
    def attempts_after_calibration(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if context.dagster_run.tags.get(RERUN_OF) != name:
            return dg.SkipReason(f"the calibration was not for a rerun of {name}")
        return dg.RunRequest(run_key=context.dagster_run.run_id, tags={**chain.tags, RERUN_OF: name})

    return attempts_after_calibration


def _grade_after_attempts(chain: _Chain) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        name=chain.name("grade_after_attempts"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[chain.attempts],
        request_job=chain.grades,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Grades {chain.sweep.name} when all of its attempts are made.",
    )
    def grade_after_attempts(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if not chain.is_whole(context.dagster_run, "agent_runs"):
            return dg.SkipReason("the run made a part of the attempts")
        return dg.RunRequest(run_key=context.dagster_run.run_id, tags=chain.tags)

    return grade_after_attempts


def _again_after_failed_attempts(chain: _Chain, rounds: int) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        name=chain.name("again_after_failed_attempts"),
        run_status=dg.DagsterRunStatus.FAILURE,
        monitored_jobs=[chain.attempts],
        request_jobs=[chain.attempts, chain.grades],
        minimum_interval_seconds=AGAIN_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Makes invalid attempts of {chain.sweep.name} again, as often as its agents may; then grades "
        "them.",
    )
    def again_after_failed_attempts(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        run = context.dagster_run
        if not chain.is_whole(run, "agent_runs"):
            return dg.SkipReason("the run made a part of the attempts")
        next_round = int(run.tags.get(ROUND, "1")) + 1
        if next_round <= rounds:
            return dg.RunRequest(run.run_id, job_name=chain.attempts.name, tags={**chain.tags, ROUND: str(next_round)})
        # Attempts that stay invalid are no reason to have no report: it names them.
        return dg.RunRequest(run.run_id, job_name=chain.grades.name, tags=chain.tags)

    return again_after_failed_attempts


def _report_after_grades(chain: _Chain) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        name=chain.name("report_after_grades"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[chain.grades],
        request_job=chain.report,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Writes the report of {chain.sweep.name} when all of its attempts are graded.",
    )
    def report_after_grades(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if not chain.is_whole(context.dagster_run, "graded_results"):
            return dg.SkipReason("the run graded a part of the attempts")
        return dg.RunRequest(run_key=context.dagster_run.run_id)

    return report_after_grades
