"""The text of the problem that a change solves: its issues, else its pull request, else its own messages.

What is used must have existed before the work, so that it cannot tell of the solution: an issue before the
change's first commit, a pull request (which is opened with the work at hand) before its merge.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum, auto
from typing import NamedTuple

from evalpipe.history.issues import IssueText, IssueTexts
from evalpipe.history.links import IssueLink, LinkStrength
from evalpipe.history.messages import description_of
from evalpipe.history.shapes import Change


class ProblemSource(StrEnum):
    """Where the text of a problem comes from."""

    issue = auto()
    pull_request = auto()
    commit_message = auto()


class Problem(NamedTuple):
    """The text of a problem and where it comes from."""

    source: ProblemSource
    text: str


def problem_of(change: Change, links: Iterable[IssueLink], texts: IssueTexts | None) -> Problem:
    """The problem text of a change: all issues that it closes, or else the first one that it mentions, and so on."""
    if texts is not None:
        began = datetime.fromtimestamp(change.began, UTC)
        known = [
            (link, text)
            for link in links
            if link.number is not None
            and (text := texts.issue(link.number)) is not None
            and text.created_at < began
            and text.text
        ]
        chosen = [text for link, text in known if link.strength is LinkStrength.closing]
        if not chosen:
            chosen = [text for _link, text in known[:1]]
        if chosen:
            return Problem(ProblemSource.issue, _joined(chosen))
        pull_request = texts.pull_request(change.number) if change.number is not None else None
        if (
            pull_request is not None
            and pull_request.text
            and pull_request.created_at < datetime.fromtimestamp(change.last.commit_time, UTC)
        ):
            return Problem(ProblemSource.pull_request, pull_request.text)
    return Problem(ProblemSource.commit_message, _own_words(change))


def _joined(texts: Iterable[IssueText]) -> str:
    return "\n\n".join(text.text for text in texts)


def _own_words(change: Change) -> str:
    """What the messages say: the mainline's own, and where that is only a merge's boilerplate, the branch's."""
    words = [description_of(commit.message) for commit in change.commits]
    if not any(words):
        words = [description_of(commit.message) for commit in change.work]
    return "\n\n".join(part for part in words if part)
