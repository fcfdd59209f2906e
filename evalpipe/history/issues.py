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
    """One issue or pull request as it was written; `closed_by` is what the forge says closed it."""

    number: int
    kind: TextKind
    title: str
    body: str
    author: str
    created_at: datetime
    closed_by: str | None
    labels: tuple[str, ...]

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
        return sorted({issue for name in names for issue in self._closed.get(name, ())})


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
    created = _field(row, "created_at", str, place)
    try:
        created_at = datetime.fromisoformat(created)
    except ValueError:
        raise IssueTextsInvalid(f"{place}, field 'created_at': {created!r} is no ISO 8601 time") from None
    if created_at.tzinfo is None:
        raise IssueTextsInvalid(f"{place}, field 'created_at': {created!r} has no time zone; write it with Z")
    closed_by = row.get("closed_by")
    labels = row.get("labels") or []
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise IssueTextsInvalid(f"{place}, field 'labels': a list of names is needed")
    return IssueText(
        number=_field(row, "number", int, place),
        kind=TextKind(kind),
        title=_field(row, "title", str, place),
        body=row.get("body") or "",
        author=row.get("author") or "",
        created_at=created_at,
        closed_by=None if closed_by is None else str(closed_by).lstrip("#!"),
        labels=tuple(labels),
    )


def _field(row: dict[str, Any], name: str, wanted: type[Any], place: str) -> Any:
    value = row.get(name)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise IssueTextsInvalid(f"{place}, field {name!r}: a {wanted.__name__} is needed, not {value!r}")
    return value
