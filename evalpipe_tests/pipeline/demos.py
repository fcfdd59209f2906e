"""The workspace of the demo, run to its end: made once in a session, because it takes minutes."""

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evalpipe.sandbox import docker_available
from evalpipe_tests.made_once import made_once
from evalpipe_tests.pipeline.workspaces import Finished, TinyWorkspace

TOP = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Demo:
    """The workspace of a demo that ran once, and then a second time."""

    tiny: TinyWorkspace
    first: Finished
    second: Finished
    second_seconds: float
    changed_by_second: set[str]

    def rows(self, table: str) -> list[dict[str, Any]]:
        files = sorted((self.tiny.lake / table).rglob("*.parquet"))
        return [row for file in files for row in pq.read_table(file).to_pylist()]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """In Docker where an engine answers, and in the process sandbox elsewhere, as `make demo` does it."""
    return made_once(tmp_path_factory, "demo", _make)


def _make(folder: Path) -> Demo:
    root = folder / "workspace"
    root.mkdir()
    for name in ("workspace.yaml", "dagster.yaml"):
        shutil.copy(TOP / name, root)
    for name in ("repos", "agents", "sweeps", "demo"):
        shutil.copytree(TOP / "data" / name, root / "data" / name)
    in_docker = os.environ.get("EVALPIPE_REQUIRE_DOCKER") == "1" or docker_available()
    variables = {"EVALPIPE_SANDBOX": "docker" if in_docker else "process"}
    if base := os.environ.get("EVALPIPE_BASE_IMAGE"):
        variables["EVALPIPE_BASE_IMAGE"] = base
    tiny = TinyWorkspace(root.resolve(), variables)
    first = tiny.run("demo", timeout_s=1000)
    before = _contents(tiny.lake)
    started = time.monotonic()
    second = tiny.run("demo", timeout_s=200)
    seconds = time.monotonic() - started
    after = _contents(tiny.lake)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return Demo(tiny, first, second, seconds, changed)


def _contents(folder: Path) -> dict[str, bytes]:
    tables = ("validation_runs", "calibration", "agent_runs", "graded_results", "verdicts", "blobs", "manifests")
    return {str(path): path.read_bytes() for table in tables for path in (folder / table).rglob("*") if path.is_file()}
