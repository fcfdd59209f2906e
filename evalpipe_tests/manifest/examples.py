"""A valid manifest and the records that it is built from."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from evalpipe.manifest import AgentRecord, EnvironmentRecord, Manifest, TaskSetRecord, build_manifest

IMAGE = "sha256:" + "a" * 64
OTHER_IMAGE = "sha256:" + "b" * 64
TASK_SET = TaskSetRecord("demo", "f" * 64, 10, "original", True)
AGENT = AgentRecord(
    name="steady",
    adapter="scripted",
    model="m",
    model_version="1.10",
    scaffold="replay",
    scaffold_version="2",
    tools=("edit", "shell"),
    max_turns=None,
    context_limit=200_000,
    temperature=0.5,
    max_attempts=3,
)
ENVIRONMENT = EnvironmentRecord(
    sandbox="docker",
    engine_version="28.2.2",
    images={IMAGE: 10},
    task_timeout_s=900.0,
    network="none",
    cpu_limit=2.0,
    memory_limit=4 * 1024**3,
    pids_limit=512,
    history="ancestors",
)
PROCESS = replace(ENVIRONMENT, sandbox="process", engine_version=None, images={"process": 10})


def example(**changes: Any) -> Manifest:
    arguments: dict[str, Any] = {
        "run_id": "run-1",
        "created_at": datetime(2026, 11, 29, 12, tzinfo=UTC),
        "evalpipe_version": "0.1.0",
        "task_set": TASK_SET,
        "agent": AGENT,
        "environment": ENVIRONMENT,
        "samples_per_task": 3,
    }
    return build_manifest(**(arguments | changes))
