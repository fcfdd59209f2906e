"""A process that is stopped or killed in the middle: what was finished stays, what was not is done by the next."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest

from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import (
    Gate,
    TinyWorkspace,
    finish,
    killed_at_the_end,
    processes_in,
    repository_yaml,
    wait_until,
)

pytestmark = pytest.mark.slow
Copied = Callable[[Walk], TinyWorkspace]


def _attempts(tiny: TinyWorkspace, agent: str) -> dict[str, list[str]]:
    """Outcomes of the attempts of each sample."""
    found: dict[str, list[str]] = {}
    for path in sorted((tiny.lake / "agent_runs" / "small" / agent).rglob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            found.setdefault(f"{row['task_id']} {row['sample']}", []).append(row["outcome"])
    return found


def _start_and_reach_the_middle(tiny: TinyWorkspace) -> subprocess.Popen[str]:
    """Run the reference agent until two of its four attempts are finished and the others wait in their boxes."""
    before = tiny.gate.begun()
    tiny.gate.hold_from(before + 2)
    process = tiny.start("run", "small", "--agent", "reference")
    in_flight = min(2, os.cpu_count() or 1)

    def half_done() -> bool:
        assert process.poll() is None, process.communicate()
        outcomes = Counter(outcome for row in _attempts(tiny, "reference").values() for outcome in row)
        return outcomes["finished"] == 2 and tiny.gate.begun() == before + 2 + in_flight

    wait_until(half_done, "two attempts finished and the others in their boxes")
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_stopped_run_ends_at_once_keeps_what_is_finished_and_goes_on(
    number: signal.Signals, copied: Copied, begun: Walk
) -> None:
    tiny = copied(begun)
    try:
        with killed_at_the_end(_start_and_reach_the_middle(tiny)) as process:
            process.send_signal(number)
            stopped = finish(process, timeout_s=20)
    finally:
        tiny.gate.open()
    assert stopped.code == 130
    assert stopped.out == ""
    assert "everything that was finished is kept" in stopped.err
    assert "Traceback" not in stopped.err
    assert processes_in(tiny.root) == []
    outcomes = sorted(tuple(row) for row in _attempts(tiny, "reference").values())
    assert outcomes.count(("finished",)) == 2
    tiny.succeed("run", "small", "--agent", "reference")
    _all_finished_once_or_after_an_interruption(tiny)


def test_a_killed_run_is_finished_by_the_next_and_leaves_nothing_behind(copied: Copied, begun: Walk) -> None:
    """Killed three times over: one time more than Dagster's pools have places."""
    tiny = copied(begun)
    try:
        with killed_at_the_end(_start_and_reach_the_middle(tiny)) as process:
            process.kill()
            process.wait()
        for _ in range(2):
            again = tiny.gate.begun()
            with killed_at_the_end(tiny.start("run", "small", "--agent", "reference")) as process:
                wait_until(lambda started=again: tiny.gate.begun() > started, "an attempt begins")  # type: ignore[misc]
                process.kill()
                process.wait()
    finally:
        tiny.gate.open()
    before = tiny.gate.begun()
    tiny.succeed("run", "small", "--agent", "reference")
    assert tiny.gate.begun() == before + 2
    assert processes_in(tiny.root) == []
    assert list((tiny.root / "data/state/boxes").glob("evalpipe-*")) == []
    _all_finished_once_or_after_an_interruption(tiny)


def _all_finished_once_or_after_an_interruption(tiny: TinyWorkspace) -> None:
    attempts = _attempts(tiny, "reference")
    assert len(attempts) == 4
    assert all(row[-1] == "finished" and set(row[:-1]) <= {"interrupted"} for row in attempts.values()), attempts
    assert sum(len(row) == 1 for row in attempts.values()) >= 2  # what was finished was not repeated
    assert not list(tiny.lake.rglob("*.tmp"))


def test_a_killed_run_does_not_stay_running_in_dagster(copied: Copied, begun: Walk) -> None:
    tiny = copied(begun)
    try:
        with killed_at_the_end(_start_and_reach_the_middle(tiny)) as process:
            process.kill()
            process.wait()
    finally:
        tiny.gate.open()
    tiny.succeed("grade", "small", "--agent", "empty")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALPIPE_STATE_DIR", str(tiny.root / "data/state"))
        with dg.DagsterInstance.from_config(str(tiny.root)) as instance:
            statuses = {run.status for run in instance.get_runs()}
            keys = instance.event_log_storage.get_concurrency_keys()
            held = {key: instance.event_log_storage.get_concurrency_info(key).active_slot_count for key in keys}
    assert statuses <= {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}
    assert set(held.values()) == {0}


def test_validation_killed_in_the_middle_goes_on_where_it_was(copied: Copied, mined: Walk, tmp_path: Path) -> None:
    tiny = copied(mined)
    suites = Gate(tmp_path / "suites")
    suites.folder.mkdir()
    python = suites.folder / "python"
    python.write_text(suites.before(f"{tiny.gate.folder}/python3"))
    python.chmod(0o755)
    tiny.write("data/repos/shop.yaml", repository_yaml(["true"], str(python)))
    suites.hold_from(5)  # of three candidates with two sides each: all but the last side of one
    passes = tiny.lake / "validation_runs"

    sides = tiny.lake / "suite_runs"

    def all_but_one_side_are_done() -> bool:
        finished = {path.parent.name for path in passes.rglob("first.parquet")}
        kept_sides = [path.relative_to(sides).parts[0] for path in sides.rglob("*.parquet")]
        # Sides of a finished pass are removed one by one, so a count could be met too early.
        third = len(kept_sides) == 1 and kept_sides[0] not in finished
        return len(finished) == 2 and third and suites.begun() == 6

    with killed_at_the_end(tiny.start("validate", "--same-day")) as process:
        wait_until(all_but_one_side_are_done, "two candidates are done, and a side of the third")
        process.kill()
        process.wait()
    suites.open()
    kept = {path: path.read_bytes() for path in passes.rglob("first.parquet")}
    status = tiny.succeed("status", "--json").json()
    assert status["repositories"][0]["first_passes"] == 2
    assert status["next_steps"] == ["evalpipe validate shop"]
    tiny.succeed("validate", "--same-day")
    assert {path: path.read_bytes() for path in kept} == kept
    # One side is left in the first pass, and three candidates in the second with two sides each.
    assert suites.begun() == 6 + 1 + 6
    assert not list(sides.rglob("*.parquet"))
    assert processes_in(tiny.root) == []
    tiny.succeed("freeze", "tiny", "--provisional")


def test_freezing_killed_in_the_middle_leaves_no_set_and_no_sweep(copied: Copied, frozen: Walk) -> None:
    """A set counts from its last file on: without it the same command starts anew, over what lies there."""
    tiny = copied(frozen)
    folder = tiny.root / "data/task_sets/tiny"
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code = (
        "import os, evalpipe.tasks.task_set as sets\n"
        "from evalpipe.stages import freezing\n"
        "write = freezing.write_atomically\n"
        "def dying(path, data):\n"
        "    if path.name.endswith('.test.patch'): os.kill(os.getpid(), 9)\n"
        "    write(path, data)\n"
        "freezing.write_atomically = dying\n"
        "from evalpipe.cli import main\n"
        "main()\n"
    )
    shutil.rmtree(folder)
    command = [sys.executable, "-c", code, "freeze", "tiny", "--provisional"]
    died = subprocess.run(command, cwd=tiny.root, env=tiny.environment(), capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert list(folder.rglob("*.json"))
    assert not (folder / "task_set.json").exists()
    assert tiny.succeed("status", "--json").json()["next_steps"] == ["evalpipe freeze tiny"]
    tiny.succeed("freeze", "tiny", "--provisional")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == whole
