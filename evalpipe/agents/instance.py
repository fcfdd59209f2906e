"""The instance: the repository as an agent gets it, made from what the parent reaches and proven before it is used."""

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.history import Repository, ScratchObjects, prove_repository
from evalpipe.sandbox import REGULAR, FileEntry
from evalpipe.tasks import instance_tree, read_files

KEPT_BYTES = 256 * 1024**2
"""Of git directories: the samples of a task follow each other closely, and most histories have under 30 MB."""


class HistoryKind(StrEnum):
    """What an agent may read of the past: the parent's ancestors, or nothing but the tree as one commit."""

    ANCESTORS = "ancestors"
    NONE = "none"


class InstanceUnproven(Exception):
    """The instance of a task holds more than it may, and is not handed out; the text says what."""


@dataclass(frozen=True, slots=True)
class Instance:
    """What is laid before an agent: the tree of `parent` without `hidden_tests`, and a git directory for it.

    `git_files` are the files of that directory by their path below `.git/`; its one branch is at the commit `start`.
    """

    parent: str
    hidden_tests: frozenset[bytes]
    start: str
    git_files: Mapping[bytes, bytes]

    def tree(self, scratch: ScratchObjects) -> str:
        """The id of the tree, which this puts into `scratch`."""
        return instance_tree(scratch, self.parent, self.hidden_tests)

    def entries(self, scratch: ScratchObjects) -> Iterator[FileEntry]:
        """Every file of the instance, from the top of the repository."""
        for file in read_files(scratch, scratch.read_tree(self.tree(scratch))):
            yield FileEntry(file.path, file.mode, file.data)
        for path, data in self.git_files.items():
            yield FileEntry(b".git/" + path, REGULAR, data)


def make_instance(
    scratch: ScratchObjects, parent: str, commit: str, hidden_tests: Collection[bytes], history: HistoryKind
) -> Instance:
    """The instance of the task that the change `commit` on top of `parent` is, without `hidden_tests`, proven.

    With its ancestors it starts from the parent itself, or where tests are hidden from a commit that differs from it
    in nothing but these files. Raises InstanceUnproven.
    """
    tree = instance_tree(scratch, parent, hidden_tests)
    if history is HistoryKind.ANCESTORS:
        start = scratch.commit_with_tree(parent, tree)
    else:
        start = scratch.single_commit(tree, "The repository as it is")
    files = scratch.repository_files(start)
    findings = prove_repository(scratch, files, start, parent, commit)
    if findings:
        shown = "; ".join(f"{finding.fault.value}: {finding.evidence}" for finding in findings)
        advice = ", or set `history: none` in the sweep" if history is HistoryKind.ANCESTORS else ""
        raise InstanceUnproven(
            f"the repository for an agent, made from {parent[:12]}, gives the answer away ({shown}): leave the task "
            f"out{advice}"
        )
    return Instance(parent, frozenset(hidden_tests), start, files)


class Instances:
    """Makes the instances of a repository's tasks, and keeps the latest ones; may be used from any thread."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._kept: OrderedDict[tuple[object, ...], Instance] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        repository: Repository,
        parent: str,
        commit: str,
        hidden_tests: Collection[bytes],
        history: HistoryKind,
    ) -> Instance:
        """See `make_instance`. What was made stays proven: its bytes do not change."""
        key = (repository.path, parent, commit, frozenset(hidden_tests), history)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with ScratchObjects(repository) as scratch:
            made = make_instance(scratch, parent, commit, hidden_tests, history)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > self._kept_bytes:
                self._kept.popitem(last=False)
        return made


def _size(instance: Instance) -> int:
    return sum(map(len, instance.git_files.values()))
