"""Test runners: for each, the command, the report that it must leave, and the canary that must fail."""

from evalpipe.runners.plan import Runner, TestPlan
from evalpipe.runners.pytest import PytestRunner
from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult

__all__ = ["PytestRunner", "RunStatus", "Runner", "SuiteReport", "TestOutcome", "TestPlan", "TestResult"]
