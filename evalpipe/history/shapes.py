"""From mainline commits to changes: which shape each has, and which commits belong together as one change.

The rules for a merge, in order:

1. It brought no commit that the mainline did not have: a back-merge.
2. A forge merged it as a pull request: a merge, whatever its branch was called; but an integration when two or more
   pull requests had been merged to its branch before, or stand, by more than one author, among all that it brought.
3. Its subject says that the mainline was merged: a back-merge. That is how a foxtrot shows: a topic branch took in the
   mainline, and the mainline was then moved forward to it, so that the difference to the first parent is other people's
   work. But `Merge branch 'main' of <address>` and `... into main` are contributions from a fork when others than the
   merger wrote the mainline since the two parted, and so is a merge into a branch that is named after the fork's owner.
4. Pull requests or merges stand on the other side's own line, the merger alone wrote the mainline's side, and the
   subject names no branch: a foxtrot with words of its own, so a back-merge.
5. Two or more pull requests stand there, or it is a line that releases are made from, with several changes: an
   integration. One pull request: the same change, forwarded, with its number.
6. Anything else is a merge; with three or more parents an octopus. GitLab's squash with merge commit (parents B and S,
   S on top of B, the same tree) is a merge too: only the merge is on the first-parent line, so it is one change.

A foxtrot of rule 3 is a merge after all when it is one pull request to the letter: nothing else stands on the other
side's own line, and the merge differs from its first parent in the same files, with the same contents before and after,
as the pull request from its base. It is that pull request, which has no other place on the first-parent line.

Commits of one parent that follow each other and carry one pull request are one rebase. A single such commit, or one
with Gerrit's Change-Id, is a squash; without any of these it is direct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum, auto
from typing import Final, NamedTuple

from evalpipe.history.ancestry import OtherSide, RecentAuthors, brings_pull_requests, other_side
from evalpipe.history.mainline import BranchCommit, FileChange, MainlineCommit, parsed_files
from evalpipe.history.messages import (
    MergedBranch,
    is_batch,
    is_boilerplate,
    is_release_line,
    is_revert_title,
    merged_branch,
    subject_of,
    title_of,
)
from evalpipe.history.pull_requests import Forge, PullRequest, change_id_of, pull_request_of

# Names that a mainline goes by; `git pull` on any of them makes a foxtrot.
_USUAL_MAINLINES: Final = frozenset({"main", "master", "trunk"})


class Shape(StrEnum):
    """How a change came to the mainline; the rules are in this module's description."""

    direct = auto()
    squash = auto()
    rebase = auto()
    merge = auto()
    octopus = auto()
    integration = auto()
    """A merge of a long-lived branch that brought several pull requests at once."""
    back_merge = auto()
    added = auto()
    """Not of the history: a task that the team wrote itself, on a commit that evalpipe made for it."""


class Change(NamedTuple):
    """One mainline change: one commit of the first-parent line, or for a rebase several that follow each other."""

    shape: Shape
    pull_request: PullRequest | None
    change_id: str | None
    """Gerrit's name for it."""
    commits: tuple[MainlineCommit, ...]

    @property
    def number(self) -> int | None:
        """The number of its pull request."""
        return None if self.pull_request is None else self.pull_request.number

    @property
    def last(self) -> MainlineCommit:
        """The commit after which the change is on the mainline."""
        return self.commits[-1]

    @property
    def parent(self) -> str | None:
        """The mainline commit before the change; None for a root."""
        return self.commits[0].parents[0] if self.commits[0].parents else None

    @property
    def files(self) -> tuple[FileChange, ...]:
        """What differs between the tree before and the tree after, sorted by path."""
        if len(self.commits) == 1:
            return parsed_files(self.commits[0].raw_files)
        net: dict[bytes, FileChange] = {}
        for commit in self.commits:
            for file in parsed_files(commit.raw_files):
                before = net.get(file.path, file)
                net[file.path] = file._replace(old_mode=before.old_mode, old_oid=before.old_oid)
        return tuple(sorted(file for file in net.values() if file[1::2] != file[2::2]))

    @property
    def began(self) -> int:
        """When the work began: the earliest author date among its commits, in seconds since the epoch."""
        return min([commit.author_time for commit in self.commits[-1].brought or self.commits])

    @property
    def title(self) -> str:
        """What the change is called, from the first message that was written for it.

        A merge that says nothing of its own is called as the only commit that it brought, or as the pull request that
        is all of the other side's own line.
        """
        title = title_of(self.commits[0].message)
        brought = self.last.brought
        if not brought or not is_boilerplate(title) or title != subject_of(self.commits[0].message):
            return title
        tip = brought[-1]
        is_whole_side = not {one.commit for one in brought} & set(tip.parents[:1])
        is_request = (
            is_whole_side and self.pull_request is not None and pull_request_of(tip.message) == self.pull_request
        )
        return title_of(tip.message) if len(brought) == 1 or is_request else title

    @property
    def work(self) -> Sequence[BranchCommit | MainlineCommit]:
        """The commits in which the work was done, oldest first: a merge's branch, otherwise the commits themselves."""
        return self.commits[-1].brought or self.commits

    @property
    def all_commits(self) -> Sequence[BranchCommit | MainlineCommit]:
        """Every commit with a message about the change: those that a merge brought, then its own on the mainline."""
        brought = self.commits[-1].brought
        return (*brought, *self.commits) if brought else self.commits


def changes_of(
    commits: Iterable[MainlineCommit],
    mainline_names: Iterable[str],
    authors_before: Iterable[tuple[str, str]] = (),
    repository: str | None = None,
    differences: Callable[[str, str], bytes] | None = None,
) -> Iterator[Change]:
    """Group the commits of a mainline, oldest first, into changes.

    A name of the mainline tells its back-merges; `authors_before` are the mainline's commits and their authors before
    the first of `commits`. Numbers that another repository than the named one counts are none of a change.
    `differences` gives the files that differ between two commits as `MainlineCommit.raw_files` does; without it no
    foxtrot is taken for a pull request.
    """
    sorter = _MergeSorter(_USUAL_MAINLINES | set(mainline_names), authors_before, differences)
    run: list[MainlineCommit] = []
    request_of_run = PullRequest(Forge.github, 0)
    for commit in commits:
        request = pull_request_of(commit.message, repository)
        single = len(commit.parents) == 1
        if run and (request != request_of_run or not single or is_revert_title(title_of(commit.message))):
            yield _linear_change(run, request_of_run)
            run = []
        if single and request is not None:
            run.append(commit)
            request_of_run = request
        elif len(commit.parents) < 2:
            change_id = change_id_of(commit.message)
            yield Change(Shape.squash if change_id else Shape.direct, None, change_id, (commit,))
        else:
            yield sorter.change_of(commit, request)
        sorter.authors.add(commit.commit, commit.author, commit)
    if run:
        yield _linear_change(run, request_of_run)


def _linear_change(run: Sequence[MainlineCommit], request: PullRequest) -> Change:
    shape = Shape.squash if len(run) == 1 else Shape.rebase
    message = run[0].message
    if shape is Shape.squash and "\n* " in message and len(set(_SQUASHED.findall(message))) > 1:
        shape = Shape.integration
    return Change(shape, request, change_id_of(message), tuple(run))


# What GitHub lists of a squashed branch: pull requests that had been squashed there.
_SQUASHED: Final = re.compile(r"(?m)^\* .*\(#(\d+)\)[ \t\r]*$")


class _MergeSorter:
    def __init__(
        self,
        mainline_names: frozenset[str],
        authors_before: Iterable[tuple[str, str]],
        differences: Callable[[str, str], bytes] | None,
    ) -> None:
        self._names = mainline_names
        self._differences = differences
        self.authors = RecentAuthors()
        for commit, author in authors_before:
            self.authors.add(commit, author)

    def change_of(self, merge: MainlineCommit, request: PullRequest | None) -> Change:
        """The change that a merge is; the rules are in this module's description."""
        if not merge.brought:
            return self._change(Shape.back_merge, request, merge)
        if is_batch(merge.message) and len(merge.brought) > 1:
            return self._change(Shape.integration, request, merge)
        ordinary = Shape.octopus if len(merge.parents) > 2 else Shape.merge
        if request is not None:
            may_integrate = sum([len(commit.parents) > 1 for commit in merge.brought]) > 1
            is_integration = may_integrate and other_side(merge).merged_pull_requests > 1
            is_integration = is_integration or brings_pull_requests(merge)
            return self._change(Shape.integration if is_integration else ordinary, request, merge)
        side = other_side(merge)
        branch = merged_branch(merge.message)
        if branch is not None and self._is_pull(merge, branch, side):
            return self._foxtrot(merge, side)
        has_team_work = bool(side.pull_requests or side.merges)
        if branch is None and has_team_work and self.authors.are_only(merge.author, side.parted):
            return self._change(Shape.back_merge, None, merge)
        if len(side.pull_requests) > 1 or self._is_release_line(merge, branch, side):
            return self._change(Shape.integration, None, merge)
        return self._change(ordinary, next(iter(side.pull_requests), None), merge)

    @staticmethod
    def _change(shape: Shape, request: PullRequest | None, merge: MainlineCommit) -> Change:
        return Change(shape, request, change_id_of(merge.message), (merge,))

    def _foxtrot(self, merge: MainlineCommit, side: OtherSide) -> Change:
        is_one = len(merge.parents) == 2 and side.length == 1 and len(side.pull_requests) == 1
        if not is_one or side.parted is None or self._differences is None or brings_pull_requests(merge):
            return self._change(Shape.back_merge, None, merge)
        if not merge.raw_files or self._differences(side.parted, merge.parents[1]) != merge.raw_files:
            return self._change(Shape.back_merge, None, merge)
        return self._change(Shape.merge, side.pull_requests[0], merge)

    @staticmethod
    def _is_release_line(merge: MainlineCommit, branch: MergedBranch | None, side: OtherSide) -> bool:
        """Whether the other side is a line that releases are made from, with two or more changes besides these."""
        if side.releases:
            return side.changes > 1
        return side.changes > 2 and branch is not None and is_release_line(branch.name)

    def _is_pull(self, merge: MainlineCommit, branch: MergedBranch, side: OtherSide) -> bool:
        """Whether the subject says that the mainline was merged, and the graph does not speak against it."""
        if branch.name not in self._names:
            return False
        is_from_elsewhere = branch.place is not None or branch.target is not None
        if branch.is_checked_out_fork:
            return False
        if branch.target not in (None, *self._names):
            return True
        return not is_from_elsewhere or self.authors.are_only(merge.author, side.parted)
