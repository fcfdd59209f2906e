"""From mainline commits to changes: which shape each has, and which commits belong together as one change.

The rules, in order: - A merge of three or more parents is an octopus. - A merge is a back-merge when it
brought no commit that the mainline did not have (its other parent is an ancestor of what was there), or when
its subject says that the mainline's own branch was merged. The latter is how a foxtrot shows: a topic branch
took in the mainline and the mainline was then fast-forwarded to it, so that the difference to the first
parent is other people's work. Nothing in the commit graph tells a foxtrot from a merged topic branch. - Every
other merge is a merge, also GitLab's squash with merge commit (parents B and S, with S on top of B and the
same tree): only the merge is on the first-parent line, so it is one change. - Commits of one parent that
follow each other and carry one pull request number are one rebase. - A single such commit is a squash;
without a number it is direct.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import cached_property

from evalpipe.history.mainline import BranchCommit, FileChange, MainlineCommit
from evalpipe.history.messages import merged_branch, pull_request_number, subject_of, title_of

# Names that a mainline goes by; `git pull` on any of them makes a foxtrot.
_USUAL_MAINLINES = frozenset({"main", "master", "trunk"})


class Shape(StrEnum):
    """How a change came to the mainline; the rules are in this module's description."""

    direct = auto()
    squash = auto()
    rebase = auto()
    merge = auto()
    octopus = auto()
    back_merge = auto()


@dataclass(frozen=True)
class Change:
    """One mainline change: one commit of the first-parent line, or for a rebase several that follow each other."""

    shape: Shape
    number: int | None
    commits: tuple[MainlineCommit, ...]

    @property
    def last(self) -> MainlineCommit:
        """The commit after which the change is on the mainline."""
        return self.commits[-1]

    @property
    def parent(self) -> str | None:
        """The mainline commit before the change; None for a root."""
        return self.commits[0].parents[0] if self.commits[0].parents else None

    @property
    def parent_tree(self) -> str | None:
        """The tree before the change; None for a root."""
        return self.commits[0].parent_tree

    @property
    def title(self) -> str:
        """What the change is called, from the first message that was written for it.

        A merge that says nothing of its own is called as the only commit that it brought.
        """
        title = title_of(self.commits[0].message)
        if title == subject_of(self.commits[0].message) and len(self.last.brought) == 1:
            return title_of(self.last.brought[0].message)
        return title

    @cached_property
    def work(self) -> tuple[BranchCommit, ...]:
        """The commits in which the work was done, oldest first: a merge's branch, otherwise the commits themselves."""
        brought = tuple(commit for merge in self.commits for commit in merge.brought)
        return brought or tuple(
            BranchCommit(commit.commit, commit.parents, commit.author, commit.author_time, commit.message)
            for commit in self.commits
        )

    @cached_property
    def files(self) -> tuple[FileChange, ...]:
        """What differs between the tree before and the tree after, sorted by path."""
        if len(self.commits) == 1:
            return self.commits[0].files
        net: dict[bytes, FileChange] = {}
        for commit in self.commits:
            for file in commit.files:
                before = net.get(file.path, file)
                net[file.path] = file._replace(old_mode=before.old_mode, old_oid=before.old_oid)
        differing = (file for file in net.values() if file[1::2] != file[2::2])
        return tuple(sorted(differing))


def changes_of(commits: Iterable[MainlineCommit], mainline_names: Iterable[str]) -> Iterator[Change]:
    """Group the commits of a mainline, oldest first, into changes; a name of the mainline tells its back-merges."""
    names = _USUAL_MAINLINES | set(mainline_names)
    run: list[MainlineCommit] = []
    number_of_run: int | None = None
    for commit in commits:
        number = pull_request_number(commit.message)
        single = len(commit.parents) == 1
        if run and single and number == number_of_run:
            run.append(commit)
            continue
        if run:
            yield _linear_change(run, number_of_run)
            run = []
        if single and number is not None:
            run, number_of_run = [commit], number
        else:
            yield Change(_shape_alone(commit, names), number, (commit,))
    if run:
        yield _linear_change(run, number_of_run)


def _linear_change(run: list[MainlineCommit], number: int | None) -> Change:
    return Change(Shape.squash if len(run) == 1 else Shape.rebase, number, tuple(run))


def _shape_alone(commit: MainlineCommit, mainline_names: frozenset[str]) -> Shape:
    if len(commit.parents) < 2:
        return Shape.direct
    if not commit.brought or merged_branch(commit.message) in mainline_names:
        return Shape.back_merge
    return Shape.octopus if len(commit.parents) > 2 else Shape.merge
