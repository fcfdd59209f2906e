"""Dagster as `evalpipe ui` runs it, for tests: one code server, the daemon beside it, and GraphQL in this process."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster_graphql.schema import create_schema
from dagster_graphql.test.utils import execute_dagster_graphql

from evalpipe.pipeline.driver import initialise_instance
from evalpipe_tests.pipeline.workspaces import TinyWorkspace

BACKFILL = """
mutation($b: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $b) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
STATUS = """
query($id: String!) { partitionBackfillOrError(backfillId: $id) { __typename
  ... on PartitionBackfill { status numPartitions error { message } runs(limit: 100) { id status } } } }
"""
PARTITIONS = """
query($k: AssetKeyInput!) { assetNodeOrError(assetKey: $k) { __typename
  ... on AssetNode { partitionStats { numPartitions numMaterialized numFailed } } } }
"""
TERMINATE = """
mutation($r: [String!]!) { terminateRuns(runIds: $r) { __typename
  ... on TerminateRunsResult { terminateRunResults { __typename } } } }
"""


LAUNCH = """
mutation($e: ExecutionParams!) { launchRun(executionParams: $e) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
RUN = """
query($id: ID!) { runOrError(runId: $id) { __typename ... on Run { status } } }
"""


class Ui:
    """The questions and orders of the UI, over GraphQL."""

    def __init__(self, process: WorkspaceProcessContext, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self._process = process
        self._processes = processes
        self._schema = create_schema()

    def kill(self) -> None:
        """Kill the daemon, the code server and the runs that it started, all at once."""
        for process in self._processes:
            os.killpg(process.pid, signal.SIGKILL)

    def launch(self, job: str, tags: Mapping[str, str]) -> str:
        """Let the daemon run a job; returns the id of the run."""
        parameters = {
            "selector": {"jobName": job, "repositoryName": "__repository__", "repositoryLocationName": "evalpipe"},
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        }
        answer = self.ask(LAUNCH, {"e": parameters})["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def run_status(self, run: str) -> str:
        return str(self.ask(RUN, {"id": run})["runOrError"]["status"])

    def ask(self, query: str, variables: Mapping[str, Any]) -> Any:
        context = self._process.create_request_context()
        answer = execute_dagster_graphql(context, query, variables=dict(variables), schema=self._schema)
        assert not answer.errors, answer.errors
        return answer.data

    def backfill(self, asset: list[str], partitions: list[str]) -> str:
        parameters = {"partitionNames": partitions, "assetSelection": [{"path": asset}], "title": "/".join(asset)}
        answer = self.ask(BACKFILL, {"b": parameters})["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return str(answer["backfillId"])

    def status(self, backfill: str) -> dict[str, Any]:
        return dict(self.ask(STATUS, {"id": backfill})["partitionBackfillOrError"])

    def partitions(self, asset: list[str]) -> tuple[int, int, int]:
        """Of an asset: all partitions, the materialized ones, the failed ones."""
        stats = self.ask(PARTITIONS, {"k": {"path": asset}})["assetNodeOrError"]["partitionStats"]
        return stats["numPartitions"], stats["numMaterialized"], stats["numFailed"]

    def wait(self, backfill: str, timeout_s: float) -> dict[str, Any]:
        end = time.monotonic() + timeout_s
        while (status := self.status(backfill))["status"] not in ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED"):
            assert time.monotonic() < end, f"not within {timeout_s} s: {status}"
            time.sleep(1)
        return status


@contextmanager
def running(tiny: TinyWorkspace) -> Iterator[Ui]:
    """Dagster of a workspace, with a real daemon that launches real runs."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for name, value in tiny.environment().items():
            patch.setenv(name, value)
        for name in ("DAGSTER_HOME", "EVALPIPE_STATE_DIR", "EVALPIPE_WORKSPACE", "MPLCONFIGDIR"):
            patch.setenv(name, "")
        patch.chdir(tiny.root)
        initialise_instance(tiny.workspace)
        port = _free_port()
        server = (
            "load_from:\n  - grpc_server:\n      host: 127.0.0.1\n      port: {port}\n      location_name: evalpipe\n"
        )
        tiny.write("workspace-of-test.yaml", server.format(port=port))
        code_server = ["code-server", "start", "-m", "evalpipe.definitions", "-h", "127.0.0.1", "-p", str(port)]
        server_process = stack.enter_context(_process(["-m", "dagster", *code_server]))
        _wait_for(port)
        daemon = stack.enter_context(_process(["-m", "dagster._daemon", "run", "-w", "workspace-of-test.yaml"]))
        instance = stack.enter_context(dg.DagsterInstance.get())
        target = WorkspaceFileTarget([str(tiny.root / "workspace-of-test.yaml")])
        yield Ui(stack.enter_context(WorkspaceProcessContext(instance, target)), (daemon, server_process))


@contextmanager
def _process(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    log = open("dagster.log", "ab")  # noqa: PTH123, SIM115 - both processes write it to their end
    process = subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    end = time.monotonic() + 120
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end, "the code server does not answer; see dagster.log in the workspace"
        time.sleep(0.2)
