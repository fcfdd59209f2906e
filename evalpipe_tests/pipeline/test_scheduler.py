import logging
import threading
from pathlib import Path
from unittest.mock import Mock

import dagster as dg
import dagster._daemon.controller as daemon_controller
import pytest
from dagster._daemon.backfill import execute_backfill_iteration_loop

TOP = Path(__file__).parents[2]


class _Waits(threading.Event):
    """A daemon's order to stop, which remembers for how long the daemon would have waited for it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return True


def test_the_daemon_looks_for_backfills_as_often_as_the_workspace_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_controller, "DEFAULT_DAEMON_INTERVAL_SECONDS", 30)
    monkeypatch.setenv("EVALPIPE_STATE_DIR", str(tmp_path / "state"))
    text = (TOP / "dagster.yaml").read_text(encoding="utf-8")
    (tmp_path / "dagster.yaml").write_text(text.replace("backfill_interval_seconds: 2", "backfill_interval_seconds: 3"))
    waits = _Waits()
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        context = Mock(instance=instance)
        for _ in execute_backfill_iteration_loop(context, logging.getLogger(__name__), waits):
            if waits.seconds:
                break
    assert 0 < waits.seconds[0] <= 3
