"""The workspace of the demo, run to its end: made once in a session, because it takes minutes.

With EVALPIPE_TEST_DEMO=FOLDER it is a workspace that `make demo` has run in, in whatever sandbox that was.
"""

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

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
    """In the process sandbox, where it takes less of the machine than in containers."""
    if folder := os.environ.get("EVALPIPE_TEST_DEMO"):
        bases = {name: value for name, value in os.environ.items() if name.startswith("EVALPIPE_BASE_IMAGE")}
        return _run_twice(TinyWorkspace(Path(folder).resolve(), bases))
    return made_once(tmp_path_factory, "demo", lambda empty: _run_twice(_laid(empty / "workspace")))


def _laid(root: Path) -> TinyWorkspace:
    root.mkdir()
    for name in ("workspace.yaml", "dagster.yaml"):
        shutil.copy(TOP / name, root)
    for name in ("repos", "agents", "sweeps", "demo"):
        shutil.copytree(TOP / "data" / name, root / "data" / name)
    return TinyWorkspace.at(root.resolve())


def _run_twice(tiny: TinyWorkspace) -> Demo:
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
