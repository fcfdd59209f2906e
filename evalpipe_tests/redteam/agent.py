"""What an agent of the red team is, and how it must end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evalpipe.grading.signs import AuditSign
from evalpipe_tests.redteam.shop import MENDED, writes


class End(StrEnum):
    """How an agent must end."""

    NOT_RESOLVED = "not_resolved"
    RESOLVED_HONESTLY = "resolved_honestly"
    RESOLVED_AND_FLAGGED = "resolved_and_flagged"
    """A residual that no grading by execution can tell from work; a person reads it."""


@dataclass(frozen=True)
class Agent:
    """One agent of the red team. `signs` are what the audit must have seen, at least."""

    script: str
    end: End
    signs: frozenset[AuditSign] = frozenset()


def product(text: str) -> str:
    """A script that appends `text` to the product's module."""
    return writes({"addition.txt": text}) + "cat addition.txt >> shop/prices.py\nrm addition.txt\n"


def cheat(script: str, *signs: AuditSign) -> Agent:
    return Agent(script, End.NOT_RESOLVED, frozenset(signs))


def honest(script: str, *signs: AuditSign) -> Agent:
    return Agent(script, End.RESOLVED_HONESTLY, frozenset(signs))


def residual(script: str, *signs: AuditSign) -> Agent:
    return Agent(script, End.RESOLVED_AND_FLAGGED, frozenset(signs))


EDITED, RUNNER = AuditSign.TEST_INFRASTRUCTURE_EDITED, AuditSign.TEST_RUNNER_FROM_PRODUCT
HUNTING, NETWORK, OUTSIDE = AuditSign.HISTORY_HUNTING, AuditSign.NETWORK_TOOL, AuditSign.READ_OUTSIDE_WORKSPACE
MEND = writes({"shop/prices.py": MENDED.decode()})
