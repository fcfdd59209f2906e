"""What is read from a forge: an item as a list shows it, and its finished line in the export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum, auto
from typing import Any, Protocol

Row = dict[str, Any]
"""A line of the export; its fields are those of docs/issues.md."""


class Kind(StrEnum):
    """What an item is; a merge request is a pull request."""

    issue = auto()
    pull_request = auto()


class Stream(StrEnum):
    """A list that a forge gives."""

    github_issues = auto()
    """Issues and pull requests, which GitHub numbers and lists together."""
    github_pull_requests = auto()
    """Pull requests alone, of a project whose issues are turned off. It cannot be asked for what changed."""
    gitlab_issues = auto()
    gitlab_merge_requests = auto()

    @property
    def by_update(self) -> bool:
        """Whether the list begins at a time of update and is ordered by it."""
        return self is not Stream.github_pull_requests


@dataclass(frozen=True, slots=True)
class Project:
    """A project as the forge knows it. `path` is its path now, which is not the one asked for after a renaming."""

    id: int
    path: str
    streams: tuple[Stream, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """An issue or pull request as a list shows it; `row` lacks what only a further look can tell."""

    kind: Kind
    number: int
    created_at: datetime
    updated_at: datetime
    row: Row
    closed: bool
    has_closers: bool


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list. `next_query` asks for the next part, None after the last."""

    items: Sequence[Item]
    next_query: str | None


@dataclass(frozen=True, slots=True)
class Completed:
    """Finished lines, and items that were there in the list and are not any more."""

    rows: Sequence[Row]
    gone: Sequence[tuple[Kind, int]]


class Forge(Protocol):
    """A project's texts on a forge."""

    @property
    def identity(self) -> Row:
        """What the texts depend on; texts read under another identity are not continued."""

    def project(self) -> Project:
        """Look the project up; call it before anything else. Raises ForgeError, as all methods do."""

    def page(self, stream: Stream, since: datetime | None, query: str | None) -> Page:
        """A part of a list: the first one of what was updated at `since` or later, or the one that `query` asks for."""

    def complete(self, items: Sequence[Item]) -> Completed:
        """Look up what lists do not tell: what closed an issue, and the text as it was at first."""


def read_time(text: str) -> datetime:
    """A time of a forge, in UTC. Raises ValueError without a time zone."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return found.astimezone(UTC)


def written(time: datetime) -> str:
    """A time as the export and the forges have it: UTC with Z, to the second or the microsecond."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def text_of(value: object) -> str:
    """A text as it can be stored: empty for null, with a mark for halves of characters, which UTF-8 cannot hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
