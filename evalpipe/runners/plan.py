"""What a runner asks of a sandbox, and what it makes of the answer."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from evalpipe.runners.report import SuiteReport

REPOSITORY_FOLDER = "repo"
"""Folder of the tree under test, relative to the root of its box."""

SuiteTree = Mapping[bytes, bytes]
"""The regular files of the tree under test, by their path from the top of the repository."""


@dataclass(frozen=True, slots=True)
class SuiteRequest:
    """What is to be run: the whole suite, or `test_files` only (paths from the top of the repository).

    `shuffle_seed` asks for another order of the tests than the suite's own; only runners that can shuffle get one.
    """

    test_files: tuple[bytes, ...] | None = None
    shuffle_seed: int | None = None


WHOLE_SUITE = SuiteRequest()


def new_report_path(ending: str) -> str:
    """A path for the report of one run, at the top of the box: below a folder, an engine is asked for that too."""
    return f"{secrets.token_hex(8)}.{ending}"


@dataclass(frozen=True, slots=True)
class TestPlan:
    """One run of a suite. `command` runs in the tree; the other paths are relative to the root of the box.

    `files` are laid into the box after the tree, so they may replace files of it (`repo/...`). `report_path` is the
    one file that the run leaves; a runner whose tool leaves several has its command join them. `canary` is the name
    by which `Runner.read` knows the test that must fail, `key` what it checks a sealed report with (see `seal.py`).
    """

    __test__ = False

    command: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[bytes, bytes]
    report_path: str
    canary: str
    key: str = ""


class Runner(Protocol):
    """A test runner of a team's repository."""

    @property
    def name(self) -> str:
        """Name of the runner in configuration files and task records."""

    @property
    def can_shuffle(self) -> bool:
        """Whether the runner can run a suite in another order."""

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """Plan a run of the suite of `tree` in a box at `root`, where the tree lies in REPOSITORY_FOLDER."""

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the report that the run of `plan` left (None: it left none). Never raises on content."""
