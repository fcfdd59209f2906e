"""Validation: both sides of a candidate are run, and what they show decides whether it is a task."""

from evalpipe.validation.classify import (
    PassFinding,
    TwoSides,
    ValidationClass,
    ValidationFinding,
    judge,
    judge_pass,
)
from evalpipe.validation.sides import ChangeUnderTest, Side, run_side

__all__ = [
    "ChangeUnderTest",
    "PassFinding",
    "Side",
    "TwoSides",
    "ValidationClass",
    "ValidationFinding",
    "judge",
    "judge_pass",
    "run_side",
]
