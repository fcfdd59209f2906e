"""Which issues a change belongs to, read out of the texts that a team wrote about it.

Links are looked for where teams really write them (the merge message, the branch's commits, the changelog's
added lines, the pull request) and each keeps where it was found and how strong it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import lru_cache
from typing import Final


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
    """One issue that a change names: `key` as people write it (`#12`, `!12`, `other/project#12`, `ABC-12`).

    `number` is its number among this repository's own issues; None for a merge request and for another
    tracker's.
    """

    key: str
    number: int | None
    found_in: LinkPlace
    strength: LinkStrength


_NUMBER: Final = r"[1-9]\d{0,6}"
_PROJECT: Final = r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)+"
_REFERENCE: Final = (
    rf"https?://[\w.:-]+/(?P<url_project>{_PROJECT}?)(?:/-)?"
    r"/(?P<url_kind>issues|pull|pulls|pull-requests|merge_requests|work_items|_workitems/edit)"
    rf"/(?P<url_number>{_NUMBER})\b"
    rf"|(?<![\w/&#])(?:(?P<project>{_PROJECT}))?(?P<sign>[#!])(?P<number>{_NUMBER})(?![\w-])"
    rf"|\bGH-(?P<gh_number>{_NUMBER})\b"
    rf"|:(?:gh)?issue:`(?P<role_number>{_NUMBER})`"
)
_SIGN: Final = re.compile(r"[#!]|GH-|://|issue:`")
# Lines that name the pull request itself.
_OF_ITSELF: Final = re.compile(r"(?m)^(?:GitHub-Pull-Request|Pull Request resolved|PR-URL|Reviewed-on): \S+[ \t]*$")
_NUMBER_GROUPS: Final = ("url_number", "number", "gh_number", "role_number")
_MERGE_REQUEST_KINDS: Final = ("merge_requests", "pull-requests")
# GitLab's list of words, which contains GitHub's.
_CLOSING: Final = re.compile(
    r"(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?"
    r"|solv(?:e[sd]?|ing))(?:-bug)?\b:?\s*(?:for\s+)?(?:(?:this|the|an?)\s+)?(?:issues?:?\s*|bugs?:?\s*|GH\s+)?\[?"
)
_BETWEEN: Final = re.compile(r"(?i)\]?(?:(?:\s*(?:,|&|\band\b)\s*)+|[ \t]+)(?:GH\s+)?\[?")
# Gerrit's and Chromium's footers, where a bare number is an issue and `tracker:12` is another tracker's.
_FOOTER: Final = re.compile(
    r"(?im)^(?P<word>bugs?|issues?|fix(?:es|ed)?|closes)[ \t]*[:=][ \t]*"
    rf"(?P<values>(?:[a-z][\w-]*[:/])?{_NUMBER}(?:[ \t]*,?[ \t]+(?:[a-z][\w-]*[:/])?{_NUMBER}|,{_NUMBER})*)[ \t]*$"
)


def links_in(
    text: str, place: LinkPlace, repository: str, own_reference: str | None, jira_projects: Sequence[str] = ()
) -> Iterator[IssueLink]:
    """Every issue that a text names, in order of form and place, with how strongly.

    `own_reference` is how the change itself is referred to (`#12`), which is no link. A project in front of the number
    (`owner/repo#3`, a URL) is this repository's own when its last part is the repository's name. Keys such as `ABC-12`
    are links for the projects that are named only.
    """
    if jira_projects or "#" in text or "!" in text or "GH-" in text or "://" in text or "issue:`" in text:
        yield from _references_in(text, place, repository, own_reference, tuple(jira_projects))
    if "ug" in text or "UG" in text or "ssue" in text or "ix" in text or "lose" in text:
        yield from _footers_in(text, place)


def _references_in(
    text: str, place: LinkPlace, repository: str, own_reference: str | None, jira_projects: tuple[str, ...]
) -> Iterator[IssueLink]:
    if "Pull" in text or "PR-URL" in text or "Reviewed-on" in text:
        text = _OF_ITSELF.sub("", text)
    references = list(_found_references(text, jira_projects))
    if not references:
        return
    closing_until = -1
    closings = {found.end() for found in _CLOSING.finditer(text)} if _may_close(text) else set()
    for found in references:
        start = found.start()
        is_closing = start in closings
        if not is_closing and closing_until >= 0:
            is_closing = _BETWEEN.fullmatch(text, closing_until, start) is not None
        closing_until = found.end() if is_closing else -1
        strength = LinkStrength.closing if is_closing else LinkStrength.mention
        link = _link_of(found, place, strength, repository)
        if link.key != own_reference:
            yield link


def _found_references(text: str, jira_projects: tuple[str, ...]) -> Iterator[re.Match[str]]:
    """All references, which stand in one line each; a line without a sign of one is passed over."""
    pattern = _references(jira_projects)
    if jira_projects:
        yield from pattern.finditer(text)
        return
    end = 0
    while sign := _SIGN.search(text, end):
        end = text.find("\n", sign.end())
        end = len(text) if end < 0 else end
        yield from pattern.finditer(text, text.rfind("\n", 0, sign.start()) + 1, end)


def _may_close(text: str) -> bool:
    lowered = text.lower()
    return "clos" in lowered or "fix" in lowered or "solv" in lowered or "implement" in lowered


def _footers_in(text: str, place: LinkPlace) -> Iterator[IssueLink]:
    for footer in _FOOTER.finditer(text):
        closes = footer["word"].lower().startswith(("fix", "clos"))
        strength = LinkStrength.closing if closes else LinkStrength.mention
        for value in re.split(r"[ \t,]+", footer["values"]):
            number = int(value) if value.isdecimal() else None
            yield IssueLink(value if number is None else f"#{number}", number, place, strength)


def _link_of(found: re.Match[str], place: LinkPlace, strength: LinkStrength, repository: str) -> IssueLink:
    if found["jira"]:
        return IssueLink(found["jira"], None, place, strength)
    number = int(next(found[name] for name in _NUMBER_GROUPS if found[name]))
    sign = "!" if found["sign"] == "!" or found["url_kind"] in _MERGE_REQUEST_KINDS else "#"
    project = found["url_project"] or found["project"]
    if project is not None and project.rpartition("/")[2].lower() != repository.lower():
        return IssueLink(f"{project}{sign}{number}", None, place, strength)
    return IssueLink(f"{sign}{number}", number if sign == "#" else None, place, strength)


@lru_cache(maxsize=64)
def _references(jira_projects: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, jira_projects)) or "(?!)"
    return re.compile(
        rf"(?:{_REFERENCE}|(?<![\w-])(?:https?://[\w.:-]+/(?:[\w.-]+/)?browse/)?(?P<jira>(?:{names})-{_NUMBER})\b)"
    )


def strongest(links: Sequence[IssueLink]) -> tuple[IssueLink, ...]:
    """One link for each issue, the strongest and best placed; closing ones first, otherwise in order of place."""
    if len(links) < 2:
        return tuple(links)
    chosen: dict[str, IssueLink] = {}
    for link in sorted(links, key=lambda link: (_STRENGTHS[link.strength], _PLACES[link.found_in])):
        chosen.setdefault(link.key, link)
    return tuple(chosen.values())


_STRENGTHS: Final = {strength: place for place, strength in enumerate(LinkStrength)}
_PLACES: Final = {found_in: place for place, found_in in enumerate(LinkPlace)}
