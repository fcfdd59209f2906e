"""Validation as the daemon runs it: killed in the middle, it loses the side in flight and no other."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe_tests.pipeline.daemon import running
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import Gate, TinyWorkspace, processes_in, repository_yaml, wait_until

Copied = Callable[[Walk], TinyWorkspace]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_daemon_killed_in_the_middle_loses_the_side_in_flight(copied: Copied, mined: Walk, tmp_path: Path) -> None:
    tiny = copied(mined)
    suites = Gate(tmp_path / "suites")
    suites.folder.mkdir()
    python = suites.folder / "python"
    python.write_text(suites.before(f"{tiny.gate.folder}/python3"))
    python.chmod(0o755)
    tiny.write("data/repos/shop.yaml", repository_yaml(["true"], str(python)))
    tiny.watch_runs_closely()
    rows = pq.read_table(tiny.lake / "candidate_commits/shop.parquet").to_pylist()
    keys = [row["candidate_id"] for row in rows if row["reason"] == "kept"]
    passes, sides = tiny.lake / "validation_runs", tiny.lake / "suite_runs"
    with running(tiny) as ui:
        built = ui.launch("build_images", {"dagster/partition": "shop"})
        wait_until(lambda: ui.run_status(built) == "SUCCESS", "the images are built", 120)
        whole = {RANGE_START: f"{keys[0]}|first", RANGE_END: f"{keys[-1]}|first"}
        suites.hold_from(5)  # of three candidates with two sides each: all but the last side of one
        ui.launch("validate", whole)
        wait_until(
            lambda: (len(list(passes.rglob("*.parquet"))), len(list(sides.rglob("*.parquet")))) == (2, 1),
            "two candidates are done, and a side of the third",
            120,
        )
        wait_until(lambda: suites.begun() == 6, "the last side runs", 30)
        ui.kill()
    suites.open()
    wait_until(lambda: not processes_in(tiny.root), "the boxes die with their owner", 30)
    before = {path: path.read_bytes() for path in (*passes.rglob("*.parquet"), *sides.rglob("*.parquet"))}
    with running(tiny):  # which finds the dead run, and runs it again by itself
        wait_until(lambda: len(list(passes.rglob("first.parquet"))) == len(keys), "the rest is done", 120)
    assert suites.begun() == 6 + 1
    assert len(keys) == 3
    assert {path: path.read_bytes() for path in before if path.exists()} == {
        path: data for path, data in before.items() if path.is_relative_to(passes)
    }
