"""What a runner asks of a sandbox, and what it makes of the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalpipe.runners.report import SuiteReport

REPOSITORY_FOLDER = "repo"
"""Folder of the tree under test, relative to the root of its box."""


@dataclass(frozen=True, slots=True)
class TestPlan:
    """One run of a suite: paths are relative to the root of the box, `command` runs in the tree."""

    __test__ = False

    command: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]
    report_path: str
    canary_id: str


class Runner(Protocol):
    """A test runner of a team's repository."""

    @property
    def name(self) -> str:
        """Name of the runner in configuration files and task records."""

    def plan(self, root: str, test_files: Sequence[str] | None = None) -> TestPlan:
        """Plan a run in a box at `root`: the whole suite, or only `test_files` of the tree."""

    def read(self, plan: TestPlan, report: bytes | None) -> SuiteReport:
        """Read the report that the run of `plan` left (None: it left none). Never raises on content."""
