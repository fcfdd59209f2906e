"""Runs a suite on one side of a candidate: *before* (the parent with the change's tests) or *after* (the change)."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from evalpipe.history import Repository, ScratchObjects
from evalpipe.runners import Runner, SuiteRequest
from evalpipe.runners.suite import SuiteRun, run_suite
from evalpipe.sandbox import FileEntry, Limits, Sandbox
from evalpipe.tasks import before_tree, read_files
from evalpipe.validation.box_facts import HOSTNAME, BoxFacts, facts_command, read_facts
from evalpipe.validation.conditions import RunConditions, Side


@dataclass(frozen=True, slots=True)
class ChangeUnderTest:
    """What validation needs of a candidate."""

    candidate_id: str
    parent: str
    commit: str
    test_files: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """How the tests of a repository are run: in which boxes, by which runner, and which of them."""

    environment: str
    limits: Limits
    runner: Runner
    preparation: Sequence[str] = ()
    test_files: tuple[bytes, ...] | None = None


def side_files(repository: Repository, change: ChangeUnderTest, side: Side) -> list[FileEntry]:
    """The tree of one side of `change`."""
    with ScratchObjects(repository) as scratch:
        if side is Side.BEFORE:
            tree = before_tree(scratch, change.parent, change.commit, change.test_files)
        else:
            tree = scratch.tree_id(change.commit)
        return [FileEntry(file.path, file.mode, file.data) for file in read_files(scratch, scratch.read_tree(tree))]


def run_conditions(
    sandbox: Sandbox,
    suite: Suite,
    files: Iterable[FileEntry],
    conditions: RunConditions,
    labels: dict[str, str],
    while_running: AbstractContextManager[None] | None = None,
) -> SuiteRun:
    """Run `suite` on a tree in a fresh box, under `conditions`; `while_running` is as for `run_suite`.

    Raises SandboxError for faults of the engine; what the tests do is in the report.
    """
    request = SuiteRequest(suite.test_files, conditions.shuffle_seed)
    with sandbox.open(
        suite.environment,
        suite.limits,
        {**labels, "side": conditions.side.value, "suite_run": conditions.name.value},
        network=conditions.network,
        hostname=conditions.hostname,
    ) as box:
        return run_suite(
            box,
            suite.runner,
            files,
            request,
            preparation=suite.preparation,
            env=conditions.env,
            while_running=while_running,
        )


def look_into_box(sandbox: Sandbox, suite: Suite, labels: dict[str, str]) -> BoxFacts:
    """What boxes of a suite's environment offer to the stress pass; opens one. Raises SandboxError."""
    with sandbox.open(suite.environment, suite.limits, {**labels, "purpose": "facts"}, hostname=HOSTNAME) as box:
        return read_facts(box.run(facts_command(suite.runner.name), env={}, cwd=".").stdout)
