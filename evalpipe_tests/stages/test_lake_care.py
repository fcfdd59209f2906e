"""The lake's health: what is bad is found and named, what nothing needs can go, and what was paid for never does."""

from __future__ import annotations

import datetime as dt
import os
import time
from pathlib import Path

import pytest

from evalpipe.agents import PatchReplay
from evalpipe.environments import ProcessEnvironmentBuilder
from evalpipe.lake import LakeError, LakeFaultKind
from evalpipe.stages.lake_verification import verify_lake
from evalpipe.stages.status import workspace_status
from evalpipe.stages.trimming import SpareKind, find_spares
from evalpipe_tests.stages.sweeping import first_key, part_of, rows_of, run
from evalpipe_tests.stages.workspaces import TestBench

pytestmark = pytest.mark.slow
MONTH = dt.timedelta(days=30)
YEAR_AGO = time.time() - 365 * 86_400


@pytest.fixture
def attempted(frozen: TestBench) -> TestBench:
    """A workspace with one attempt, whose patch is a blob; its clock is that of the files."""
    part = part_of(frozen)
    run(frozen, part, PatchReplay(lambda one: part.task_set.gold_patch(one.task.task_id)), first_key(frozen))
    frozen.time.now = dt.datetime.now(dt.UTC)
    return frozen


def patch_of(bench: TestBench) -> Path:
    (row,) = rows_of(bench, part_of(bench), first_key(bench))
    return bench.lake.blobs.path(row["patch_sha256"])


def aged(path: Path) -> Path:
    os.utime(path, (YEAR_AGO, YEAR_AGO))
    return path


def test_a_whole_lake_has_no_fault(attempted: TestBench) -> None:
    report = verify_lake(attempted)
    assert report.faults == ()
    assert report.tables > 5
    assert (report.blobs, report.manifests) == (2, 1)


def test_every_bad_file_is_named_at_once(attempted: TestBench) -> None:
    blob = patch_of(attempted)
    table = attempted.lake.path("agent_runs", *part_of(attempted).place(first_key(attempted)))
    (manifest,) = (attempted.lake.root / "manifests").rglob("*.json")
    blob.write_bytes(b"something else")
    (attempted.lake.root / "validated_tasks" / "clock.parquet").write_bytes(b"PAR1")
    manifest.write_text("{}")
    (table.parent / ".x.1.ab.tmp").touch()
    report = verify_lake(attempted)
    assert {fault.kind: fault.path for fault in report.faults} == {
        LakeFaultKind.CHANGED_BLOB: blob,
        LakeFaultKind.UNREADABLE_TABLE: attempted.lake.root / "validated_tasks" / "clock.parquet",
        LakeFaultKind.MANIFEST: manifest,
    }
    for fault in report.faults:
        assert str(fault.path) in fault.text
        assert "restore" in fault.text
    assert [path.name for path in report.unfinished] == [".x.1.ab.tmp"]
    blob.unlink()
    assert LakeFaultKind.MISSING_BLOB in {fault.kind for fault in verify_lake(attempted).faults}


def test_attempts_without_their_manifest_are_named_by_verification_and_status(attempted: TestBench) -> None:
    (manifest,) = (attempted.lake.root / "manifests").rglob("*.json")
    manifest.unlink()
    (fault,) = verify_lake(attempted).faults
    assert (fault.kind, fault.path) == (LakeFaultKind.MANIFEST, manifest.parents[1])
    assert "restore" in fault.text
    status = workspace_status(attempted)
    agents = {agent.name: (agent.attempted, agent.unrecorded, agent.stale) for agent in status.sweeps[0].agents}
    assert agents["reference"] == (0, 1, 0)
    assert "spring: the manifest of 1 attempted samples of reference is gone" in " ".join(status.blocked)


def test_what_rows_name_stays_however_old_it_is(attempted: TestBench) -> None:
    for path in attempted.lake.root.rglob("*"):
        aged(path)
    assert find_spares(attempted, MONTH).items == ()
    assert verify_lake(attempted).faults == ()


def test_what_nothing_needs_is_named_and_goes_when_it_is_old(attempted: TestBench) -> None:
    lake = attempted.lake
    orphan = aged(lake.blobs.path(lake.blobs.put(b"of a run that was killed")))
    young = lake.blobs.path(lake.blobs.put(b"of a run that is under way"))
    unfinished = lake.root / "agent_runs" / ".x.parquet.1.ab.tmp"
    unfinished.write_bytes(b"half")
    aged(unfinished)
    log = attempted.workspace.state_dir / "a-run" / "compute_logs" / "step.out"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"hello")
    aged(log)
    found = find_spares(attempted, MONTH)
    assert {(spare.kind, spare.name, spare.size) for spare in found.items} == {
        (SpareKind.UNNAMED_BLOB, str(orphan), 24),
        (SpareKind.UNFINISHED_WRITE, str(unfinished), 4),
        (SpareKind.RUN_LOG, str(log.parent), 5),
    }
    for path in (orphan, unfinished, log):
        assert path.exists()
    for spare in found.items:
        spare.remove()
    for path in (orphan, unfinished, log):
        assert not path.exists()
    assert young.exists()
    assert find_spares(attempted, MONTH).items == ()
    assert verify_lake(attempted).faults == ()


def test_a_blob_that_is_put_again_meanwhile_stays(attempted: TestBench) -> None:
    blobs = attempted.lake.blobs
    path = aged(blobs.path(blobs.put(b"once and again")))
    (spare,) = find_spares(attempted, MONTH).items
    blobs.put(b"once and again")
    spare.remove()
    assert path.exists()


def test_nothing_goes_while_a_table_cannot_be_read(attempted: TestBench) -> None:
    aged(attempted.lake.blobs.path(attempted.lake.blobs.put(b"orphan")))
    table = attempted.lake.path("agent_runs", *part_of(attempted).place(first_key(attempted)))
    table.write_bytes(b"")
    with pytest.raises(LakeError, match=f"nothing is trimmed while a table cannot be read: {table}"):
        find_spares(attempted, MONTH)


def test_what_may_be_in_use_is_never_asked_for(frozen: TestBench) -> None:
    with pytest.raises(ValueError, match="may be in use"):
        find_spares(frozen, dt.timedelta(hours=1))


def test_environments_that_no_task_names_can_go(tmp_path: Path) -> None:
    builder = ProcessEnvironmentBuilder(tmp_path)
    for name in ("needed", "spare", "young", "half"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").write_bytes(b"12345678")
        if name != "half":
            marker = tmp_path / name / ".evalpipe-complete"
            marker.touch()
            if name != "young":
                aged(marker)
    month_ago = dt.datetime.now(dt.UTC) - MONTH
    (spare,) = builder.spare({"environment:needed"}, month_ago)
    assert spare.name == str(tmp_path / "spare")
    assert spare.size >= 8
    spare.remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["half", "needed", "young"]
