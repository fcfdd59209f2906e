"""Whether a change can become a task and why not, and what kind of work it is; pure rules over paths and messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, auto

from evalpipe.history.mainline import FileChange
from evalpipe.history.messages import is_release_title, is_revert_title, reverted_commit, reverted_number
from evalpipe.history.objects import GITLINK
from evalpipe.history.paths import FileKind, PathRules
from evalpipe.history.shapes import Change, Shape


class MiningReason(StrEnum):
    """Why a mainline change is a candidate or not, in the order in which the reasons are looked at (kept is last)."""

    root = auto()
    """It has no parent, so there is no state before it."""
    back_merge = auto()
    """It merged the mainline into itself; its difference is other changes' work."""
    merge_without_change = auto()
    """A merge whose tree is its first parent's."""
    no_change = auto()
    """A commit that changes no file."""
    revert = auto()
    """It takes back an earlier change, or takes back such a revert."""
    release = auto()
    """Its title says nothing but that a version was released or bumped."""
    submodule_only = auto()
    docs_only = auto()
    dependency_only = auto()
    """Dependency manifests and nothing else but documentation."""
    generated_only = auto()
    """Generated or vendored files and nothing else but documentation."""
    too_many_files = auto()
    """More files than the rules allow, generated ones not counted."""
    no_tests = auto()
    """No test file was added or changed (a deleted one cannot fail)."""
    no_source = auto()
    """No product source was changed."""
    no_issue = auto()
    """It names no issue, and the rules require one."""
    kept = auto()


class Category(StrEnum):
    """What kind of work a change was."""

    single_file_repair = auto()
    multi_file_feature = auto()
    dependency_chore = auto()
    test_only = auto()
    other = auto()


class CategoryRule(StrEnum):
    """The rule by which a change has its category, in the order in which they are tried."""

    tests_without_source = auto()
    no_source = auto()
    dependency_and_at_most_one_source_file = auto()
    one_source_file = auto()
    several_source_files = auto()


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The paths of a change by what they are for, each in git's order."""

    by_kind: dict[FileKind, tuple[bytes, ...]]
    submodules: tuple[bytes, ...]
    deleted: frozenset[bytes]
    count: int

    @classmethod
    def of(cls, files: Iterable[FileChange], rules: PathRules) -> ChangedFiles:
        """Sort the files of a change."""
        by_kind: dict[FileKind, list[bytes]] = {}
        submodules, deleted, count = [], set(), 0
        for file in files:
            count += 1
            if GITLINK in (file.old_mode, file.new_mode):
                submodules.append(file.path)
                continue
            if file.new_mode == 0:
                deleted.add(file.path)
            by_kind.setdefault(rules.kind_of(file.path), []).append(file.path)
        sorted_kinds = {kind: tuple(paths) for kind, paths in by_kind.items()}
        return cls(sorted_kinds, tuple(submodules), frozenset(deleted), count)

    def of_kind(self, kind: FileKind) -> tuple[bytes, ...]:
        """The paths of one kind."""
        return self.by_kind.get(kind, ())

    def only(self, kind: FileKind) -> bool:
        """Whether files of this kind changed and, documentation aside, no other ones."""
        return kind in self.by_kind and not self.submodules and not self.by_kind.keys() - {kind, FileKind.docs}


@dataclass(frozen=True, slots=True)
class Decision:
    """The first reason that applies, with what a reader wants to know about it."""

    reason: MiningReason
    detail: str = ""


def decide(change: Change, files: ChangedFiles, max_files: int) -> Decision:
    """Whether a change can become a task, by all that needs no more than paths and messages.

    Whether an issue is required is for the caller to decide afterwards: links need file contents.
    """
    return _by_history(change, files) or _by_files(files, max_files) or Decision(MiningReason.kept)


def _by_history(change: Change, files: ChangedFiles) -> Decision | None:
    if change.parent is None:
        return Decision(MiningReason.root, "the first commit")
    if change.shape is Shape.back_merge:
        return Decision(MiningReason.back_merge, change.last.message.partition("\n")[0])
    if files.count == 0:
        is_merge = len(change.last.parents) > 1
        return Decision(MiningReason.merge_without_change if is_merge else MiningReason.no_change)
    if is_revert(change):
        return Decision(MiningReason.revert, change.title)
    if is_release_title(change.title):
        return Decision(MiningReason.release, change.title)
    return None


def is_revert(change: Change) -> bool:
    """Whether a change takes back another one, by its title, its message, or all commits of its branch."""
    message = change.last.message
    if is_revert_title(change.title) or reverted_commit(message) or reverted_number(message):
        return True
    return all(reverted_commit(commit.message) for commit in change.work)


def _by_files(files: ChangedFiles, max_files: int) -> Decision | None:
    tests = [path for path in files.of_kind(FileKind.test) if path not in files.deleted]
    sources = files.of_kind(FileKind.source)
    counted = files.count - len(files.of_kind(FileKind.generated))
    if files.submodules and not files.by_kind.keys() - {FileKind.other, FileKind.docs}:
        return Decision(MiningReason.submodule_only, f"{len(files.submodules)} submodules")
    if not files.submodules and files.by_kind.keys() == {FileKind.docs}:
        return Decision(MiningReason.docs_only, f"{files.count} files")
    if files.only(FileKind.dependency):
        return Decision(MiningReason.dependency_only, f"{len(files.of_kind(FileKind.dependency))} manifests")
    if files.only(FileKind.generated):
        return Decision(MiningReason.generated_only, f"{len(files.of_kind(FileKind.generated))} files")
    if counted > max_files:
        return Decision(MiningReason.too_many_files, f"{counted} files, {max_files} are allowed")
    if not tests:
        detail = "tests were only deleted" if files.of_kind(FileKind.test) else f"{len(sources)} source files"
        return Decision(MiningReason.no_tests, detail)
    if not sources:
        return Decision(MiningReason.no_source, f"{len(tests)} test files")
    return None


def categorize(files: ChangedFiles, dependencies_changed: bool) -> tuple[Category, CategoryRule]:
    """What kind of work a change was, and the rule that says so."""
    sources = len(files.of_kind(FileKind.source))
    if dependencies_changed and sources <= 1:
        return Category.dependency_chore, CategoryRule.dependency_and_at_most_one_source_file
    if sources == 1:
        return Category.single_file_repair, CategoryRule.one_source_file
    if sources > 1:
        return Category.multi_file_feature, CategoryRule.several_source_files
    if files.of_kind(FileKind.test):
        return Category.test_only, CategoryRule.tests_without_source
    return Category.other, CategoryRule.no_source
