"""The status of a workspace: what is stale, what is blocked and by what, and what comes next."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from evalpipe import console
from evalpipe.agents import PatchReplay
from evalpipe.lake import Row
from evalpipe.sandbox import EngineUnavailable
from evalpipe.stages.calibrating import calibrate_task
from evalpipe.stages.gradings import grade_sample
from evalpipe.stages.reporting import gather_results, write_report
from evalpipe.stages.status import WorkspaceStatus, workspace_status
from evalpipe.stages.sweeps import load_sweep_task_set, sample_keys
from evalpipe_tests.stages.sweeping import first_key, judge_without_a_box, part_of, rows_of, run, with_faults
from evalpipe_tests.stages.workspaces import DAY_ONE, TestBench

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def graded_without_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("calibrating", "grading_rows"):
        monkeypatch.setattr(f"evalpipe.stages.{module}.grade_patch", judge_without_a_box)


def attempt_all(bench: TestBench, agent: str) -> None:
    part = part_of(bench, agent)
    patches = PatchReplay(lambda one: part.task_set.gold_patch(one.task.task_id) if agent == "reference" else b"")
    for key in sample_keys(bench.sweep, part.task_set):
        run(bench, part, patches, key)
        grade_sample(bench, part, key, {})


def agent_of(status: WorkspaceStatus, name: str) -> Any:
    return next(agent for agent in status.sweeps[0].agents if agent.name == name)


def test_a_changed_agent_is_stale_until_it_is_run_again(frozen: TestBench) -> None:
    attempt_all(frozen, "reference")
    assert workspace_status(frozen).stale == []
    frozen.rewrite("data/agents/reference.yaml", "adapter: reference\n", "adapter: reference\nscaffold_version: '2'\n")
    status = workspace_status(frozen)
    found = agent_of(status, "reference")
    assert (found.attempted, found.graded, found.due, found.stale) == (0, 0, 4, 4)
    (line,) = status.stale
    assert "4 samples of reference" in line
    assert "`evalpipe run spring --agent reference`" in line
    frozen.days_later(1)
    attempt_all(frozen, "reference")
    status = workspace_status(frozen)
    assert (agent_of(status, "reference").stale, status.stale) == (0, [])


def test_a_report_that_is_older_than_its_grades_is_stale(frozen: TestBench) -> None:
    frozen.time.now = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    for name in ("reference", "empty"):
        attempt_all(frozen, name)
    agents = {name: frozen.agent(name) for name in ("reference", "empty")}
    write_report(frozen, frozen.report_path("spring").parent, gather_results(frozen, frozen.sweep, agents))
    status = workspace_status(frozen)
    assert (status.stale, status.next_steps) == ([], [])
    frozen.days_later(1)
    part, key = part_of(frozen, "empty"), first_key(frozen)
    grade_sample(frozen, part, key, {})
    row = frozen.lake.rows("graded_results", *part.place(key))[0]
    frozen.lake.write("graded_results", [{**row, "graded_at": frozen.clock()}], *part.place(key))
    status = workspace_status(frozen)
    assert status.next_steps == ["evalpipe report spring"]
    assert "older than its grades" in status.stale[0]


def test_second_passes_wait_for_tomorrow(frozen: TestBench) -> None:
    for path in (frozen.lake.root / "validation_runs").rglob("second.parquet"):
        path.unlink()
    frozen.time.now = DAY_ONE
    status = workspace_status(frozen)
    assert status.repositories[0].second_passes_waiting == 3
    assert "clock: 3 second passes wait for tomorrow (UTC)" in status.blocked
    frozen.days_later(1)
    status = workspace_status(frozen)
    assert (status.repositories[0].second_passes_due, status.repositories[0].second_passes_waiting) == (3, 0)
    assert not any("second passes" in line for line in status.blocked)


def test_a_sweep_without_its_set_is_blocked(mined: TestBench) -> None:
    assert "spring: its task set q is not frozen yet" in workspace_status(mined).blocked
    (mined.workspace.task_sets_dir / "q" / "tasks").mkdir(parents=True)
    assert any(line.startswith("spring: ") and "task_set.json" in line for line in workspace_status(mined).blocked)


def test_a_failed_calibration_blocks_its_task(frozen: TestBench) -> None:
    task_set = load_sweep_task_set(frozen, frozen.sweep)
    first, second = task_set.tasks
    rows: list[Row] = []
    for task_id in (first, second):
        rows = calibrate_task(frozen, task_set, task_id, {})
    wrong = [{**row, "resolved": False} for row in rows]
    frozen.lake.write("calibration", wrong, "q", task_set.record.revision[:16], second)
    status = workspace_status(frozen)
    assert (status.task_sets[0].calibrated, status.task_sets[0].miscalibrated) == (1, [second])
    assert f"q: no attempt is made at {second}, which failed the calibration" in status.blocked
    assert agent_of(status, "empty").due == 2  # both samples of the other task


def test_invalid_attempts_block_when_their_tries_are_used_up(frozen: TestBench) -> None:
    part, key = part_of(frozen, "empty"), first_key(frozen)
    for number in range(3):
        with_faults(frozen, EngineUnavailable("gone"))
        run(frozen, part, PatchReplay(lambda one: b""), key)
        lines = [line for line in workspace_status(frozen).blocked if "stay invalid" in line]
        assert len(lines) == (number == 2)
    found = agent_of(workspace_status(frozen), "empty")
    assert (found.invalid, found.given_up, found.due) == (1, 1, 3)


def test_what_has_no_text_is_blocked_and_no_next_step(frozen: TestBench) -> None:
    """Another `evalpipe run` would not make it either."""
    attempt_all(frozen, "reference")
    attempt_all(frozen, "empty")
    assert workspace_status(frozen).next_steps == ["evalpipe report spring"]
    frozen.rewrite("data/sweeps/spring.yaml", "samples: 2", "samples: 2\nmodes: [original, terse]")
    status = workspace_status(frozen)
    (line,) = [line for line in status.blocked if "have no terse text" in line]
    assert line.startswith("spring: 2 tasks have")
    assert (agent_of(status, "empty").samples, agent_of(status, "empty").due) == (8, 0)
    assert status.next_steps == ["evalpipe report spring"]


def test_what_the_budget_stopped_is_blocked(frozen: TestBench) -> None:
    part, key = part_of(frozen, "empty"), first_key(frozen)
    run(frozen, part, PatchReplay(lambda one: b""), key)
    (row,) = rows_of(frozen, part, key)
    frozen.lake.write("agent_runs", [{**row, "outcome": "budget_stop"}], *part.place(key))
    status = workspace_status(frozen)
    assert agent_of(status, "empty").over_budget == 1
    assert "spring: 1 samples of empty wait for a larger budget_usd" in status.blocked


def test_a_failed_probe_blocks_its_agent(frozen: TestBench) -> None:
    probe = {
        "sweep": "spring",
        "agent": "empty",
        "configuration": "c",
        "image_digest": "sha256:1",
        "tasks": [],
        "findings": ["network: eth0"],
        "probed_at": frozen.clock(),
        "probe_seconds": 1.0,
    }
    frozen.lake.write("probes", [probe], "spring", "c", "1", "a")
    assert "spring: empty is not run in sha256:1: network: eth0" in workspace_status(frozen).blocked
    mended = {**probe, "findings": [], "probed_at": frozen.clock(), "configuration": "d"}
    frozen.lake.write("probes", [mended], "spring", "d", "1", "a")
    assert not any("is not run in" in line for line in workspace_status(frozen).blocked)


def test_the_text_fits_a_screen_and_tells_what_moves_first(frozen: TestBench) -> None:
    attempt_all(frozen, "reference")
    status = workspace_status(frozen)
    status.running = ["spring__agent_runs, since 2026-05-01 12:00 UTC (run 12345678)"]
    lines = console.status_text(status).splitlines()
    assert lines[:2] == ["Running", f"  {status.running[0]}"]
    assert lines[-2:] == ["Next", "  evalpipe run spring"]
    assert "  spring over q: 1 of 2 agents attempted and graded" in lines
    # An agent that is through has no line of its own.
    assert any(line.startswith("    empty: 0 of 4 attempted") for line in lines)
    assert not any(line.startswith("    reference:") for line in lines)
    assert len(lines) < 24
    json.dumps(status.to_json())
