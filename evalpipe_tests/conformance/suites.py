"""Runs small suites in a sandbox as validation and grading do, for the tests of a runner."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from evalpipe.runners import PytestRunner, RunStatus, SuiteReport
from evalpipe.runners.suite import SuiteRun, run_suite
from evalpipe.sandbox import REGULAR, FileEntry, Limits, Sandbox

LIMITS = Limits(timeout_s=120)
Files = Mapping[str, str] | Mapping[bytes, str]


TWO = """
    import pytest
    def test_a(): assert 0
    def test_b(): pass
    @pytest.mark.slow
    def test_c(): pass
"""


@dataclass(frozen=True)
class Place:
    """A sandbox with an environment that has pytest."""

    sandbox: Sandbox
    environment: str

    def run(self, files: Files, *, limits: Limits = LIMITS, arguments: tuple[str, ...] = ()) -> SuiteRun:
        """Run the suite that these files are, through the function that validation and grading use."""
        with self.sandbox.open(self.environment, limits, {"purpose": "test"}) as box:
            return run_suite(box, PytestRunner(arguments=arguments), as_entries(files))

    def report(self, files: Files, *, arguments: tuple[str, ...] = ()) -> SuiteReport:
        """The report of a run that must be complete and have a canary that failed."""
        report = self.run(files, arguments=arguments).report
        assert report.status is RunStatus.COMPLETED, report.detail
        assert report.canary_failed
        return report


def as_entries(files: Files) -> list[FileEntry]:
    """A tree of these files; the indentation that a content has as a whole is taken off."""
    return [
        FileEntry(path.encode() if isinstance(path, str) else path, REGULAR, textwrap.dedent(content).encode())
        for path, content in files.items()
    ]


def outcomes(report: SuiteReport) -> dict[str, str]:
    """The outcome of each test as a word."""
    return {test_id: result.outcome.value for test_id, result in report.tests.items()}
