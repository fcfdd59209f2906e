"""Outcomes of an attempt: one table decides what is graded, what counts and what runs again (see the design)."""

from dataclasses import dataclass
from enum import StrEnum


class AttemptOutcome(StrEnum):
    """How an attempt ended, decided by evidence that evalpipe made itself."""

    FINISHED = "finished"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    EMPTY_PATCH = "empty_patch"
    AGENT_CRASHED = "agent_crashed"
    IMAGE_MISSING = "image_missing"
    ENGINE_ERROR = "engine_error"
    DISK_FULL = "disk_full"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class OutcomeRule:
    """`counts`: in pass@1. `run_again`: an infrastructure fault, within the bounds of the retry policy."""

    counts: bool
    run_again: bool


_COUNTS = OutcomeRule(counts=True, run_again=False)
_INVALID = OutcomeRule(counts=False, run_again=True)

OUTCOME_RULES: dict[AttemptOutcome, OutcomeRule] = {
    AttemptOutcome.FINISHED: _COUNTS,
    AttemptOutcome.TIMEOUT: _COUNTS,
    AttemptOutcome.OUT_OF_MEMORY: _COUNTS,
    AttemptOutcome.EMPTY_PATCH: _COUNTS,
    AttemptOutcome.AGENT_CRASHED: _COUNTS,
    AttemptOutcome.IMAGE_MISSING: _INVALID,
    AttemptOutcome.ENGINE_ERROR: _INVALID,
    AttemptOutcome.DISK_FULL: _INVALID,
    AttemptOutcome.INTERRUPTED: _INVALID,
}
