"""Attempts as a stage: paid once, kept for good, repeated only where the table of outcomes says so."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalpipe.agents.adapter import ProgramOutput
from evalpipe.lake import DiskFullError
from evalpipe.sandbox import EngineFault, EngineUnavailable, ImageMissing, Interrupted
from evalpipe.stages import attempts, sweeps
from evalpipe.stages.attempt_story import attempt_story, story_text
from evalpipe.stages.attempts import latest_attempt
from evalpipe.stages.images import EnvironmentNotReady
from evalpipe.stages.sweeps import (
    SampleKey,
    find_agent_sweep,
    sample_keys,
)
from evalpipe.tasks import PromptMissing, PromptMode
from evalpipe_tests.agents.adapters import ShellAgent
from evalpipe_tests.stages.sweeping import (
    BREAK,
    MEND,
    first_key,
    part_of,
    rows_of,
    run,
    with_faults,
)
from evalpipe_tests.stages.workspaces import CountingSandbox, TestBench

pytestmark = pytest.mark.slow


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


def test_what_a_program_says_it_used_stands_beside_what_was_counted(frozen: TestBench) -> None:
    usage = '"modelUsage":{"m":{"inputTokens":140,"cacheReadInputTokens":60,"outputTokens":14}}'
    said = f'{{"type":"result","result":"no credit","is_error":true,"total_cost_usd":0.5,{usage}}}'
    part, key = part_of(frozen), first_key(frozen)
    row, _ = run(frozen, part, ShellAgent(f"echo '{said}'", ProgramOutput("claude-code", "2")), key)
    reported = [row[f"reported_{name}"] for name in ("input_tokens", "output_tokens", "cost_usd")]
    assert reported == [200, 14, 0.5]
    assert row.get("input_tokens") is None
    told = story_text(attempt_story(frozen, row["attempt_id"]))
    assert "  by the program's own count: input 200, output 14, cost $0.5000\n" in told


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


def test_an_image_is_looked_for_once_and_again_after_an_attempt_that_missed_it(
    frozen: TestBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, key = part_of(frozen), first_key(frozen)
    asked: list[str] = []

    def exists(builder: object, digest: str) -> bool:
        asked.append(digest)
        return True

    monkeypatch.setattr(type(frozen.host_python), "exists", exists)
    with_faults(frozen, EngineFault("x"), ImageMissing("gone"))
    for outcome in ("engine_error", "image_missing", "finished"):
        assert run(frozen, part, MEND, key)[0]["outcome"] == outcome
    assert len(asked) == 2


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


def test_manifest_is_written_before_the_first_attempt_and_never_replaced(frozen: TestBench) -> None:
    part = part_of(frozen)
    (path,) = (frozen.lake.root / "manifests" / "spring" / "reference" / "original").glob("*.json")
    before = path.read_bytes()
    frozen.days_later(3)
    assert part_of(frozen).place(first_key(frozen)) == part.place(first_key(frozen))
    assert path.read_bytes() == before


def test_a_manifest_without_attempts_hides_none_that_has_them(
    frozen: TestBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, key = part_of(frozen), first_key(frozen)
    agent = frozen.agent("reference")
    assert find_agent_sweep(frozen, frozen.sweep, agent, part.task_set).manifests == {}
    run(frozen, part, MEND, key)
    frozen.days_later(1)
    with monkeypatch.context() as patch:
        # As another machine would record it, whose processes have the network that those of this one have not.
        network = "host" if frozen.sandbox.cuts_network else "none"
        patch.setattr(sweeps, "_isolation", lambda sandbox: sweeps._Isolation("process", None, network))
        later = part_of(frozen)
    assert later.place(key) != part.place(key)
    assert find_agent_sweep(frozen, frozen.sweep, agent, part.task_set).place(key) == part.place(key)


@pytest.mark.parametrize("sample", ["original-1", "terse-12"])
def test_sample_key_is_read_back(sample: str) -> None:
    assert SampleKey.parse("t", sample).sample == sample
