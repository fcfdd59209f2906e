"""The commands of operation: what they print, how they end, and that a restored copy is the workspace it was."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import evalpipe
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, killed_at_the_end, wait_until

pytestmark = pytest.mark.slow
Copied = Callable[[Walk], TinyWorkspace]
OPERATIONS = Path(evalpipe.__file__).parents[1] / "docs" / "operations.md"


def test_a_whole_lake_verifies(finished: Walk) -> None:
    done = finished.tiny.succeed("lake", "verify")
    assert done.out.endswith(": in order\n")
    assert finished.tiny.succeed("lake", "verify", "--json").json()["faults"] == []


def test_a_bad_file_ends_with_1_and_is_named(copied: Copied, finished: Walk) -> None:
    tiny = copied(finished)
    blob = next(path for path in (tiny.lake / "blobs").rglob("*") if path.is_file())
    blob.write_bytes(b"not what it was")
    done = tiny.call("lake", "verify")
    assert done.code == 1
    assert f"changed_blob: {blob} was changed" in done.out
    assert "1 bad files" in done.out
    (fault,) = tiny.call("lake", "verify", "--json").json()["faults"]
    assert fault["path"] == str(blob)


def test_a_dry_run_names_what_would_go_and_removes_nothing(copied: Copied, finished: Walk) -> None:
    tiny = copied(finished)
    orphan = tiny.lake / "blobs" / "ab" / ("ab" * 32)
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"orphan")
    year_ago = time.time() - 365 * 86_400
    os.utime(orphan, (year_ago, year_ago))
    done = tiny.succeed("lake", "trim", "--dry-run")
    assert f"unnamed_blob {orphan} (6 B, last used" in done.out
    assert "1 would go, 6 B" in done.out
    assert orphan.exists()
    items = tiny.succeed("lake", "trim", "--json").json()["items"]
    assert [(item["kind"], item["bytes"]) for item in items] == [("unnamed_blob", 6)]
    assert not orphan.exists()
    assert "0 gone" in tiny.succeed("lake", "trim").out


def test_a_restored_backup_is_the_workspace_that_it_was(finished: Walk, tmp_path: Path) -> None:
    """By the very commands of docs/operations.md, into what a clone of the team's repository has."""
    tiny = finished.tiny
    lines = [line.strip() for line in OPERATIONS.read_text().splitlines()]
    create = next(line for line in lines if line.startswith("tar --create"))
    extract = next(line for line in lines if line.startswith("tar --extract"))
    left_out = shutil.ignore_patterns("state", "lake")
    shutil.copytree(tiny.root, tmp_path / "restored", symlinks=True, ignore=left_out)
    restored = TinyWorkspace(tmp_path / "restored", tiny.variables)
    archive = shlex.quote(str(tmp_path / "lake.tar.gz"))
    create, extract = create.replace("lake-$(date +%F).tar.gz", archive), extract.replace("lake-….tar.gz", archive)
    for command, folder in ((create, tiny.root), (extract, restored.root)):
        assert archive in command
        subprocess.run(["sh", "-c", command], cwd=folder, check=True)
    restored.succeed("lake", "verify")
    assert restored.succeed("tasks", "check", "tiny").code == 0
    begun = restored.gate.begun()
    rows = {path: path.read_bytes() for path in (restored.lake / "agent_runs").rglob("*.parquet")}
    assert rows
    report = restored.succeed("report", "small", "--json").json()
    del report["report"]
    before = finished.answers["report"].json()
    del before["report"]
    assert report == before
    assert restored.succeed("status", "--json").json()["next_steps"] == []
    assert restored.gate.begun() == begun > 0
    assert {path: path.read_bytes() for path in rows} == rows


def test_the_next_sweep_is_written_once_and_the_next_step_named(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    done = tiny.succeed("sweep", "new", "next", "--from", "small")
    assert done.out == "data/sweeps/next.yaml\n"
    assert "evalpipe freeze next" in done.err
    again = tiny.call("sweep", "new", "next", "--from", "small")
    assert (again.code, again.out) == (2, "")
    assert "is not overwritten" in again.err


def test_a_gate_runs_what_was_always_solved_again_and_keeps_the_sweeps_rows(
    copied: Copied, finished: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalpipe.stages.gate.least_discordant_tasks", lambda _: 1)
    tiny = copied(finished)
    # As a CI job has it: a checkout whose lake is a link to the one of the machine, and no state.
    tiny.lake.rename(tiny.root / "lake-of-the-machine")
    tiny.lake.symlink_to(tiny.root / "lake-of-the-machine")
    shutil.rmtree(tiny.root / "data/state")
    rows = {path: path.read_bytes() for path in (tiny.lake / "agent_runs" / "small").rglob("[!.]*.parquet")}
    script = tiny.root / "data/half/script.json"
    script.write_text(script.read_text().replace('["two.patch"]', "[null]"))  # it solves nothing from now on
    begun = tiny.gate.begun()
    asked = ("gate", "small", "--agent", "half", "--samples", "2", "--json")
    found = tiny.succeed(*asked).json()
    assert found["verdict"] == "held"  # one task is too few for the paired test
    assert list(found["tasks"].values()) == [{"before": "2/2", "now": "0/2"}]
    assert (found["always_solved"], found["difference"], found["lost"]) == (1, -1.0, [])
    assert any(line.startswith("agent.scaffold_version") for line in found["changes"])
    assert {path: path.read_bytes() for path in rows} == rows
    # Made once for a state of the agent's file.
    made = sorted(path for path in (tiny.lake / "agent_runs").glob("small.gate*/**/*.parquet"))
    assert tiny.succeed(*asked).json() == found
    assert sorted((tiny.lake / "agent_runs").glob("small.gate*/**/*.parquet")) == made
    assert len(made) == 2
    assert tiny.gate.begun() == begun  # it changes nothing in any box


def test_a_gate_ends_with_1_when_it_drops_and_when_it_cannot_tell(
    copied: Copied, finished: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = copied(finished)
    few = tiny.call("gate", "small", "--agent", "reference")
    assert (few.code, few.out) == (1, "")
    assert "fewer than 6" in few.err
    wrong = tiny.call("gate", "small", "--agent", "reference", "--label", "a b")
    assert (wrong.code, wrong.out) == (2, "")
    monkeypatch.setattr("evalpipe.stages.gate.least_discordant_tasks", lambda _: 1)
    monkeypatch.setattr("evalpipe.stages.gate.LEVEL", 1.0)
    script = tiny.root / "data/half/script.json"
    script.write_text(script.read_text().replace('["two.patch"]', "[null]"))
    done = tiny.call("gate", "small", "--agent", "half", "--samples", "1", "--label", "pr-7")
    assert done.code == 1
    assert "small.gate-pr-7, half: dropped" in done.out
    assert len(list((tiny.lake / "agent_runs").glob("small.gate-pr-7/**/*.parquet"))) == 1
    assert "Traceback" not in done.err


def test_status_says_what_is_running_and_not_what_was_killed(copied: Copied, begun: Walk) -> None:
    tiny = copied(begun)
    before = tiny.gate.begun()
    tiny.gate.hold_from(before)
    try:
        with killed_at_the_end(tiny.start("run", "small", "--agent", "reference")):
            wait_until(lambda: tiny.gate.begun() > before, "an attempt is under way")
            (line,) = tiny.succeed("status", "--json").json()["running"]
            assert line.startswith("small/reference/agent_runs, since ")
            assert tiny.succeed("status").out.startswith(f"Running\n  {line}\n")
    finally:
        tiny.gate.open()
    assert tiny.succeed("status", "--json").json()["running"] == []
