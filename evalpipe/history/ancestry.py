"""What the commit graph says about a merge: whose work it brought, and whose it was brought to.

A merged pull request, the merge of a long-lived branch, and a `git pull` that made the mainline somebody's second
parent look alike to git. Two questions tell them apart. What stands on the other side's own line: single commits, or
pull requests that were merged there? And who wrote the mainline's side since the two parted: the team, or the merger
alone?
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from evalpipe.history.mainline import MainlineCommit
from evalpipe.history.pull_requests import PullRequest, pull_request_of

# A merger's own unpushed commits are fewer than this; what parted earlier was the team's.
WINDOW: Final = 1000


class OtherSide(NamedTuple):
    """The second parent's own first-parent line, as far as the merge brought it.

    `pull_requests` were merged or squashed there, in order; `merges` counts the commits that brought further branches
    to it; `parted` is the commit where it left what the mainline had, None for an unrelated history.
    """

    pull_requests: tuple[PullRequest, ...]
    merged_pull_requests: int
    merges: int
    parted: str | None


def other_side(merge: MainlineCommit) -> OtherSide:
    """Follow the line of a merge's second parent through the commits that the merge brought."""
    brought = {commit.commit: commit for commit in merge.brought}
    found: list[PullRequest] = []
    merged_requests, merges = 0, 0
    at: str | None = merge.parents[1]
    while at is not None and at in brought:
        commit = brought[at]
        request = pull_request_of(commit.message)
        if request is not None and request not in found:
            found.append(request)
        if any(parent in brought for parent in commit.parents[1:]):
            merges += 1
            merged_requests += request is not None
        at = commit.parents[0] if commit.parents else None
    return OtherSide(tuple(found), merged_requests, merges, at)


class RecentAuthors:
    """Who wrote the last commits of the mainline."""

    def __init__(self) -> None:
        self._commits: deque[tuple[str, str]] = deque(maxlen=WINDOW)

    def add(self, commit: str, author: str) -> None:
        """Note the next commit of the mainline."""
        self._commits.append((commit, author))

    def are_only(self, author: str, since: str | None) -> bool:
        """Whether the mainline has commits behind `since`, and all of them are by this author."""
        for behind, (commit, name) in enumerate(reversed(self._commits)):
            if commit == since:
                return behind > 0
            if name != author:
                return False
        return False
