"""Stage `agent_runs`: the ledger of attempts. Paid work is durable the moment it ends, and is never paid twice."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from evalpipe.agents import (
    OUTCOME_RULES,
    Adapter,
    Assignment,
    AttemptOutcome,
    AttemptResult,
    HistoryKind,
    Instance,
    run_attempt,
)
from evalpipe.gateway import OpenAttempt
from evalpipe.history import Repository
from evalpipe.lake import DiskFullError, Row
from evalpipe.stages.agent_programs import agent_environment
from evalpipe.stages.bench import Workbench, frozen_runner, suite_command
from evalpipe.stages.model_access import ModelAccess, calls_folder, usage_columns, usage_of_interrupted
from evalpipe.stages.sweeps import AgentSweep, SampleKey
from evalpipe.tasks import hidden_paths, prompt

FREE_BYTES_FLOOR = 512 * 1024**2
"""Below this no attempt starts: its patch and transcript, once paid for, must have a place."""

_NOT_MADE = (AttemptOutcome.INTERRUPTED, AttemptOutcome.BUDGET_STOP)
"""Attempts that say nothing of what would come of another try."""


@dataclass(frozen=True, slots=True)
class PreparedAttempt:
    """What an attempt at a sample is made with: the environment to open, the mirror, what is asked, the instance."""

    environment: str
    mirror: Repository
    assignment: Assignment
    instance: Instance


def prepare_attempt(bench: Workbench, agent_sweep: AgentSweep, key: SampleKey) -> PreparedAttempt:
    """Get all that an attempt needs; nothing of it is paid for.

    Raises PromptMissing, EnvironmentNotReady and InstanceUnproven.
    """
    task = agent_sweep.task_set.tasks[key.task_id]
    text = prompt(task, key.mode, suite_command(frozen_runner(task)))
    environment = agent_environment(bench, agent_sweep.agent, task)
    mirror = bench.mirror(task.repository)
    history = HistoryKind(agent_sweep.sweep.history)
    instance = bench.instances.get(mirror, task.parent, task.commit, hidden_paths(task), history)
    return PreparedAttempt(environment, mirror, Assignment(task, key.mode, key.number, text), instance)


def make_attempt(
    bench: Workbench,
    agent_sweep: AgentSweep,
    adapter: Adapter,
    prepared: PreparedAttempt,
    labels: dict[str, str],
    model: OpenAttempt | None,
) -> AttemptResult:
    """Make a prepared attempt within the limits of the sweep; see `run_attempt`. An image that is gone is looked for
    again by the next.
    """
    watch, limits = agent_sweep.watch(model), agent_sweep.limits()
    result = run_attempt(
        bench.sandbox,
        prepared.environment,
        adapter,
        prepared.mirror,
        prepared.assignment,
        prepared.instance,
        replace(limits, timeout_s=watch.hard_limit_s) if watch else limits,
        labels,
        model,
        watch,
    )
    if result.outcome is AttemptOutcome.IMAGE_MISSING:
        bench.agent_environments.clear()
    return result


def run_sample(
    bench: Workbench,
    agent_sweep: AgentSweep,
    adapter: Adapter,
    key: SampleKey,
    run_id: str,
    labels: dict[str, str],
    access: ModelAccess | None = None,
) -> tuple[dict[str, Any], bool]:
    """Make the attempt that `key` still needs; returns the row that stands for the sample, and whether it is new.

    A sample with an attempt that counts is never run again. One whose attempts were all invalid is, up to the
    agent's `retry_policy.max_attempts`; interrupted attempts and those that the budget stopped do not use these up.
    Every attempt stays in the ledger. `access` is the way to the model of an agent that calls one.

    Raises PromptMissing, EnvironmentNotReady, InstanceUnproven, ProviderError, StoreError and DiskFullError before
    anything is paid for.
    """
    place = agent_sweep.place(key)
    with bench.lake.locked("agent_runs", *place):
        earlier = _settled(bench, agent_sweep, place)
        if earlier and not needs_attempt(earlier, agent_sweep.agent.retry_policy.max_attempts):
            return earlier[-1], False
        _require_room(bench)
        prepared = prepare_attempt(bench, agent_sweep, key)
        # What the budget stopped has no attempt, so its row gives way to the next.
        earlier = [row for row in earlier if row["outcome"] != AttemptOutcome.BUDGET_STOP]
        with bench.room.taken(agent_sweep.limits()):
            started = _started(bench, agent_sweep, key, len(earlier) + 1, run_id)
            with _way_to_the_model(bench, access, started, place) as model:
                if access is not None and model is None:
                    stopped = started | _stopped_by_budget(agent_sweep)
                    bench.lake.write("agent_runs", [*earlier, stopped], *place)
                    return stopped, True
                bench.lake.write("agent_runs", [*earlier, started], *place)
                mine = {**labels, "task": key.task_id, "sample": key.sample, "purpose": "agent"}
                result = make_attempt(bench, agent_sweep, adapter, prepared, mine, model)
                ended = started | _ended(bench, result, access)
                bench.lake.write("agent_runs", [*earlier, ended], *place)
        bench.lake.folder.add(calls_folder(bench, place, started["attempt"]))
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
    used = sum(outcome not in _NOT_MADE for outcome in outcomes)
    return OUTCOME_RULES[outcomes[-1]].run_again and used < max_attempts


def _settled(bench: Workbench, agent_sweep: AgentSweep, place: tuple[str, ...]) -> list[dict[str, Any]]:
    """The attempts of a sample; one that was cut off is given what its journal says it used."""
    rows = bench.lake.rows("agent_runs", *place)
    if agent_sweep.agent.provider is None:
        return rows
    found = [
        usage_of_interrupted(bench, agent_sweep.sweep, row, calls_folder(bench, place, row["attempt"]))
        if row["outcome"] == AttemptOutcome.INTERRUPTED
        else row
        for row in rows
    ]
    if found != rows:
        bench.lake.write("agent_runs", found, *place)
        for row in found:
            bench.lake.folder.add(calls_folder(bench, place, row["attempt"]))
    return found


def _started(bench: Workbench, agent_sweep: AgentSweep, key: SampleKey, number: int, run_id: str) -> dict[str, Any]:
    place = agent_sweep.place(key)
    return {
        "sweep": agent_sweep.sweep.name,
        "agent": agent_sweep.agent.name,
        "configuration": agent_sweep.configuration(key.mode),
        "task_id": key.task_id,
        "sample": key.sample,
        "prompt_mode": key.mode.value,
        "attempt": number,
        "attempt_id": ".".join([*place, str(number)]),
        # Until the attempt ends this is the truth: a process that dies now leaves an interrupted attempt.
        "outcome": AttemptOutcome.INTERRUPTED.value,
        "outcome_detail": "evalpipe ended before the attempt did",
        "started_at": bench.clock(),
        "patch_bytes": 0,
        "files_changed": 0,
        "image_digest": agent_sweep.task_set.tasks[key.task_id].environment.image_digest,
        "run_id": run_id,
        "flags": [],
    }


@contextmanager
def _way_to_the_model(
    bench: Workbench, access: ModelAccess | None, started: Row, place: tuple[str, ...]
) -> Iterator[OpenAttempt | None]:
    if access is None:
        yield None
        return
    with access.attempt(started["attempt_id"], calls_folder(bench, place, started["attempt"])) as model:
        yield model


def _stopped_by_budget(agent_sweep: AgentSweep) -> dict[str, Any]:
    agent = agent_sweep.agent
    return {
        "outcome": AttemptOutcome.BUDGET_STOP.value,
        "outcome_detail": (
            f"the budget of {agent_sweep.sweep.name} ({agent_sweep.sweep.budget_usd} US dollars) has not the "
            f"{agent.max_cost_usd} that an attempt of {agent.name} may cost"
        ),
    }


def _require_room(bench: Workbench) -> None:
    free = shutil.disk_usage(bench.lake.root).free
    if free < FREE_BYTES_FLOOR:
        raise DiskFullError(
            28, f"only {free >> 20} MiB are free for {bench.lake.root}: free some space, then run the same again"
        )


def _ended(bench: Workbench, result: AttemptResult, access: ModelAccess | None) -> dict[str, Any]:
    told = json.dumps(result.trajectory, ensure_ascii=False).encode() if result.trajectory is not None else b""
    written = result.transcript, told, result.patch or b""
    transcript, trajectory, patch = map(access.redacted, written) if access else written
    blobs = bench.lake.blobs
    return {
        "outcome": result.outcome.value,
        "outcome_detail": result.detail,
        "ended_at": bench.clock(),
        "attempt_seconds": result.seconds,
        "exit_code": result.exit_code,
        "patch_sha256": blobs.put(patch) if patch else None,
        "patch_bytes": len(patch),
        "files_changed": result.files_changed,
        "transcript_sha256": blobs.put(transcript) if transcript else None,
        "trajectory_sha256": blobs.put(trajectory) if trajectory else None,
        "flags": [flag.value for flag in result.flags],
        **usage_columns(result.evidence),
        **_reported(result.trajectory),
    }


def _reported(trajectory: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the program says it used, as far as it does; the trajectory has it in its own words too."""
    metrics = trajectory["final_metrics"] if trajectory else {}
    return {
        "reported_input_tokens": metrics.get("total_prompt_tokens"),
        "reported_output_tokens": metrics.get("total_completion_tokens"),
        "reported_cost_usd": metrics.get("total_cost_usd"),
    }
