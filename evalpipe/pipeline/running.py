"""What Dagster has under way in a workspace, as lines for `evalpipe status`."""

import datetime as dt
from collections.abc import Iterator

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from evalpipe.config import Workspace
from evalpipe.pipeline.driver import OWNER_TAG, open_instance
from evalpipe.sandbox.owners import is_leftover

_UNDER_WAY = (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
_WAITING = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED)


def running_work(workspace: Workspace) -> list[str]:
    """A line for each run that is under way, for each backfill, and for what waits in the queue.

    Runs of commands that were killed are left out: the next command ends them.
    """
    if not workspace.state_dir.exists():
        return []  # nothing ran yet, and to look would make Dagster's files
    with open_instance(workspace) as instance:
        return [*_runs(instance), *_backfills(instance), *_queue(instance)]


def _runs(instance: dg.DagsterInstance) -> Iterator[str]:
    for record in instance.get_run_records(dg.RunsFilter(statuses=list(_UNDER_WAY)), ascending=True):
        run = record.dagster_run
        owner = run.tags.get(OWNER_TAG)
        if owner is not None and is_leftover(owner, frozenset()):
            continue
        # A run of assets that the UI launched has a job that means nothing to a person.
        assets = sorted(key.to_user_string() for key in run.asset_selection or ())
        name = ", ".join(assets[:3]) + ("…" if len(assets) > 3 else "") if assets else run.job_name
        begun = record.start_time or record.create_timestamp.timestamp()
        moment = dt.datetime.fromtimestamp(begun, dt.UTC)
        yield f"{name}, since {moment:%Y-%m-%d %H:%M} UTC (run {run.run_id[:8]})"


def _backfills(instance: dg.DagsterInstance) -> Iterator[str]:
    for backfill in instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])):
        yield f"backfill {backfill.title or backfill.backfill_id} is launching runs ({backfill.backfill_id})"


def _queue(instance: dg.DagsterInstance) -> Iterator[str]:
    waiting = instance.get_runs_count(dg.RunsFilter(statuses=list(_WAITING)))
    if waiting:
        yield f"{waiting} runs wait in the queue"
