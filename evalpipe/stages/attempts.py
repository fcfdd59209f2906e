"""Stage `agent_runs`: the ledger of attempts. Paid work is durable the moment it ends, and is never paid twice."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from evalpipe.agents import (
    OUTCOME_RULES,
    Adapter,
    Assignment,
    AttemptOutcome,
    AttemptResult,
    HistoryKind,
    run_attempt,
)
from evalpipe.lake import DiskFullError
from evalpipe.stages.bench import Workbench, frozen_runner, suite_command
from evalpipe.stages.images import environment_of_task
from evalpipe.stages.sweeps import AgentSweep, SampleKey
from evalpipe.tasks import hidden_paths, prompt

FREE_BYTES_FLOOR = 512 * 1024**2
"""Below this no attempt starts: its patch and transcript, once paid for, must have a place."""


def run_sample(
    bench: Workbench, agent_sweep: AgentSweep, adapter: Adapter, key: SampleKey, run_id: str, labels: dict[str, str]
) -> tuple[dict[str, Any], bool]:
    """Make the attempt that `key` still needs; returns the row that stands for the sample, and whether it is new.

    A sample with an attempt that counts is never run again. One whose attempts were all invalid is, up to the
    agent's `retry_policy.max_attempts`; interrupted attempts do not use these up. Every attempt stays in the
    ledger. Raises PromptMissing, EnvironmentNotReady, InstanceUnproven and DiskFullError before anything is paid for.
    """
    place = agent_sweep.place(key)
    with bench.lake.locked("agent_runs", *place):
        earlier = bench.lake.rows("agent_runs", *place)
        if earlier and not needs_attempt(earlier, agent_sweep.agent.retry_policy.max_attempts):
            return earlier[-1], False
        task = agent_sweep.task_set.tasks[key.task_id]
        text = prompt(task, key.mode, suite_command(frozen_runner(task)))
        _require_room(bench)
        environment = environment_of_task(bench, task)
        mirror = bench.mirror(task.repository)
        history = HistoryKind(agent_sweep.sweep.history)
        instance = bench.instances.get(mirror, task.parent, task.commit, hidden_paths(task), history)
        number = len(earlier) + 1
        attempt_id = ".".join([*place, str(number)])
        started: dict[str, Any] = {
            "sweep": agent_sweep.sweep.name,
            "agent": agent_sweep.agent.name,
            "configuration": agent_sweep.configuration(key.mode),
            "task_id": key.task_id,
            "sample": key.sample,
            "prompt_mode": key.mode.value,
            "attempt": number,
            "attempt_id": attempt_id,
            # Until the attempt ends this is the truth: a process that dies now leaves an interrupted attempt.
            "outcome": AttemptOutcome.INTERRUPTED.value,
            "outcome_detail": "evalpipe ended before the attempt did",
            "started_at": bench.clock(),
            "patch_bytes": 0,
            "files_changed": 0,
            "image_digest": task.environment.image_digest,
            "run_id": run_id,
            "flags": [],
        }
        bench.lake.write("agent_runs", [*earlier, started], *place)
        result = run_attempt(
            bench.sandbox,
            environment,
            adapter,
            mirror,
            Assignment(task, key.mode, key.number, text),
            instance,
            agent_sweep.limits(),
            {**labels, "task": key.task_id, "sample": key.sample, "purpose": "agent"},
        )
        ended = started | _ended(bench, result)
        bench.lake.write("agent_runs", [*earlier, ended], *place)
        return ended, True


def is_attempted(bench: Workbench, agent_sweep: AgentSweep, key: SampleKey) -> bool:
    """Whether a sample has an attempt that counts, and so needs no other."""
    attempt = latest_attempt(bench, agent_sweep, key)
    return attempt is not None and OUTCOME_RULES[AttemptOutcome(attempt["outcome"])].counts


def latest_attempt(bench: Workbench, agent_sweep: AgentSweep, key: SampleKey) -> dict[str, Any] | None:
    """The row that stands for a sample: its last attempt; None when none was made."""
    rows = bench.lake.rows("agent_runs", *agent_sweep.place(key))
    return rows[-1] if rows else None


def needs_attempt(attempts: Sequence[Mapping[str, Any]], max_attempts: int) -> bool:
    """Whether a sample with these attempts, oldest first, is to be run again: all were invalid, and tries are left."""
    outcomes = [AttemptOutcome(row["outcome"]) for row in attempts]
    used = sum(outcome is not AttemptOutcome.INTERRUPTED for outcome in outcomes)
    return OUTCOME_RULES[outcomes[-1]].run_again and used < max_attempts


def _require_room(bench: Workbench) -> None:
    free = shutil.disk_usage(bench.lake.root).free
    if free < FREE_BYTES_FLOOR:
        raise DiskFullError(
            28, f"only {free >> 20} MiB are free for {bench.lake.root}: free some space, then run the same again"
        )


def _ended(bench: Workbench, result: AttemptResult) -> dict[str, Any]:
    return {
        "outcome": result.outcome.value,
        "outcome_detail": result.detail,
        "ended_at": bench.clock(),
        "attempt_seconds": result.seconds,
        "exit_code": result.exit_code,
        "patch_sha256": bench.lake.blobs.put(result.patch) if result.patch else None,
        "patch_bytes": len(result.patch or b""),
        "files_changed": result.files_changed,
        "transcript_sha256": bench.lake.blobs.put(result.transcript) if result.transcript else None,
        "flags": list(result.flags),
    }
