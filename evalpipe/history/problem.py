"""The text of the problem that a change solves: its issues, else its pull request, else its own messages.

What is used must have existed before the work, so that it cannot tell of the solution: an issue before the
change's first commit, a pull request (which is opened with the work at hand) before its merge. What was edited after
the first commit is not used either, since nobody knows what it said before; an export has the first version where the
forge keeps it.
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
    task_file = auto()
    """A task that the team wrote itself."""


class TextFault(StrEnum):
    """Why a text that a change names is not used."""

    empty = auto()
    created_too_late = auto()
    """After the change's first commit; a pull request's, after the merge."""
    edited_too_late = auto()
    """After the change's first commit, and the export has no earlier version."""


class UnusedText(NamedTuple):
    """An issue or pull request that a change names, whose text is not used."""

    key: str
    fault: TextFault


class Problem(NamedTuple):
    """The text of a problem, where it comes from, and what could not be used before it was looked for there."""

    source: ProblemSource
    text: str
    unused: tuple[UnusedText, ...] = ()


def problem_of(change: Change, links: Iterable[IssueLink], texts: IssueTexts | None) -> Problem:
    """The problem text of a change: all issues that it closes, or else the first one that it mentions, and so on."""
    unused: list[UnusedText] = []
    if texts is not None:
        began = datetime.fromtimestamp(change.began, UTC)
        known: list[tuple[IssueLink, IssueText]] = []
        for link in links:
            text = None if link.number is None else texts.issue(link.number)
            fault = None if text is None else _fault_of(text, began, began)
            if fault is not None:
                unused.append(UnusedText(link.key, fault))
            elif text is not None:
                known.append((link, text))
        chosen = [text for link, text in known if link.strength is LinkStrength.closing]
        if not chosen:
            chosen = [text for _link, text in known[:1]]
        if chosen:
            return Problem(ProblemSource.issue, _joined(chosen), tuple(unused))
        pull_request = texts.pull_request(change.number) if change.number is not None else None
        if pull_request is not None:
            fault = _fault_of(pull_request, began, datetime.fromtimestamp(change.last.commit_time, UTC))
            if fault is None:
                return Problem(ProblemSource.pull_request, pull_request.text, tuple(unused))
            unused.append(UnusedText(f"pull request {pull_request.number}", fault))
    return Problem(ProblemSource.commit_message, _own_words(change), tuple(unused))


def _fault_of(text: IssueText, began: datetime, created_before: datetime) -> TextFault | None:
    if not text.text:
        return TextFault.empty
    if text.created_at >= created_before:
        return TextFault.created_too_late
    if text.edited_at is not None and text.edited_at >= began:
        return TextFault.edited_too_late
    return None


def _joined(texts: Iterable[IssueText]) -> str:
    return "\n\n".join(text.text for text in texts)


def _own_words(change: Change) -> str:
    """What the messages say: the mainline's own, and where that is only a merge's boilerplate, the branch's."""
    words = [description_of(commit.message) for commit in change.commits]
    if not any(words):
        words = [description_of(commit.message) for commit in change.work]
    return "\n\n".join(part for part in words if part)
