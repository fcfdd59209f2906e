"""Dagster as `evalpipe ui` runs it, for tests: one code server, the daemon beside it, and GraphQL in this process."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster_graphql.schema import create_schema
from dagster_graphql.test.utils import execute_dagster_graphql

from evalpipe.pipeline.driver import initialise_instance
from evalpipe_tests.pipeline.workspaces import SET_BY_COMMANDS, TinyWorkspace

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

    def __init__(self, process: WorkspaceProcessContext, daemon: "Service", code_server: "Service") -> None:
        self._process = process
        self.daemon = daemon
        self.code_server = code_server
        self._schema = create_schema()

    def kill(self) -> None:
        """Kill the daemon, the code server and the runs that it started, all at once."""
        for service in (self.daemon, self.code_server):
            os.killpg(service.process.pid, signal.SIGKILL)

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

    def forget_connections(self) -> None:
        """Look at the code server anew, as a page does that is loaded again."""
        self._process.reload_code_location("evalpipe")

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
        for name in SET_BY_COMMANDS:
            patch.setenv(name, "")
        patch.chdir(tiny.root)
        initialise_instance(tiny.workspace)
        port = free_port()
        server = (
            "load_from:\n  - grpc_server:\n      host: 127.0.0.1\n      port: {port}\n      location_name: evalpipe\n"
        )
        tiny.write("workspace-of-test.yaml", server.format(port=port))
        code_server = ["code-server", "start", "-m", "evalpipe.definitions", "-h", "127.0.0.1", "-p", str(port)]
        code_service = stack.enter_context(Service(["-m", "dagster", *code_server], port))
        daemon = stack.enter_context(Service(["-m", "dagster._daemon", "run", "-w", "workspace-of-test.yaml"]))
        instance = stack.enter_context(dg.DagsterInstance.get())
        target = WorkspaceFileTarget([str(tiny.root / "workspace-of-test.yaml")])
        yield Ui(stack.enter_context(WorkspaceProcessContext(instance, target)), daemon, code_service)


class Service:
    """A process of Dagster in the current folder, which can be killed and started again; a context manager.

    One that listens on `port` has started when it answers there.
    """

    def __init__(self, arguments: Sequence[str], port: int | None = None) -> None:
        self._arguments = arguments
        self._port = port
        self.process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def kill(self) -> None:
        """End this process alone, with no time to say anything; what it started lives on."""
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, *self._arguments]
        with open("dagster.log", "ab") as log:  # noqa: PTH123
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        if self._port is not None:
            _wait_for(self._port)
        return process


def free_port() -> int:
    """A port of this machine on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    end = time.monotonic() + 120
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end, f"nothing answers on port {port}; see dagster.log in the workspace"
        time.sleep(0.2)
