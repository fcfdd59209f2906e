"""Runs one side of a candidate: *before* (the parent with the change's tests) or *after* (the change itself)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.history import Repository, ScratchObjects
from evalpipe.runners import Runner
from evalpipe.runners.suite import SuiteRun, run_suite
from evalpipe.sandbox import FileEntry, Limits, Sandbox
from evalpipe.tasks import before_tree, read_files


class Side(StrEnum):
    """The two trees that the same tests run on."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class ChangeUnderTest:
    """What validation needs of a candidate."""

    candidate_id: str
    parent: str
    commit: str
    test_files: tuple[bytes, ...]


def run_side(
    sandbox: Sandbox,
    environment: str,
    runner: Runner,
    repository: Repository,
    change: ChangeUnderTest,
    side: Side,
    limits: Limits,
    labels: dict[str, str],
    *,
    preparation: Sequence[str] = (),
) -> SuiteRun:
    """Run the whole suite on one side of `change`, in a fresh box without network, after `preparation`.

    Raises SandboxError for faults of the engine; what the tests do is in the report.
    """
    with ScratchObjects(repository) as scratch:
        if side is Side.BEFORE:
            tree = before_tree(scratch, change.parent, change.commit, change.test_files)
        else:
            tree = scratch.tree_id(change.commit)
        files = read_files(scratch, scratch.read_tree(tree))
        with sandbox.open(environment, limits, {**labels, "side": side.value}) as box:
            entries = (FileEntry(file.path, file.mode, file.data) for file in files)
            return run_suite(box, runner, entries, preparation=preparation)
