"""The hard cases that every runner is asked, as a table: one row for each runner, in `rows/`.

A row holds one small project in which most cases lie side by side, so that one run of a real toolchain shows them all;
what stops a run has a project of its own. A case that a tool cannot have is in `lacks`, with the reason.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evalpipe.runners import WHOLE_SUITE, Runner, RunStatus, SuiteReport, SuiteRequest
from evalpipe.runners.suite import SuiteRun, run_suite
from evalpipe.sandbox import EXECUTABLE, REGULAR, FileEntry, Limits, Sandbox
from evalpipe_tests.conformance.environments import TestEnvironment

Files = Mapping[str, str | bytes]


class HardCase(StrEnum):
    """What a reader of test reports gets wrong."""

    PASS_AND_FAILURE = "a test that passes beside one that fails"
    SUB_TEST = "a failure in a sub-test"
    TEARDOWN = "an error in the teardown of a test that passed"
    XFAIL = "a test that is expected to fail, and does"
    XPASS = "a test that is expected to fail, and passes"
    SKIP = "a test that is skipped"
    ODD_IDS = "parametrised ids with spaces, brackets and quotes"
    SAME_NAME = "two tests that share a name"
    BROKEN_PART = "a module that does not compile, beside others that do"
    NEIGHBOUR_OUTPUT = "output of a neighbour, and forged results, in the middle of a result line"
    NOT_UTF8 = "output that is not UTF-8"
    MUCH_OUTPUT = "50 MB of output"
    NOTHING_BUILDS = "a tree of which nothing compiles"
    EXIT_0 = "a process that ends with exit code 0 in the middle"
    KILLED = "a process that is killed"
    NO_TESTS = "a tree without tests"


@dataclass(frozen=True)
class Shown:
    """What a report must say of a case, besides what it says of others.

    `tests` maps ids to outcomes, `uncollected` names parts that could not be run.
    """

    tests: Mapping[str, str] = field(default_factory=dict)
    duplicates: frozenset[str] = frozenset()
    uncollected: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Alone:
    """A case with a project of its own.

    `statuses` are those that the run may have. Where it is completed, `shown` is all that its report says.
    """

    files: Files
    statuses: frozenset[RunStatus]
    shown: Shown = Shown()


@dataclass(frozen=True)
class Row:
    """A runner, the environment with its tools, and what it makes of every case.

    `besides` is what its project shows of other things. `variant` tells rows of one runner apart. `chosen` names test
    files of the project, and the ids that a run of these alone reports.
    """

    runner: Runner
    environment: TestEnvironment
    files: Files
    together: Mapping[HardCase, Shown]
    alone: Mapping[HardCase, Alone]
    lacks: Mapping[HardCase, str]
    chosen: tuple[tuple[bytes, ...], frozenset[str]]
    besides: Shown = Shown()
    variant: str = ""
    limits: Limits = field(default_factory=lambda: Limits(timeout_s=240, cpus=2, memory_bytes=3 * 1024**3))

    @property
    def name(self) -> str:
        """The runner, and what of it this row is about."""
        return f"{self.runner.name} {self.variant}".strip()

    def run(self, sandbox: Sandbox, image: str, files: Files, request: SuiteRequest = WHOLE_SUITE) -> SuiteRun:
        """Run a project as validation and grading do."""
        with sandbox.open(image, self.limits, {"purpose": "test"}) as box:
            return run_suite(box, self.runner, _entries(files), request)


def outcomes(report: SuiteReport) -> dict[str, str]:
    """The outcome of each test as a word."""
    return {test_id: result.outcome.value for test_id, result in report.tests.items()}


def passed(*ids: str) -> dict[str, str]:
    """Ids of tests that pass."""
    return dict.fromkeys(ids, "passed")


def _entries(files: Files) -> list[FileEntry]:
    entries = []
    for path, content in files.items():
        data = content if isinstance(content, bytes) else textwrap.dedent(content).encode()
        entries.append(FileEntry(path.encode(), EXECUTABLE if data.startswith(b"#!") else REGULAR, data))
    return entries
