"""A sweep of an agent with a model, by the command line: what is asked for is made, paid once, and can be looked at."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evalpipe.gateway import CallResult, read_calls
from evalpipe.lake import Lake
from evalpipe_tests.asking_agent import KEY_VARIABLE, REAL_KEY, working_once, write_asking_agent
from evalpipe_tests.model_replies import Say
from evalpipe_tests.model_server import ModelServer
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import SWEEP, TinyWorkspace, finish
from evalpipe_tests.told_secrets import files_that_tell

pytestmark = pytest.mark.slow

KEY = {KEY_VARIABLE: REAL_KEY}
# What it is told holds the provider's key, as some errors of providers do; it hands it on wherever it can.
_WORK = f"echo '# looked at' >> shop/cli.py; env; echo {REAL_KEY}; echo {REAL_KEY} >&2"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(working_once(_WORK)) as found:
        yield found


def asking_workspace(tiny: TinyWorkspace, url: str, sweep: str = "") -> TinyWorkspace:
    write_asking_agent(tiny.root, url)
    of_asking = SWEEP.replace("[reference, empty, half]", "[asking]").replace("comparisons:\n  - [half, empty]\n", "")
    tiny.write("data/sweeps/small.yaml", of_asking + sweep)
    return tiny


def rows_of(tiny: TinyWorkspace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Lake(tiny.lake).read("agent_runs", "small", "asking").to_pylist()
    return rows


def test_a_part_is_run_and_each_attempt_can_be_looked_at_and_made_again(
    begun: Walk, copied: Callable[[Walk], TinyWorkspace], server: ModelServer
) -> None:
    tiny = asking_workspace(copied(begun), server.url, "record_bodies: true\n")
    first, second = sorted(path.stem for path in (tiny.root / "data/task_sets/tiny/tasks").glob("*.json"))
    for wrong in (["--tasks", "nothing"], ["--mode", "terse"], ["--pilot", "--tasks", first], ["--agent", "who"]):
        answer = tiny.call("run", "small", *wrong, variables=KEY)
        assert (answer.code, len(server.seen)) == (2, 0), answer
    unset = tiny.call("run", "small", "--pilot")
    assert (unset.code, len(server.seen)) == (1, 0)
    assert f"set {KEY_VARIABLE} to the provider's key" in unset.err

    tiny.succeed("run", "small", "--tasks", first, variables=KEY)
    assert {(row["task_id"], row["sample"]) for row in rows_of(tiny)} == {(first, "original-1"), (first, "original-2")}
    pilot = tiny.succeed("run", "small", "--pilot", variables=KEY)
    assert len(server.seen) == 2 * 3
    assert "asking: 3 finished, 642 tokens, $0.0010" in pilot.err
    assert {(row["task_id"], row["sample"]) for row in rows_of(tiny)} >= {(second, "original-1")}

    listed = tiny.succeed("attempts", "list", "small").out.splitlines()
    mine = [line.split()[0] for line in listed if ".asking." in line]
    assert len(mine) == 3
    tiny.succeed("run", "small", variables=KEY)
    tiny.succeed("grade", "small")
    assert len(server.seen) == 2 * 4
    story = tiny.succeed("attempts", "show", mine[0]).out
    assert "outcome: finished" in story
    assert "2 model calls; input 200 tokens (60 cached), output 14" in story
    assert "+# looked at" in story
    assert "grade: fail_to_pass_failed" in story
    assert json.loads(tiny.succeed("attempts", "show", mine[0], "--json").out)["grade"]["resolved"] is False

    replayed = tiny.succeed("attempts", "replay", mine[0])
    assert replayed.out.splitlines() == [
        "made again: finished, was finished",
        "patch: the same",
        "graded again: fail_to_pass_failed, was fail_to_pass_failed",
    ]
    assert len(server.seen) == 2 * 4
    assert len(rows_of(tiny)) == 4
    # Beside the agents that evalpipe itself plays, which nobody watches: all in one report.
    tiny.change("data/sweeps/small.yaml", "[asking]", "[reference, empty, asking]")
    for step in ("run", "grade"):
        tiny.succeed(step, "small", variables=KEY)
    report = tiny.succeed("report", "small").out
    assert re.search(r"^asking +0/4 samples of 2 tasks", report, re.MULTILINE), report
    assert "no results" not in report
    assert "different conditions" not in report
    assert len(server.seen) == 2 * 4
    assert files_that_tell(tiny.root, REAL_KEY) == []
    nothing = tiny.call("attempts", "show", "small.asking.x")
    assert (nothing.code, "there is no attempt small.asking.x" in nothing.err) == (1, True)


def test_ten_kills_at_random_moments_lose_nothing_and_repeat_only_what_was_in_flight(
    begun: Walk, copied: Callable[[Walk], TinyWorkspace]
) -> None:
    seed = int(os.environ.get("EVALPIPE_TEST_SEED", "0")) or random.randrange(1, 10**6)
    moments = random.Random(seed)
    with ModelServer(lambda number, document: Say("done"), delay_s=0.4) as server:
        tiny = asking_workspace(copied(begun), server.url)
        tiny.write(
            "data/sweeps/small.yaml", (tiny.root / "data/sweeps/small.yaml").read_text().replace(": 2\n", ": 12\n")
        )
        counted_after_kill: list[set[tuple[str, str]]] = []
        for _ in range(10):
            process = tiny.start("run", "small", variables=KEY)
            _wait_until_it_calls(process, server, moments.uniform(0.0, 1.2))
            os.kill(process.pid, signal.SIGKILL)
            finish(process)
            counted_after_kill.append({_key(row) for row in rows_of(tiny) if row["outcome"] != "interrupted"})
        tiny.succeed("run", "small", variables=KEY)
    rows = rows_of(tiny)
    by_sample: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["attempt"]):
        by_sample.setdefault(_key(row), []).append(row)
    assert len(by_sample) == 24, seed
    for attempts in by_sample.values():
        assert [row["outcome"] for row in attempts][:-1] == ["interrupted"] * (len(attempts) - 1), (seed, attempts)
        assert attempts[-1]["outcome"] == "empty_patch", (seed, attempts)
        assert [row["attempt"] for row in attempts] == list(range(1, len(attempts) + 1)), (seed, attempts)
    # What had ended before a kill stands after each later one: nothing is lost and nothing of it is repeated.
    for earlier, later in zip(counted_after_kill, [*counted_after_kill[1:], set(by_sample)], strict=True):
        assert earlier <= later, seed
    interrupted = sum(row["outcome"] == "interrupted" for row in rows)
    assert 1 <= interrupted <= 10 * 2, seed
    journals = [read_calls(path) for path in (tiny.lake / "calls").rglob("calls.jsonl")]
    results = Counter(call.result for evidence in journals for call in evidence.calls)
    # A kill between an answer and the end of its attempt leaves a call that was paid for, and is in the ledger.
    assert 24 <= results[CallResult.OK] <= len(server.seen) <= sum(results.values()) <= 24 + interrupted, (
        seed,
        results,
    )
    assert sum(row["model_calls"] for row in rows) == results[CallResult.OK], seed


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["task_id"], row["sample"]


def _wait_until_it_calls(process: subprocess.Popen[str], server: ModelServer, more_s: float) -> None:
    before, end = len(server.seen), time.monotonic() + 60
    while len(server.seen) == before and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    assert len(server.seen) > before, finish(process)
    time.sleep(more_s)
