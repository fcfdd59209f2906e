"""Outcomes of an attempt: one table decides what is graded, what counts and what runs again (see the design)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.agents.transcripts.last_word import LastWord
from evalpipe.gateway import PROVIDER_FAULTS, CallResult, Evidence
from evalpipe.sandbox import Outcome


class AttemptOutcome(StrEnum):
    """How an attempt ended, decided by evidence that evalpipe made itself."""

    FINISHED = "finished"
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    EMPTY_PATCH = "empty_patch"
    AGENT_CRASHED = "agent_crashed"
    PERMISSION_DENIED = "permission_denied"
    NO_MODEL_CALL = "no_model_call"
    PROVIDER_RATE_LIMIT = "provider_rate_limit"
    PROVIDER_USAGE_LIMIT = "provider_usage_limit"
    PROVIDER_ERROR = "provider_error"
    AUTH_ERROR = "auth_error"
    IMAGE_MISSING = "image_missing"
    ENGINE_ERROR = "engine_error"
    DISK_FULL = "disk_full"
    INTERRUPTED = "interrupted"
    BUDGET_STOP = "budget_stop"
    """Not begun, because the sweep's budget had not what it may cost: missing by design."""


@dataclass(frozen=True, slots=True)
class OutcomeRule:
    """`counts`: in pass@1. `run_again`: an infrastructure fault, within the bounds of the retry policy."""

    counts: bool
    run_again: bool


_COUNTS = OutcomeRule(counts=True, run_again=False)
_INVALID = OutcomeRule(counts=False, run_again=True)
# Another try would end alike until somebody changes the configuration, which makes another agent of it.
_MISCONFIGURED = OutcomeRule(counts=False, run_again=False)

OUTCOME_RULES: dict[AttemptOutcome, OutcomeRule] = {
    AttemptOutcome.FINISHED: _COUNTS,
    AttemptOutcome.TURN_LIMIT: _COUNTS,
    AttemptOutcome.TOKEN_LIMIT: _COUNTS,
    AttemptOutcome.TIMEOUT: _COUNTS,
    AttemptOutcome.OUT_OF_MEMORY: _COUNTS,
    AttemptOutcome.EMPTY_PATCH: _COUNTS,
    AttemptOutcome.AGENT_CRASHED: _COUNTS,
    AttemptOutcome.PERMISSION_DENIED: _MISCONFIGURED,
    AttemptOutcome.NO_MODEL_CALL: _INVALID,
    AttemptOutcome.PROVIDER_RATE_LIMIT: _INVALID,
    AttemptOutcome.PROVIDER_USAGE_LIMIT: _INVALID,
    AttemptOutcome.PROVIDER_ERROR: _INVALID,
    AttemptOutcome.AUTH_ERROR: _INVALID,
    AttemptOutcome.IMAGE_MISSING: _INVALID,
    AttemptOutcome.ENGINE_ERROR: _INVALID,
    AttemptOutcome.DISK_FULL: _INVALID,
    AttemptOutcome.INTERRUPTED: _INVALID,
    AttemptOutcome.BUDGET_STOP: _INVALID,
}


_OF_CAPS = {
    CallResult.REFUSED_CALLS: AttemptOutcome.TURN_LIMIT,
    CallResult.REFUSED_TOKENS: AttemptOutcome.TOKEN_LIMIT,
    CallResult.REFUSED_COST: AttemptOutcome.TOKEN_LIMIT,
}
_OF_FAULTS = {
    CallResult.RATE_LIMITED: AttemptOutcome.PROVIDER_RATE_LIMIT,
    CallResult.USAGE_LIMIT: AttemptOutcome.PROVIDER_USAGE_LIMIT,
    CallResult.AUTH_ERROR: AttemptOutcome.AUTH_ERROR,
}


def classify(
    ended: Outcome,
    evidence: Evidence | None,
    patch: bytes | None,
    refused: Sequence[str] = (),
    last_word: LastWord | None = None,
) -> tuple[AttemptOutcome, str]:
    """The outcome of an attempt whose box could be used, with a text for people.

    What the gateway saw comes before what the program says: programs end with 0 after errors of their provider, and
    with an error after a cap. `evidence` is None for agents without a model, `patch` when none could be taken.
    `refused` are the tools that the program says it did not allow its agent: nothing else can have kept an agent from
    a patch as surely, however it then ended. `last_word` is what a program said of its end that then had to be stopped:
    its work was done, so that this was no time-out.
    """
    if ended.out_of_memory:
        return AttemptOutcome.OUT_OF_MEMORY, "the agent's container ran out of its memory"
    of_model = None if evidence is None else _by_evidence(evidence)
    if refused and patch == b"" and (of_model is None or OUTCOME_RULES[of_model[0]].counts):
        return AttemptOutcome.PERMISSION_DENIED, f"the program did not allow its agent: {', '.join(refused)}"
    if of_model is not None:
        return of_model
    if last_word is LastWord.FAILED:
        return AttemptOutcome.AGENT_CRASHED, "the program said that it had failed, and did not end"
    if ended.timed_out and last_word is None:
        return AttemptOutcome.TIMEOUT, f"stopped after {ended.duration_s:.0f} s"
    if not ended.timed_out and ended.exit_code != 0:
        return AttemptOutcome.AGENT_CRASHED, f"the agent ended with exit code {ended.exit_code}"
    if patch is not None and not patch:
        return AttemptOutcome.EMPTY_PATCH, "the agent changed nothing"
    return AttemptOutcome.FINISHED, ""


def _by_evidence(evidence: Evidence) -> tuple[AttemptOutcome, str] | None:
    cap = evidence.cap_reached
    # An agent that never had an answer has not failed, whatever it broke off.
    if cap is not None and evidence.succeeded:
        detail = next(call.detail for call in evidence.calls if call.result is cap)
        return _OF_CAPS[cap], detail
    last = evidence.last_of_provider
    if last is not None and (last.result in PROVIDER_FAULTS or evidence.succeeded == 0):
        text = f"the last of {len(evidence.calls)} calls: {last.result}, status {last.status}, {last.detail}"
        return _OF_FAULTS.get(last.result, AttemptOutcome.PROVIDER_ERROR), text
    if evidence.succeeded == 0:
        seen = ", ".join(sorted({call.result for call in evidence.calls})) or "none at all"
        return AttemptOutcome.NO_MODEL_CALL, f"no call reached the model: {seen}"
    return None
