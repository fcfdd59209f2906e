"""Launches runs as Dagster does by default, and tells its run monitoring whether a run's process is still there.

The default launcher cannot tell: the code server sees the processes die that it started, and when it dies with them, or
the machine does, their runs stay under way for ever, and keep their places in queue and pools.
"""

import json

from dagster import DagsterEventType, DagsterRun, DefaultRunLauncher
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus

from evalpipe.sandbox.owners import process_started_at

_ON_THIS_MACHINE = ("localhost", "127.0.0.1")
_CLOCKS_S = 5.0
"""What the start of a process and the time of an event may be apart; the first is known to a second or two."""


class WatchingRunLauncher(DefaultRunLauncher):
    """Looks for the process of a run that a code server on this machine has started."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """FAILED when the process is gone; RUNNING also where nobody here can know."""
        server = json.loads(run.tags.get(".dagster/grpc_info", "{}"))
        if server.get("host") not in _ON_THIS_MACHINE:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        # The first of its events that names a process is the one by which the process says that it is there.
        events = self._instance.all_logs(run.run_id, of_type=DagsterEventType.ENGINE_EVENT)
        for event in events:
            metadata = event.get_dagster_event().engine_event_data.metadata
            if "pid" in metadata:
                started = process_started_at(int(str(metadata["pid"].value)))
                if started is None or started > event.timestamp + _CLOCKS_S:
                    return CheckRunHealthResult(WorkerStatus.FAILED, "the process of this run was killed")
                break
        return CheckRunHealthResult(WorkerStatus.RUNNING)
