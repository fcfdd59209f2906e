"""Dagster's own scheduler, by which a setting that Dagster lacks is had: how often its daemon looks for backfills.

By itself the daemon does so every 30 seconds, a constant (dagster-io/dagster#11649): a backfill waits for it before its
first run, and again before it is called done. The scheduler is the one piece that dagster.yaml names and that each
process of Dagster makes at once, and so before the daemon reads the constant.
"""

import sys
from collections.abc import Mapping
from typing import Any, Self

from dagster import Field, Int
from dagster._core.scheduler.scheduler import DagsterDaemonScheduler
from dagster._serdes import ConfigurableClassData


class PromptScheduler(DagsterDaemonScheduler):
    """Runs schedules as Dagster does by default; its configuration is the daemon's interval for backfills."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {"backfill_interval_seconds": Field(Int)}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> Self:
        # The daemon has loaded it by now. To load it into every other process would cost each half a second.
        if daemon := sys.modules.get("dagster._daemon.controller"):
            vars(daemon)["DEFAULT_DAEMON_INTERVAL_SECONDS"] = config_value["backfill_interval_seconds"]
        return cls(inst_data=inst_data)
