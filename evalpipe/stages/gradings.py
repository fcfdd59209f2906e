"""Stage `graded_results`: one verdict for each sample, with its evidence. Never runs an agent."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from evalpipe.agents import OUTCOME_RULES, AttemptOutcome
from evalpipe.agents.attempt import WORK_REFUSED
from evalpipe.grading import Grading, Judgement, Verdict
from evalpipe.grading.audit import AuditedWork, audit
from evalpipe.stages.attempts import latest_attempt
from evalpipe.stages.bench import Workbench
from evalpipe.stages.grading_rows import cached_verdict, grading_row, is_older, key_of_verdict, not_graded
from evalpipe.stages.sweeps import AgentSweep, SampleKey

CONTROLS = ("reference", "empty")
"""Adapters of evalpipe's own, which show nothing that a person would have to read."""

_FROM_ATTEMPT = (
    "sweep",
    "agent",
    "configuration",
    "task_id",
    "sample",
    "prompt_mode",
    "attempt",
    "attempt_id",
    "outcome",
    "patch_sha256",
    "transcript_sha256",
    "attempt_seconds",
    "model_calls",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "cost_usd",
)


class AttemptMissing(Exception):
    """A sample cannot be graded, because no attempt was made yet."""


def is_graded(bench: Workbench, agent_sweep: AgentSweep, key: SampleKey) -> bool:
    """Whether the grade of a sample is that of its attempt, its task and the grader as they are now."""
    attempt = latest_attempt(bench, agent_sweep, key)
    graded = bench.lake.rows("graded_results", *agent_sweep.place(key))
    if attempt is None or not graded:
        return False
    return _present(attempt, _verdict_key(bench, agent_sweep, attempt)).items() <= graded[0].items()


def stored_verdicts(bench: Workbench, sweep: str, agents: Sequence[str]) -> dict[tuple[str, str, str, str], str]:
    """Every verdict that is kept of `agents` in a sweep, by agent, configuration, task and sample."""
    columns = ["agent", "configuration", "task_id", "sample", "verdict"]
    found = {}
    for agent in agents:
        for row in bench.lake.read("graded_results", sweep, agent).select(columns).to_pylist():
            found[row["agent"], row["configuration"], row["task_id"], row["sample"]] = row["verdict"]
    return found


def grade_sample(
    bench: Workbench,
    agent_sweep: AgentSweep,
    key: SampleKey,
    labels: dict[str, str],
    *,
    not_before: dt.datetime | None = None,
) -> tuple[dict[str, Any], bool]:
    """Grade the attempt that stands for a sample; returns its row, and whether it is new.

    With `not_before`, the time at which a regrading began, what was graded earlier is graded again.
    Raises AttemptMissing, SandboxError, EnvironmentNotReady.
    """
    attempt = latest_attempt(bench, agent_sweep, key)
    if attempt is None:
        raise AttemptMissing(
            f"{agent_sweep.agent.name} has made no attempt at {key.task_id}, {key.sample}: "
            f"`evalpipe run {agent_sweep.sweep.name}` makes it"
        )
    place = agent_sweep.place(key)
    known = bench.lake.rows("graded_results", *place)
    task = agent_sweep.task_set.tasks[key.task_id]
    rule = OUTCOME_RULES[AttemptOutcome(attempt["outcome"])]
    verdict_key = _verdict_key(bench, agent_sweep, attempt)
    if verdict_key is not None:
        patch = bench.lake.blobs.get(attempt["patch_sha256"])
        columns = cached_verdict(
            bench, task, verdict_key, patch, {**labels, "sample": key.sample}, not_before=not_before
        )
    elif not rule.counts:
        columns = not_graded(task, f"invalid attempt: {attempt['outcome']}", bench.clock())
    elif WORK_REFUSED & set(attempt["flags"]):
        refusal = Judgement(Verdict.PATCH_REJECTED, attempt["outcome_detail"])
        columns = grading_row(task, Grading(refusal, (), 0.0), bench.clock())
    else:
        columns = not_graded(task, "there is no patch to grade", bench.clock())
    is_present = bool(known) and _present(attempt, verdict_key).items() <= known[0].items()
    if is_present and not is_older(known[0], not_before):
        return known[0], False
    row = {name: attempt[name] for name in _FROM_ATTEMPT}
    row |= {"counts": rule.counts, "verdict_key": verdict_key, **columns}
    if verdict_key is not None and agent_sweep.agent.adapter not in CONTROLS:
        row |= _integrity(bench, agent_sweep, attempt, patch, columns)
    bench.lake.write("graded_results", [row], *place)
    return row, True


def _integrity(
    bench: Workbench, agent_sweep: AgentSweep, attempt: dict[str, Any], patch: bytes, columns: dict[str, Any]
) -> dict[str, Any]:
    """The integrity columns of a graded attempt: what the audit saw in its transcript and its patch."""
    task_set, task_id = agent_sweep.task_set, attempt["task_id"]
    transcript = bench.lake.blobs.get(attempt["transcript_sha256"]) if attempt["transcript_sha256"] else b""
    work = AuditedWork(transcript, patch, columns["ignored_paths"], columns["resolved"])
    findings = audit(work, task_set.gold_patch(task_id), task_set.test_patch(task_id))
    return {
        "integrity": "flagged" if findings else "clean",
        "integrity_reasons": [f"{finding.sign.value}: {finding.place}: {finding.evidence}" for finding in findings],
    }


def _verdict_key(bench: Workbench, agent_sweep: AgentSweep, attempt: dict[str, Any]) -> str | None:
    """The key of the verdict on an attempt; None when it has none, because it is invalid or left no patch."""
    if attempt["patch_sha256"] is None or not OUTCOME_RULES[AttemptOutcome(attempt["outcome"])].counts:
        return None
    return key_of_verdict(bench, agent_sweep.task_set, attempt["task_id"], attempt["patch_sha256"])


def _present(attempt: dict[str, Any], verdict_key: str | None) -> dict[str, Any]:
    """What a grade must say to be the present one."""
    # The outcome too: an attempt that is under way has the row of an interrupted one.
    return {"attempt_id": attempt["attempt_id"], "outcome": attempt["outcome"], "verdict_key": verdict_key}
