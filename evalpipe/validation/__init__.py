"""Validation: both sides of a candidate are run, and what they show decides whether it is a task."""

from evalpipe.validation.box_facts import BoxFacts
from evalpipe.validation.conditions import AFTER, BEFORE, WITH_NETWORK, RunConditions, RunName, Side, SuiteScope
from evalpipe.validation.finding import (
    PassFinding,
    QuarantineCause,
    StressFinding,
    TwoSides,
    ValidationClass,
    ValidationFinding,
)
from evalpipe.validation.missing_names import missing_names
from evalpipe.validation.one_pass import judge_pass, worth_a_comparison
from evalpipe.validation.passes import judge
from evalpipe.validation.sides import ChangeUnderTest, Suite, look_into_box, run_conditions, side_files
from evalpipe.validation.stress import needs_separate_runs, separate_runs, stress_finding, stress_plan

__all__ = [
    "AFTER",
    "BEFORE",
    "WITH_NETWORK",
    "BoxFacts",
    "ChangeUnderTest",
    "PassFinding",
    "QuarantineCause",
    "RunConditions",
    "RunName",
    "Side",
    "StressFinding",
    "Suite",
    "SuiteScope",
    "TwoSides",
    "ValidationClass",
    "ValidationFinding",
    "judge",
    "judge_pass",
    "look_into_box",
    "missing_names",
    "needs_separate_runs",
    "run_conditions",
    "separate_runs",
    "side_files",
    "stress_finding",
    "stress_plan",
    "worth_a_comparison",
]
