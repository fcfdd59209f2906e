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
from evalpipe.history.messages import is_changelog_title, is_release_title, title_of
from evalpipe.history.pull_requests import PullRequest, pull_request_of

# A merger's own unpushed commits are fewer than this; what parted earlier was the team's.
WINDOW: Final = 1000


class OtherSide(NamedTuple):
    """The second parent's own first-parent line, as far as the merge brought it.

    `pull_requests` were merged or squashed there, in order; `length` counts its commits, `merges` those that brought
    further branches to it, `releases` those that say nothing but that a version was released, `changes` those that are
    neither that nor an entry of the changelog; `parted` is the commit where it left what the mainline had, None for an
    unrelated history.
    """

    pull_requests: tuple[PullRequest, ...]
    merged_pull_requests: int
    merges: int
    length: int
    changes: int
    releases: int
    parted: str | None


def other_side(merge: MainlineCommit) -> OtherSide:
    """Follow the line of a merge's second parent through the commits that the merge brought."""
    brought = {commit.commit: commit for commit in merge.brought}
    found: list[PullRequest] = []
    merged_requests, merges, length, changes, releases = 0, 0, 0, 0, 0
    at: str | None = merge.parents[1]
    while at is not None and at in brought:
        commit = brought[at]
        request = pull_request_of(commit.message)
        if request is not None and request not in found:
            found.append(request)
        if any(parent in brought for parent in commit.parents[1:]):
            merges += 1
            merged_requests += request is not None
        length += 1
        title = title_of(commit.message)
        is_release = is_release_title(title)
        releases += is_release
        changes += not (is_release or is_changelog_title(title))
        at = commit.parents[0] if commit.parents else None
    return OtherSide(tuple(found), merged_requests, merges, length, changes, releases, at)


def brings_pull_requests(merge: MainlineCommit) -> bool:
    """Whether two or more pull requests, by more than one author, are among all commits that a merge brought.

    By one author alone they may be issues: people write `(#12)` behind a subject for those too.
    """
    if len(merge.brought) < 2:
        return False
    found = {request: commit.author for commit in merge.brought if (request := pull_request_of(commit.message))}
    return len(found) > 1 and len(set(found.values())) > 1


class RecentAuthors:
    """Who wrote the last commits of the mainline."""

    def __init__(self) -> None:
        # With each commit its second parent, and the first parents of what it brought.
        self._commits: deque[tuple[str, str, str | None, dict[str, str | None]]] = deque(maxlen=WINDOW)

    def add(self, commit: str, author: str, merge: MainlineCommit | None = None) -> None:
        """Note the next commit of the mainline."""
        second: str | None = None
        line: dict[str, str | None] = {}
        if merge is not None and merge.brought:
            second = merge.parents[1]
            line = {one.commit: one.parents[0] if one.parents else None for one in merge.brought}
        self._commits.append((commit, author, second, line))

    def are_only(self, author: str, since: str | None) -> bool:
        """Whether the mainline has commits behind `since`, and all of them are by this author.

        `since` may have come to the mainline by a merge; then what the merge met on the mainline counts too.
        """
        for behind, (commit, name, second, line) in enumerate(reversed(self._commits)):
            if commit == since:
                return behind > 0
            if name != author:
                return False
            if since in line:
                since = second
                while since is not None and since in line:
                    since = line[since]
        return False
