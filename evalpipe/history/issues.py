"""Which issues a change belongs to, and the text of the problem that it solves.

Links are looked for where teams really write them (the merge message, the branch's commits, the changelog's
added lines, the pull request) and each keeps where it was found and how strong it is. Texts come from an
offline export.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, auto
from pathlib import Path
from typing import Any, Final

from evalpipe.history.errors import IssueTextsInvalid


class LinkPlace(StrEnum):
    """Where a link was found, best evidence first."""

    merge_message = auto()
    pull_request = auto()
    branch_commit = auto()
    changelog = auto()


class LinkStrength(StrEnum):
    """How strong a link is, strongest first."""

    closing = auto()
    """The text says that the change closes, fixes or resolves it."""
    mention = auto()


@dataclass(frozen=True, slots=True)
class IssueLink:
    """One issue that a change names: `key` as people write it (`#12`, `!12`, `other/project#12`).

    `number` is its number among this repository's own issues; None for a merge request and for another
    tracker's.
    """

    key: str
    number: int | None
    found_in: LinkPlace
    strength: LinkStrength


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


_NUMBER: Final = r"[1-9]\d{0,6}"
_PROJECT: Final = r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)+"
_REFERENCE: Final = (
    rf"(?:https?://[\w.:-]+/(?P<url_project>{_PROJECT}?)(?:/-)?/(?P<url_kind>issues|pull|pulls|merge_requests|work_items)"
    rf"/(?P<url_number>{_NUMBER})\b"
    rf"|(?<![\w/&#])(?:(?P<project>{_PROJECT}))?(?P<sign>[#!])(?P<number>{_NUMBER})(?![\w-])"
    rf"|\bGH-(?P<gh_number>{_NUMBER})\b"
    rf"|:(?:gh)?issue:`(?P<role_number>{_NUMBER})`)"
)
_NUMBER_GROUPS: Final = ("url_number", "number", "gh_number", "role_number")
_ANY_REFERENCE: Final = re.compile(_REFERENCE)
# GitLab's list of words, which contains GitHub's.
_CLOSING: Final = re.compile(
    r"(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)\b:?\s*"
    r"(?:issues?\s*|bugs?\s*)?"
)
_BETWEEN: Final = re.compile(r"(?i)(?:\s*(?:,|&|\band\b)\s*)+")


def links_in(text: str, place: LinkPlace, repository: str, own_number: int | None) -> Iterator[IssueLink]:
    """Every issue that a text names, in order, with how strongly; the change's own number is left out.

    A project in front of the number (`owner/repo#3`, a URL) is this repository's own when its last part is
    the repository's name.
    """
    closing_until = -1
    closings = {found.end() for found in _CLOSING.finditer(text)}
    for found in _ANY_REFERENCE.finditer(text):
        start = found.start()
        is_closing = start in closings
        if not is_closing and closing_until >= 0:
            is_closing = _BETWEEN.fullmatch(text, closing_until, start) is not None
        closing_until = found.end() if is_closing else -1
        strength = LinkStrength.closing if is_closing else LinkStrength.mention
        number = int(next(found[name] for name in _NUMBER_GROUPS if found[name]))
        sign = "!" if found["sign"] == "!" or found["url_kind"] == "merge_requests" else "#"
        project = found["url_project"] or found["project"]
        if project is not None and project.rpartition("/")[2].lower() != repository.lower():
            yield IssueLink(f"{project}{sign}{number}", None, place, strength)
        elif number != own_number:
            yield IssueLink(f"{sign}{number}", number if sign == "#" else None, place, strength)


def strongest(links: Iterable[IssueLink]) -> tuple[IssueLink, ...]:
    """One link for each issue, the strongest and best placed; closing ones first, otherwise in order of place."""
    strengths, places = list(LinkStrength), list(LinkPlace)
    ordered = sorted(links, key=lambda link: (strengths.index(link.strength), places.index(link.found_in)))
    chosen: dict[str, IssueLink] = {}
    for link in ordered:
        chosen.setdefault(link.key, link)
    return tuple(chosen.values())
