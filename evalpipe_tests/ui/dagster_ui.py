"""`evalpipe ui` on a workspace, as a person starts it, and a backfill as a person asks for it."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evalpipe_tests.pipeline.daemon import BACKFILL, STATUS, free_port
from evalpipe_tests.pipeline.workspaces import EVALPIPE, TinyWorkspace, wait_until

_START_S = 120


@dataclass(frozen=True, slots=True)
class DagsterUi:
    """A running UI. `seconds_to_answer` went by from its start until it answered."""

    url: str
    seconds_to_answer: float

    def ask(self, query: str, variables: Mapping[str, Any]) -> Any:
        """Send GraphQL as the UI's pages do."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            found = json.load(answer)
        assert "errors" not in found, found["errors"]
        return found["data"]

    def backfill(self, assets: Sequence[Sequence[str]], partitions: Sequence[str]) -> str:
        """Ask for a backfill; returns its id."""
        selection = [{"path": list(asset)} for asset in assets]
        parameters = {"partitionNames": list(partitions), "assetSelection": selection, "title": "a part again"}
        return str(self.ask(BACKFILL, {"b": parameters})["launchPartitionBackfill"]["backfillId"])

    def wait_for_backfill(self, backfill: str, timeout_s: float = 240) -> dict[str, Any]:
        """Its last status: the daemon looks for backfills every 30 s, and as often whether one is done."""
        found: dict[str, Any] = {}

        def ended() -> bool:
            found.update(self.ask(STATUS, {"id": backfill})["partitionBackfillOrError"])
            return found["status"] in ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED")

        wait_until(ended, "the backfill ends", timeout_s)
        return found


@contextmanager
def serving(tiny: TinyWorkspace) -> Iterator[DagsterUi]:
    """Run the UI of a workspace until the block ends, as a script does by `&`: even so it has to end by SIGTERM."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    started = time.monotonic()
    with (tiny.root / "ui.log").open("ab") as log:
        process = subprocess.Popen(
            ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *EVALPIPE, "ui", "--port", str(port)],
            cwd=tiny.root,
            env=tiny.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        while not _answers(url):
            assert process.poll() is None, (tiny.root / "ui.log").read_text()[-3000:]
            assert time.monotonic() < started + _START_S, (tiny.root / "ui.log").read_text()[-3000:]
            time.sleep(0.1)
        yield DagsterUi(url, time.monotonic() - started)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/server_info", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
