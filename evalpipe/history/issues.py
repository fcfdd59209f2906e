"""The texts of a tracker, from an offline export: issues and pull requests, by number.

Links to them are found in `links`; which of the texts states a change's problem is decided in `problem`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, auto
from pathlib import Path
from typing import Any

from evalpipe.history.errors import IssueTextsInvalid


class TextKind(StrEnum):
    """What a text of the export is."""

    issue = auto()
    pull_request = auto()


@dataclass(frozen=True, slots=True)
class IssueText:
    """One issue or pull request.

    The text is as it was written, unless `edited_at` has a time: then it is as it was at that time, and what it said
    before is not known. `closed_by` is what the forge says closed it, `closes` the issues that this pull request
    closes by its word.
    """

    number: int
    kind: TextKind
    title: str
    body: str
    author: str
    created_at: datetime
    closed_by: str | None
    labels: tuple[str, ...]
    edited_at: datetime | None = None
    closes: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """Title and body, as a reader sees them."""
        return f"{self.title}\n\n{self.body}".strip()


class IssueTexts:
    """The issues and pull requests of one repository's tracker, by number."""

    def __init__(self, texts: Iterable[IssueText]) -> None:
        self._texts = {(text.kind, text.number): text for text in texts}
        self._closed: dict[str, list[int]] = {}
        for text in self._texts.values():
            if text.kind is TextKind.issue and text.closed_by is not None:
                self._closed.setdefault(text.closed_by, []).append(text.number)

    @classmethod
    def load(cls, path: Path) -> IssueTexts:
        """Read a JSONL export; raises IssueTextsInvalid, which names file, line and field."""
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            raise IssueTextsInvalid(f"{path} does not exist; export the issues there or unset it") from None
        except UnicodeDecodeError as error:
            raise IssueTextsInvalid(f"{path} is not UTF-8 text: {error}") from None
        return cls(_parsed(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip())

    def issue(self, number: int) -> IssueText | None:
        """The issue of this number."""
        return self._texts.get((TextKind.issue, number))

    def pull_request(self, number: int) -> IssueText | None:
        """The pull request of this number."""
        return self._texts.get((TextKind.pull_request, number))

    def closed_by(self, number: int | None, commits: Iterable[str]) -> list[int]:
        """Issues that the tracker says were closed by this pull request or one of these commits."""
        names = [*([] if number is None else [str(number)]), *commits]
        pull_request = None if number is None else self.pull_request(number)
        found = {issue for name in names for issue in self._closed.get(name, ())}
        return sorted(found.union(() if pull_request is None else pull_request.closes))


def _parsed(line: str, place: str) -> IssueText:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise IssueTextsInvalid(f"{place}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise IssueTextsInvalid(f"{place}: a line is one JSON object")
    kind = _field(row, "kind", str, place)
    if kind not in list(TextKind):
        raise IssueTextsInvalid(f"{place}, field 'kind': {kind!r} is not one of {', '.join(TextKind)}")
    closed_by = row.get("closed_by")
    labels = row.get("labels") or []
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise IssueTextsInvalid(f"{place}, field 'labels': a list of names is needed")
    closes = row.get("closes") or []
    if not isinstance(closes, list) or not all(type(number) is int for number in closes):
        raise IssueTextsInvalid(f"{place}, field 'closes': a list of numbers is needed")
    return IssueText(
        number=_field(row, "number", int, place),
        kind=TextKind(kind),
        title=_field(row, "title", str, place),
        body=(row.get("body") or "").replace("\r\n", "\n"),
        author=row.get("author") or "",
        created_at=_time(row, "created_at", place),
        closed_by=None if closed_by is None else str(closed_by).lstrip("#!"),
        labels=tuple(labels),
        edited_at=None if row.get("edited_at") is None else _time(row, "edited_at", place),
        closes=tuple(closes),
    )


def _time(row: dict[str, Any], name: str, place: str) -> datetime:
    value = _field(row, name, str, place)
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise IssueTextsInvalid(f"{place}, field {name!r}: {value!r} is no ISO 8601 time") from None
    if found.tzinfo is None:
        raise IssueTextsInvalid(f"{place}, field {name!r}: {value!r} has no time zone; write it with Z")
    return found


def _field(row: dict[str, Any], name: str, wanted: type[Any], place: str) -> Any:
    value = row.get(name)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise IssueTextsInvalid(f"{place}, field {name!r}: a {wanted.__name__} is needed, not {value!r}")
    return value
