"""Every process of Dagster killed with SIGKILL in the middle of a backfill: nothing is lost, only what was in flight is
made again, and nobody has to ask for it.
"""

import json
import os
import signal
import urllib.request
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest

from evalpipe.tasks import load_task_set
from evalpipe_tests.pipeline.daemon import Service, Ui, free_port, running
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, processes_in, wait_until

ASSET = ["small", "reference", "agent_runs"]
SAMPLES = 6


class _Backfill:
    """A backfill of twelve attempts, whose ledger and whose processes a test looks at."""

    def __init__(self, tiny: TinyWorkspace, instance: dg.DagsterInstance) -> None:
        self.tiny = tiny
        self._instance = instance
        self.killed: Counter[str] = Counter()
        """How often each sample was in flight when its process was killed."""
        self._before = tiny.gate.begun()

    def attempts(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of each sample, oldest first."""
        found: dict[str, list[dict[str, Any]]] = {}
        for file in sorted((self.tiny.lake / "agent_runs/small/reference").rglob("*.parquet")):
            rows = pq.read_table(file).to_pylist()
            found[f"{rows[0]['sample']}|{rows[0]['task_id']}"] = rows
        return found

    def finished(self) -> int:
        return sum(rows[-1]["outcome"] == "finished" for rows in self.attempts().values())

    def in_flight(self, runs: Collection[str]) -> set[str]:
        """Samples of which an attempt is under way in one of these runs."""
        last = {key: rows[-1] for key, rows in self.attempts().items()}
        return {key for key, row in last.items() if row["outcome"] == "interrupted" and row["run_id"] in runs}

    def busy(self) -> list[str]:
        """The runs with attempts in flight: while all boxes are held in one, another's wait for a place."""
        return sorted(run for run in self.workers() if self.in_flight([run]))

    def workers(self) -> dict[str, int]:
        """The processes of the runs that are under way, as they have named themselves."""
        found = {}
        for run in self._instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
            for event in self._instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
                metadata = event.get_dagster_event().engine_event_data.metadata
                if "pid" in metadata:
                    found[run.run_id] = int(str(metadata["pid"].value))
                    break
        return found

    def let_finish(self, number: int) -> None:
        """Let the first so many attempts through, and hold those that come later."""
        self.tiny.gate.hold_from(self._before + number)

    def kill(self, runs: Collection[str]) -> None:
        """Kill the processes of some runs."""
        workers = self.workers()
        self.killed.update(self.in_flight(runs))
        for run in runs:
            os.kill(workers[run], signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(590)
def test_every_process_is_killed_in_the_middle_of_a_backfill(
    copied: Callable[[Walk], TinyWorkspace], begun: Walk
) -> None:
    tiny = copied(begun)
    tiny.change("data/sweeps/small.yaml", "samples: 2", f"samples: {SAMPLES}")
    tiny.change("data/sweeps/small.yaml", "timeout_s: 60", "timeout_s: 400")
    tiny.watch_runs_closely()
    tasks = load_task_set(tiny.workspace.task_sets_dir / "tiny").tasks
    keys = [f"original-{number}|{task}" for number in range(1, SAMPLES + 1) for task in tasks]
    try:
        with running(tiny) as ui, dg.DagsterInstance.get() as instance:
            backfill = _Backfill(tiny, instance)
            backfill.let_finish(2)
            asked = ui.backfill(ASSET, keys)
            wait_until(lambda: backfill.finished() == 2 and len(backfill.workers()) == 2, "two are finished", 150)
            _the_servers_die(ui, backfill)
            _a_worker_dies(backfill)
            _everything_dies(ui, backfill)
            ended = ui.wait(asked, 240)
            counted = ui.partitions(ASSET)
    finally:
        tiny.gate.open()
    assert ended["status"] == "COMPLETED_SUCCESS"
    assert counted == (2 * SAMPLES, 2 * SAMPLES, 0)
    outcomes = {key: [row["outcome"] for row in rows] for key, rows in backfill.attempts().items()}
    assert outcomes == {key: ["interrupted"] * backfill.killed[key] + ["finished"] for key in keys}
    assert processes_in(tiny.root) == []


def _the_servers_die(ui: Ui, backfill: _Backfill) -> None:
    """Webserver, daemon and code server: the attempts in flight do not notice."""
    workers = backfill.workers()
    port = free_port()
    arguments = ["-m", "dagster_webserver", "-w", "workspace-of-test.yaml", "-h", "127.0.0.1", "-p", str(port)]
    with Service(arguments, port) as webserver:
        for service in (webserver, ui.daemon, ui.code_server):
            service.kill()
            service.start_again()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=60) as answer:
            assert "dagster_version" in json.load(answer)
    ui.forget_connections()
    assert backfill.workers() == workers
    backfill.let_finish(4)
    wait_until(lambda: backfill.finished() == 4, "two more are finished", 60)


def _a_worker_dies(backfill: _Backfill) -> None:
    """The code server that started it is gone: run monitoring misses it, and the rest of its run is run again."""
    wait_until(lambda: len(backfill.busy()) > 0, "attempts are in flight")
    victim = backfill.busy()[0]
    backfill.kill([victim])
    wait_until(lambda: victim not in backfill.workers() and len(backfill.workers()) == 2, "a run takes its place", 120)
    wait_until(lambda: len(backfill.busy()) > 0, "attempts are in flight")


def _everything_dies(ui: Ui, backfill: _Backfill) -> None:
    """As when the machine loses its power; then Dagster is started again."""
    runs = backfill.workers()
    ui.daemon.kill()
    ui.code_server.kill()
    backfill.kill(runs)
    backfill.tiny.gate.open()
    ui.code_server.start_again()
    ui.daemon.start_again()
    ui.forget_connections()
