"""Test runners: for each, the command, the report that it must leave, and the canary that must fail."""

from evalpipe.runners.plan import WHOLE_SUITE, Runner, SuiteRequest, SuiteTree, TestPlan
from evalpipe.runners.pytest import PytestRunner
from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult
from evalpipe.runners.unittest import UnittestRunner

__all__ = [
    "WHOLE_SUITE",
    "PytestRunner",
    "RunStatus",
    "Runner",
    "SuiteReport",
    "SuiteRequest",
    "SuiteTree",
    "TestOutcome",
    "TestPlan",
    "TestResult",
    "UnittestRunner",
]
