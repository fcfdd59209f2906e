"""The review queue: attempts in which the audit saw signs of a cheat. A person reads them; no number changes here."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign, where it was seen (a line of the transcript, or the patch), and the words that show it."""

    sign: str
    place: str
    evidence: str


@dataclass(frozen=True, slots=True)
class FlaggedAttempt:
    """An attempt to be read, with everything that flagged it."""

    agent: str
    prompt_mode: str
    task_id: str
    sample: str
    attempt_id: str
    resolved: bool
    signs: tuple[Sign, ...]


def flagged_attempts(chosen: pa.Table) -> tuple[FlaggedAttempt, ...]:
    """Return the flagged attempts among those that stand for their samples; those that resolved their task first."""
    columns = ["agent", "prompt_mode", "task_id", "sample", "attempt_id", "resolved", "integrity_reasons"]
    flagged = chosen.select(columns).filter(pc.equal(chosen["integrity"], pa.scalar("flagged")))
    found = [
        FlaggedAttempt(signs=tuple(map(_sign, row.pop("integrity_reasons"))), **row) for row in flagged.to_pylist()
    ]
    return tuple(sorted(found, key=lambda one: (not one.resolved, one.agent, one.task_id, one.prompt_mode, one.sample)))


def _sign(reason: str) -> Sign:
    sign, _, rest = reason.partition(": ")
    place, _, evidence = rest.partition(": ")
    # Grades of an older evalpipe do not say where.
    return Sign(sign, place, evidence) if evidence else Sign(sign, "", place)
