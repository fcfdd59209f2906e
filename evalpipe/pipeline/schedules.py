"""Schedules: weekly mining, and the quarterly rerun of a sweep. All are stopped until somebody switches them on."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from evalpipe.config import RepositoryConfig, SweepConfig
from evalpipe.pipeline.jobs import MINE, calibrate_job_name, sweep_job_name
from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe.tasks import LoadedTaskSet

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

    Jobs = Mapping[str, UnresolvedAssetJobDefinition]

WEEKLY = "0 4 * * 1"
"""04:00 on Mondays."""

QUARTERLY = "0 6 1 1,4,7,10 *"
"""06:00 on the first day of each quarter."""

RERUN_OF = "evalpipe/rerun_of"
"""On every run of a quarterly rerun: the sweep, so that its sensors carry on what was begun for it and nothing else."""


def weekly_mining(repositories: Mapping[str, RepositoryConfig], jobs: "Jobs") -> dg.ScheduleDefinition:
    """Mines every repository once a week, in UTC: a repository has no time zone of its own."""

    @dg.schedule(
        name="weekly_mining",
        job=jobs[MINE],
        cron_schedule=WEEKLY,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Looks at the new changes of every repository; what follows is up to the sensors of the history.",
    )
    def weekly() -> Iterator[dg.RunRequest]:
        for name in repositories:
            yield dg.RunRequest(run_key=name, partition_key=name)

    return weekly


def quarterly_rerun(sweep: SweepConfig, task_set: LoadedTaskSet, jobs: "Jobs") -> dg.ScheduleDefinition:
    """Begins the rerun of a sweep each quarter, in the sweep's time zone; what was run so already is not run again."""
    tasks = list(task_set.tasks)
    # Not as tags of the schedule: Dagster lets only a run request name a range.
    tags = {RANGE_START: tasks[0], RANGE_END: tasks[-1], RERUN_OF: sweep.name}

    @dg.schedule(
        name=sweep_job_name(sweep.name, "quarterly"),
        job=jobs[calibrate_job_name(sweep.task_set)],
        cron_schedule=QUARTERLY,
        execution_timezone=sweep.time_zone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Begins the quarterly rerun of {sweep.name} with the calibration of its tasks; where the sweep's "
        "sensors are on, its agents, their grades and the report follow.",
    )
    def quarterly() -> dg.RunRequest:
        return dg.RunRequest(tags=tags)

    return quarterly
