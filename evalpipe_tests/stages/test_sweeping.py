"""Attempts and grades as stages: paid once, kept for good, repeated only where the table of outcomes says so."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalpipe.agents import Adapter
from evalpipe.grading import verdict_key
from evalpipe.lake import DiskFullError
from evalpipe.sandbox import Box, EngineFault, EngineUnavailable, Interrupted, Limits, SandboxError
from evalpipe.stages import attempts
from evalpipe.stages.attempts import latest_attempt, run_sample
from evalpipe.stages.calibrating import calibrate_task, calibration_rows, is_calibrated
from evalpipe.stages.gradings import AttemptMissing, grade_sample
from evalpipe.stages.images import EnvironmentNotReady
from evalpipe.stages.reporting import gather_results
from evalpipe.stages.sweeps import (
    AgentSweep,
    SampleKey,
    adapter_for,
    find_agent_sweep,
    load_sweep_task_set,
    open_agent_sweep,
    record_manifests,
    sample_keys,
)
from evalpipe.tasks import PromptMissing, PromptMode
from evalpipe_tests.agents.adapters import ShellAgent
from evalpipe_tests.stages.workspaces import CountingSandbox, TestBench

MEND = ShellAgent("sed -i 's/return 11/return 12/' clock.py")
BREAK = ShellAgent("sed -i 's/return 11/return 12/; s/def hours/def other/' clock.py; echo x > conftest.py")


def part_of(bench: TestBench, agent: str = "reference") -> AgentSweep:
    """An agent's part of the sweep, ready to run."""
    part = open_agent_sweep(bench, bench.sweep, bench.agent(agent), "run-1")
    record_manifests(bench, part)
    return part


def first_key(bench: TestBench, number: int = 1) -> SampleKey:
    task_id = next(iter(load_sweep_task_set(bench, bench.sweep).tasks))
    return SampleKey(task_id, PromptMode.ORIGINAL, number)


def run(bench: TestBench, part: AgentSweep, adapter: Adapter, key: SampleKey) -> tuple[dict[str, Any], bool]:
    return run_sample(bench, part, adapter, key, "run-1", {"run": "run-1"})


def rows_of(bench: TestBench, part: AgentSweep, key: SampleKey) -> list[dict[str, Any]]:
    return bench.lake.rows("agent_runs", *part.place(key))


class FaultySandbox(CountingSandbox):
    """Raises what it is told to, once for each, before it opens a box."""

    faults: list[SandboxError]

    @contextmanager
    def open(self, environment: str, limits: Limits, labels: Mapping[str, str]) -> Iterator[Box]:
        if self.faults:
            raise self.faults.pop(0)
        with super().open(environment, limits, labels) as box:
            yield box


def with_faults(bench: TestBench, *faults: SandboxError) -> None:
    sandbox = FaultySandbox(bench.instance, bench.workspace.state_dir)
    sandbox.faults = list(faults)
    bench.sandbox = sandbox


def test_sample_is_attempted_once(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    assert latest_attempt(frozen, part, key) is None
    row, new = run(frozen, part, MEND, key)
    assert (row["outcome"], row["attempt"], new, frozen.boxes) == ("finished", 1, True, 1)
    assert frozen.lake.blobs.get(row["patch_sha256"]).startswith(b"diff --git a/clock.py")
    assert row["started_at"] < row["ended_at"]
    again, new = run(frozen, part, BREAK, key)
    assert (again, new, frozen.boxes) == (rows_of(frozen, part, key)[0], False, 1)
    assert again["patch_sha256"] == row["patch_sha256"]
    assert frozen.sandbox.opened[0] == {
        "run": "run-1",
        "task": key.task_id,
        "sample": "original-1",
        "purpose": "agent",
    }


@pytest.mark.parametrize(
    ("script", "outcome"),
    [("exit 3", "agent_crashed"), ("true", "empty_patch"), ("sleep 60", "timeout")],
)
def test_failure_of_an_agent_counts_and_is_not_repeated(frozen: TestBench, script: str, outcome: str) -> None:
    frozen.rewrite("data/sweeps/spring.yaml", "timeout_s: 30", "timeout_s: 1")
    part, key = part_of(frozen), first_key(frozen)
    row, _ = run(frozen, part, ShellAgent(script), key)
    assert row["outcome"] == outcome
    assert run(frozen, part, MEND, key)[1] is False


def test_invalid_attempts_are_repeated_up_to_the_bound_and_then_left(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    with_faults(frozen, *[EngineUnavailable(f"dead {n}") for n in range(5)])
    outcomes = [run(frozen, part, MEND, key) for _ in range(4)]
    assert [new for _, new in outcomes] == [True, True, True, False]
    rows = rows_of(frozen, part, key)
    assert [(row["attempt"], row["outcome"], row["outcome_detail"]) for row in rows] == [
        (1, "engine_error", "dead 0"),
        (2, "engine_error", "dead 1"),
        (3, "engine_error", "dead 2"),
    ]


def test_interrupted_attempts_use_up_nothing(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    faults = [
        EngineFault("x"),
        Interrupted("a"),
        Interrupted("b"),
        Interrupted("c"),
        EngineFault("y"),
        Interrupted("d"),
    ]
    with_faults(frozen, *faults)
    assert all(run(frozen, part, MEND, key)[1] for _ in range(7))
    outcomes = [row["outcome"] for row in rows_of(frozen, part, key)]
    assert outcomes == ["engine_error", *["interrupted"] * 3, "engine_error", "interrupted", "finished"]


def test_missing_image_full_disk_and_missing_text_cost_nothing(
    frozen: TestBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, key = part_of(frozen), first_key(frozen)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(attempts, "FREE_BYTES_FLOOR", 1 << 62)
        with pytest.raises(DiskFullError, match="free some space"):
            run(frozen, part, MEND, key)
    monkeypatch.setattr(type(frozen.host_python), "exists", lambda self, digest: False)
    with pytest.raises(EnvironmentNotReady, match=key.task_id):
        run(frozen, part, MEND, key)
    frozen.rewrite("data/sweeps/spring.yaml", "samples: 2", "samples: 2\nmodes: [original, terse]")
    with pytest.raises(PromptMissing, match="terse"):
        run(frozen, part_of(frozen), MEND, SampleKey(key.task_id, PromptMode.TERSE, 1))
    assert not list((frozen.lake.root / "agent_runs").rglob("*.parquet"))
    assert frozen.boxes == 0


def test_set_of_another_sandbox_does_not_run_here(frozen: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    part, key = part_of(frozen), first_key(frozen)
    monkeypatch.setattr(CountingSandbox, "name", "docker")
    with pytest.raises(EnvironmentNotReady, match="process sandbox"):
        run(frozen, part, MEND, key)


def _attempt_in_child(root: Path, environment: Path, script: str) -> None:
    bench = TestBench(root, environment)
    run(bench, part_of(bench), ShellAgent(script), first_key(bench))


def _child(frozen: TestBench, script: str) -> multiprocessing.process.BaseProcess:
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_attempt_in_child, args=(frozen.workspace.root, frozen.environment, script))
    child.start()
    return child


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.02)


@pytest.mark.slow
def test_attempt_of_a_killed_process_is_kept_and_made_again(frozen: TestBench, tmp_path: Path) -> None:
    part, key = part_of(frozen), first_key(frozen)
    child = _child(frozen, f"touch {tmp_path}/running; sleep 600")
    _wait_for(tmp_path / "running")
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    (left,) = rows_of(frozen, part, key)
    assert (left["outcome"], left["attempt"], left["ended_at"]) == ("interrupted", 1, None)

    row, new = run(frozen, part, MEND, key)
    assert (row["outcome"], row["attempt"], new) == ("finished", 2, True)
    assert [one["outcome"] for one in rows_of(frozen, part, key)] == ["interrupted", "finished"]
    assert rows_of(frozen, part, key)[0] == left


@pytest.mark.slow
def test_two_processes_at_one_sample_make_one_attempt(frozen: TestBench, tmp_path: Path) -> None:
    part, key = part_of(frozen), first_key(frozen)
    script = f"echo x >> {tmp_path}/paid; touch {tmp_path}/running; sleep 1; echo 1 > new"
    children = [_child(frozen, script) for _ in range(2)]
    _wait_for(tmp_path / "running")
    row, new = run(frozen, part, MEND, key)
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert not new
    assert row["outcome"] == "finished"
    assert (tmp_path / "paid").read_text() == "x\n"
    assert len(rows_of(frozen, part, key)) == 1


def test_two_threads_at_one_sample_make_one_attempt(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: run(frozen, part, MEND, key)[1], range(4)))
    assert sorted(made) == [False, False, False, True]
    assert frozen.boxes == 1


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("data/agents/reference.yaml", "adapter: reference\n", 'adapter: reference\nmodel_version: "2"\n'),
        ("data/agents/reference.yaml", "adapter: reference\n", "adapter: reference\ntools: [shell]\n"),
        ("data/sweeps/spring.yaml", "memory: 1g", "memory: 2g"),
        ("data/sweeps/spring.yaml", "timeout_s: 30", "timeout_s: 31"),
    ],
)
def test_another_configuration_has_another_place_and_old_rows_stay(
    frozen: TestBench, file: str, old: str, new: str
) -> None:
    part, key = part_of(frozen), first_key(frozen)
    run(frozen, part, MEND, key)
    before = rows_of(frozen, part, key)
    frozen.rewrite(file, old, new)
    other = part_of(frozen)
    assert other.place(key) != part.place(key)
    assert run(frozen, other, MEND, key)[1] is True
    assert rows_of(frozen, part, key) == before
    frozen.rewrite(file, new, old)
    assert find_agent_sweep(frozen, frozen.sweep, frozen.agent("reference"), part.task_set).place(key) == part.place(
        key
    )


def test_more_samples_repeat_none_of_the_old(frozen: TestBench) -> None:
    part = part_of(frozen)
    keys = list(sample_keys(frozen.sweep, part.task_set))
    assert [key.sample for key in keys] == ["original-1", "original-1", "original-2", "original-2"]
    for key in keys:
        run(frozen, part, ShellAgent("echo 1 > new"), key)
    frozen.rewrite("data/sweeps/spring.yaml", "samples: 2", "samples: 3")
    more = part_of(frozen)
    made = [run(frozen, more, MEND, key)[1] for key in sample_keys(frozen.sweep, more.task_set)]
    assert made == [False] * 4 + [True] * 2


def test_a_description_does_not_make_another_agent(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    frozen.rewrite("data/agents/reference.yaml", "reference\n", "reference\ndescription: the control\n")
    assert part_of(frozen).place(key) == part.place(key)


def test_grade_of_a_sample_is_kept_with_its_evidence(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    with pytest.raises(AttemptMissing, match="evalpipe run spring"):
        grade_sample(frozen, part, key, {})
    run(frozen, part, BREAK, key)
    row, new = grade_sample(frozen, part, key, {"run": "r"})
    assert new
    assert (row["verdict"], row["resolved"], row["counts"]) == ("resolved", True, True)
    assert (row["fail_to_pass_passed"], row["fail_to_pass_total"]) == (1, 1)
    assert row["ignored_paths"] == [b"conftest.py"]
    boxes = frozen.boxes
    assert grade_sample(frozen, part, key, {}) == (frozen.lake.rows("graded_results", *part.place(key))[0], False)
    assert frozen.boxes == boxes


def test_same_patch_is_graded_once_whoever_made_it(frozen: TestBench) -> None:
    part, other = part_of(frozen), part_of(frozen, "empty")
    for one, number in ((part, 1), (part, 2), (other, 1)):
        run(frozen, one, MEND, first_key(frozen, number))
    boxes = frozen.boxes
    verdicts = [
        grade_sample(frozen, one, first_key(frozen, number), {})[0]["verdict"]
        for one, number in ((part, 1), (part, 2), (other, 1))
    ]
    assert verdicts == ["resolved"] * 3
    assert frozen.boxes == boxes + 1


def test_regrading_runs_no_agent(frozen: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    part, key = part_of(frozen), first_key(frozen)
    run(frozen, part, MEND, key)
    first, _ = grade_sample(frozen, part, key, {})
    monkeypatch.setitem(verdict_key.__globals__, "GRADER_VERSION", "next")
    opened = len(frozen.sandbox.opened)
    second, new = grade_sample(frozen, part, key, {})
    assert new
    assert second["verdict_key"] != first["verdict_key"]
    assert [labels["purpose"] for labels in frozen.sandbox.opened[opened:]] == ["grading"]
    assert len(rows_of(frozen, part, key)) == 1


@pytest.mark.parametrize(
    ("adapter", "verdict", "counts"),
    [
        (ShellAgent("true"), "not_graded", True),
        (ShellAgent("exit 1"), "not_graded", True),
        (ShellAgent("mkdir 'git~1'; touch 'git~1/x'"), "patch_rejected", True),
        (ShellAgent("ln -s /etc/passwd x"), "patch_rejected", True),
    ],
    ids=["empty", "crashed", "unreadable", "unsafe"],
)
def test_attempt_without_a_patch_to_run_opens_no_box_to_grade(
    frozen: TestBench, adapter: ShellAgent, verdict: str, counts: bool
) -> None:
    part, key = part_of(frozen), first_key(frozen)
    run(frozen, part, adapter, key)
    boxes = frozen.boxes
    row, _ = grade_sample(frozen, part, key, {})
    assert (row["verdict"], row["resolved"], row["counts"], frozen.boxes) == (verdict, False, counts, boxes)


def test_invalid_attempt_is_not_counted_and_graded_anew_when_it_was_repeated(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    with_faults(frozen, EngineFault("x"))
    run(frozen, part, MEND, key)
    row, _ = grade_sample(frozen, part, key, {})
    assert (row["verdict"], row["counts"]) == ("not_graded", False)
    run(frozen, part, MEND, key)
    row, new = grade_sample(frozen, part, key, {})
    assert (row["verdict"], row["counts"], row["attempt"], new) == ("resolved", True, 2, True)


def test_grade_taken_while_the_attempt_ran_is_replaced_when_it_ended(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    row, _ = run(frozen, part, ShellAgent("true"), key)
    frozen.lake.write("agent_runs", [{**row, "outcome": "interrupted"}], *part.place(key))
    assert grade_sample(frozen, part, key, {})[0]["counts"] is False
    frozen.lake.write("agent_runs", [row], *part.place(key))
    graded, new = grade_sample(frozen, part, key, {})
    assert (graded["outcome"], graded["counts"], new) == ("empty_patch", True, True)


@pytest.mark.slow
def test_calibration_resolves_the_reference_and_not_the_empty_patch(frozen: TestBench) -> None:
    task_set = load_sweep_task_set(frozen, frozen.sweep)
    task_id = next(iter(task_set.tasks))
    assert calibration_rows(frozen, task_set, task_id) == []
    assert not is_calibrated([])
    rows = calibrate_task(frozen, task_set, task_id, {})
    assert [(row["patch"], row["resolved"]) for row in rows] == [("reference", True)] * 3 + [("empty", False)] * 3
    assert is_calibrated(rows)
    assert not is_calibrated([{**rows[0], "resolved": False}, *rows[1:]])
    assert not is_calibrated([*rows[:5], {**rows[5], "resolved": True}])
    boxes = frozen.boxes
    assert boxes == 6
    assert len(calibrate_task(frozen, task_set, task_id, {})) == 6
    assert frozen.boxes == boxes


@pytest.mark.slow
def test_controls_give_all_and_nothing_and_the_report_needs_no_engine(frozen: TestBench, environment: Path) -> None:
    for name in ("reference", "empty"):
        part = part_of(frozen, name)
        adapter = adapter_for(frozen, frozen.agent(name), part.task_set)
        for key in sample_keys(frozen.sweep, part.task_set):
            run(frozen, part, adapter, key)
            grade_sample(frozen, part, key, {})

    class NoEngine(TestBench):
        @property
        def sandbox(self) -> CountingSandbox:
            raise AssertionError("a report needs no sandbox")

    bench = NoEngine(frozen.workspace.root, environment)
    agents = {name: bench.agent(name) for name in ("reference", "empty")}
    results = gather_results(bench, bench.sweep, agents)
    rows = results.graded.to_pylist()
    assert {(row["agent"], row["resolved"]) for row in rows} == {("reference", True), ("empty", False)}
    assert len(rows) == 2 * 2 * 2
    assert set(results.manifests) == {("reference", "original"), ("empty", "original")}
    assert dict(results.mining)["kept"] == 3
    assert dict(results.validation)["valid"] == 2
    assert [task.provisional for task in results.tasks] == [False, False]

    bench.rewrite("data/sweeps/spring.yaml", "samples: 2", "samples: 1")
    assert len(gather_results(bench, bench.sweep, agents).graded) == 2 * 2
    bench.rewrite("data/agents/empty.yaml", "adapter: empty", "adapter: empty\nmodel_version: other")
    agents["empty"] = bench.agent("empty")
    changed = gather_results(bench, bench.sweep, agents)
    assert {row["agent"] for row in changed.graded.to_pylist()} == {"reference"}


def test_manifest_is_written_before_the_first_attempt_and_never_replaced(frozen: TestBench) -> None:
    part = part_of(frozen)
    (path,) = (frozen.lake.root / "manifests" / "spring" / "reference" / "original").glob("*.json")
    before = path.read_bytes()
    frozen.days_later(3)
    assert part_of(frozen).place(first_key(frozen)) == part.place(first_key(frozen))
    assert path.read_bytes() == before


@pytest.mark.parametrize("sample", ["original-1", "terse-12"])
def test_sample_key_is_read_back(sample: str) -> None:
    assert SampleKey.parse("t", sample).sample == sample
