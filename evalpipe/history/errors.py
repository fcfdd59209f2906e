"""What can go wrong while reading a history; every message names the thing and says what to do about it."""

from __future__ import annotations


class HistoryError(Exception):
    """A history cannot be read; base class of everything that this folder raises on purpose."""


class NotARepository(HistoryError):
    """The path or URL is not a git repository."""


class EmptyRepository(HistoryError):
    """The repository has no branch with a commit."""


class ShallowRepository(HistoryError):
    """The repository is a shallow clone, so its history is cut off somewhere."""


class MainlineMissing(HistoryError):
    """The branch that should be mined does not exist."""


class MainlineRewritten(HistoryError):
    """The commit from which mining should go on is not on the mainline any more."""


class SourceUnreachable(HistoryError):
    """The source exists by name, but its branches could not be fetched."""


class CommitMissing(HistoryError):
    """A commit or tree that was asked for is not in the repository."""


class ObjectMissing(HistoryError):
    """An object that was asked for, or that git needed, is not in the repository: a partial or damaged clone."""


class TreeNotWritten(HistoryError):
    """Git refuses to build the tree that was asked for, for example because of an unsafe path."""


class PatchDoesNotApply(HistoryError):
    """`git apply` refused the patch; nothing was changed."""


class GitFailed(HistoryError):
    """A git process failed in a way that has no name of its own here; the message is git's own."""


class IssueTextsInvalid(HistoryError):
    """The export of issues cannot be read; the message names file, line and field."""
