"""Launches each run in a container of its own, and knows that the runs of a command have none.

Run monitoring takes a run without a container for one whose container was lost, and would call every `mine`, `validate`
or `run` of the command line failed while it works.
"""

from dagster import DagsterRun
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster_docker import DockerRunLauncher

from evalpipe.pipeline.driver import OWNER_TAG
from evalpipe.sandbox.owners import is_leftover


class ContainerRunLauncher(DockerRunLauncher):
    """Dagster's launcher for Docker; a run of a command lives as long as the command's process.

    The process is looked for by its number, so the daemon has to see the processes of the host.
    """

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """FAILED when the container, or the command's process, is gone."""
        owner = run.tags.get(OWNER_TAG)
        if owner is None:
            found: CheckRunHealthResult = super().check_run_worker_health(run)
            return found
        if is_leftover(owner, frozenset()):
            return CheckRunHealthResult(WorkerStatus.FAILED, "the process of this run was killed")
        return CheckRunHealthResult(WorkerStatus.RUNNING)
