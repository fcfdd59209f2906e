"""Whether a change can become a task and why not: pure rules over paths and messages."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum, auto
from itertools import chain
from typing import Final, NamedTuple

from evalpipe.history.inline_tests import may_hold_inline_tests
from evalpipe.history.ledger import Relations
from evalpipe.history.mainline import plain_paths
from evalpipe.history.messages import (
    has_long_subject,
    is_release_title,
    is_revert_title,
    is_update_title,
    may_revert,
    reverted_commits,
    reverted_number,
    subtree_folder,
)
from evalpipe.history.objects import GITLINK
from evalpipe.history.paths import FileKind, PathRules
from evalpipe.history.shapes import Change, Shape


class MiningReason(StrEnum):
    """Why a mainline change is a candidate or not, in the order in which the reasons are looked at (kept is last)."""

    root = auto()
    """It has no parent, so there is no state before it."""
    back_merge = auto()
    """It merged the mainline into itself; its difference is other changes' work."""
    several_changes = auto()
    """It merged a long-lived branch with several pull requests, which cannot be told apart any more."""
    merge_without_change = auto()
    """A merge whose tree is its first parent's."""
    no_change = auto()
    """A commit that changes no file."""
    revert = auto()
    """It takes back an earlier change (or a revert of something that is not known)."""
    release = auto()
    """Its title says nothing but that a version was released or bumped."""
    submodule_only = auto()
    docs_only = auto()
    dependency_only = auto()
    """Dependency manifests and nothing else but documentation; or its title is a bot's for newer versions."""
    generated_only = auto()
    """Generated or vendored files (what `git subtree` took in, too) and nothing else but documentation."""
    too_many_files = auto()
    """More files than the rules allow, generated ones not counted."""
    no_tests = auto()
    """No test file was added or changed (a deleted one cannot fail)."""
    no_source = auto()
    """No product source was changed."""
    repeat = auto()
    """It is on the mainline a second time: picked, forwarded or landed again after a revert; the first is kept."""
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

    override = auto()
    """The team said so."""
    tests_without_source = auto()
    no_source = auto()
    dependency_and_at_most_one_source_file = auto()
    one_source_file = auto()
    several_source_files = auto()


class ChangedFiles(NamedTuple):
    """The paths of a change by what they are for, each kind in git's order; `source` and `tests` are kinds too."""

    by_kind: dict[FileKind, list[bytes]]
    source: tuple[bytes, ...]
    tests: tuple[bytes, ...]
    submodules: list[bytes]
    deleted: frozenset[bytes]
    total: int

    @classmethod
    def of(cls, change: Change, rules: PathRules) -> ChangedFiles:
        """Sort the files of a change."""
        by_kind: dict[FileKind, list[bytes]] = {}
        submodules: list[bytes] = []
        deleted: frozenset[bytes] = _NONE
        kind_of = rules.kinds.__getitem__
        paths = plain_paths(change.commits[0].raw_files) if len(change.commits) == 1 else None
        if paths is None:
            files = change.files
            total = len(files)
            submodules = [file.path for file in files if GITLINK in (file.old_mode, file.new_mode)]
            paths = [file.path for file in files if GITLINK not in (file.old_mode, file.new_mode)]
            deleted = frozenset([file.path for file in files if file.new_mode == 0]).difference(submodules)
        else:
            total = len(paths)
        for path in paths:
            by_kind.setdefault(kind_of(path), []).append(path)
        source, tests = by_kind.get(FileKind.source, ()), by_kind.get(FileKind.test, ())
        return cls(by_kind, tuple(source), tuple(tests), submodules, deleted, total)

    def with_generated(self, paths: Collection[bytes]) -> ChangedFiles:
        """The same files when these sources turned out to be generated."""
        source = tuple([path for path in self.source if path not in paths])
        by_kind = dict(self.by_kind)
        del by_kind[FileKind.source]
        if source:
            by_kind[FileKind.source] = list(source)
        by_kind[FileKind.generated] = [*by_kind.get(FileKind.generated, ()), *paths]
        return self._replace(by_kind=by_kind, source=source)

    def are_all_in(self, folder: bytes) -> bool:
        """Whether nothing changed outside this folder."""
        paths = [*chain.from_iterable(self.by_kind.values()), *self.submodules]
        return all(path.startswith(folder + b"/") for path in paths)

    def only(self, kind: FileKind) -> bool:
        """Whether files of this kind changed and, documentation aside, no other ones."""
        return kind in self.by_kind and not self.submodules and not self.by_kind.keys() - {kind, FileKind.docs}


_NONE: Final[frozenset[bytes]] = frozenset()


class Decision(NamedTuple):
    """The first reason that applies, with what a reader wants to know about it."""

    reason: MiningReason
    detail: str = ""


_KEPT: Final = Decision(MiningReason.kept)


def decide(change: Change, files: ChangedFiles, max_files: int) -> Decision:
    """Whether a change can become a task, by all that needs no more than paths and messages; see `settle`."""
    return _by_history(change, files) or _by_files(files, max_files) or _KEPT


def is_promising(decision: Decision, files: ChangedFiles, max_files: int) -> bool:
    """Whether a change may be kept, so that its contents are worth reading.

    A rejected one may be when its tests stand inside its sources, or when it is a revert that may land something again.
    """
    if decision.reason is MiningReason.revert:
        decision = _by_files(files, max_files) or _KEPT
    if decision.reason is MiningReason.no_tests:
        return any(may_hold_inline_tests(path) for path in files.source if path not in files.deleted)
    return decision.reason is MiningReason.kept


def settle(
    decision: Decision, files: ChangedFiles, max_files: int, inline_tests: tuple[bytes, ...], relations: Relations
) -> Decision:
    """The decision about a promising change when its contents and its relations to earlier changes are known.

    `files` are those of which contents told what they are.
    """
    if decision.reason is not MiningReason.revert or relations.repeats is not None:
        decision = _by_files(files, max_files) or _KEPT
    if decision.reason is MiningReason.no_tests and inline_tests:
        decision = _KEPT
    if decision.reason is MiningReason.kept and relations.copied is not None:
        return Decision(MiningReason.repeat, relations.copied)
    return decision


def _by_history(change: Change, files: ChangedFiles) -> Decision | None:
    if change.parent is None:
        return Decision(MiningReason.root, "the first commit")
    if change.shape is Shape.back_merge:
        return Decision(MiningReason.back_merge, change.last.message.partition("\n")[0])
    if change.shape is Shape.integration:
        return Decision(MiningReason.several_changes, change.last.message.partition("\n")[0])
    if files.total == 0:
        is_merge = len(change.last.parents) > 1
        return Decision(MiningReason.merge_without_change if is_merge else MiningReason.no_change)
    title = change.title
    if _is_revert(change, title):
        return Decision(MiningReason.revert, title)
    if is_release_title(title) and not has_long_subject(change.last.message):
        return Decision(MiningReason.release, title)
    if is_update_title(title):
        return Decision(MiningReason.dependency_only, title)
    for commit in change.all_commits:
        folder = subtree_folder(commit.message) if "git-subtree-dir" in commit.message else None
        if folder is not None and files.are_all_in(folder):
            return Decision(MiningReason.generated_only, f"git subtree in {folder.decode()}")
    return None


def _is_revert(change: Change, title: str) -> bool:
    """Whether a change takes back another one, by its title, its message, or all commits of its branch."""
    last = change.last
    if is_revert_title(title):
        return True
    if may_revert(last.message) and (reverted_commits(last.message) or reverted_number(last.message)):
        return True
    for commit in last.brought:
        if not reverted_commits(commit.message):
            return False
    return bool(last.brought)


def _by_files(files: ChangedFiles, max_files: int) -> Decision | None:
    kinds = files.by_kind
    tests, sources = files.tests, files.source
    if not (tests and sources):
        rejected = _by_kinds(files)
        if rejected is not None:
            return rejected
    counted = files.total - len(kinds.get(FileKind.generated, ()))
    if counted > max_files:
        return Decision(MiningReason.too_many_files, f"{counted} files, {max_files} are allowed")
    if not tests and not sources:
        return Decision(MiningReason.no_source, "neither source nor test files")
    if not tests:
        return Decision(MiningReason.no_tests, f"{len(sources)} source files")
    if files.deleted.issuperset(tests):
        return Decision(MiningReason.no_tests, "tests were only deleted")
    if not sources:
        return Decision(MiningReason.no_source, f"{len(tests)} test files")
    return None


def _by_kinds(files: ChangedFiles) -> Decision | None:
    kinds = files.by_kind
    if FileKind.source in kinds or FileKind.test in kinds:
        return None
    if files.submodules and not kinds.keys() - {FileKind.other, FileKind.docs}:
        return Decision(MiningReason.submodule_only, f"{len(files.submodules)} submodules")
    if not files.submodules and kinds.keys() == {FileKind.docs}:
        return Decision(MiningReason.docs_only, f"{files.total} files")
    if files.only(FileKind.dependency):
        return Decision(MiningReason.dependency_only, f"{len(kinds[FileKind.dependency])} manifests")
    if files.only(FileKind.generated):
        return Decision(MiningReason.generated_only, f"{len(kinds[FileKind.generated])} files")
    return None
