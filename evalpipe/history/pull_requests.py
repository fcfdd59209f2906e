"""Which pull request a commit message was written for, by the habit of each forge and review tool.

A number means something in its own forge only: pull request 12 of Bitbucket and the squash (#12) that came after the
move to GitHub are two changes, so a number always goes with its form.
"""

from __future__ import annotations

import re
from enum import StrEnum, auto
from typing import Final, NamedTuple


class Forge(StrEnum):
    """Whose numbers they are. Forges that count issues and pull requests together write both as `#N`."""

    github = auto()
    """GitHub, Gitea, Forgejo, bors: one count for issues and pull requests."""
    gitlab = auto()
    bitbucket = auto()
    azure_devops = auto()
    gerrit = auto()
    phabricator = auto()

    # Enum's own hash is slow Python, and every change is looked up by its number.
    __hash__ = str.__hash__


class PullRequest(NamedTuple):
    """A pull or merge request, or a reviewed change, by its forge and number there."""

    forge: Forge
    number: int

    @property
    def own_reference(self) -> str | None:
        """How texts of this forge refer to it (`#12`, `!12`); None where nothing of that form can mean it."""
        if self.forge is Forge.github:
            return f"#{self.number}"
        return f"!{self.number}" if self.forge in (Forge.gitlab, Forge.azure_devops) else None


_OF_MERGES: Final = tuple(
    (forge, re.compile(pattern))
    for forge, pattern in (
        (Forge.bitbucket, r"Merge pull request #(\d+) in "),  # Bitbucket Server, "in PROJECT/repo from"
        (Forge.github, r"Merge pull request #(\d+) from "),
        (Forge.azure_devops, r"Merge pull request (\d+) from \S+ into "),  # merged without squash
        (Forge.github, r"Merge pull request '.*' \([#!](\d+)\) from "),  # Gitea, Forgejo
        (Forge.bitbucket, r"Merged in \S+ \(pull request #(\d+)\)"),  # Bitbucket Cloud
        (Forge.bitbucket, r"Pull request #(\d+): "),  # Bitbucket Server, squashed
        (Forge.azure_devops, r"Merged PR (\d+): "),
        (Forge.github, r"(?:(?:Auto|Rollup) merge of|Merge(?: PR)?) #(\d+)\b"),  # bors and homu; scripts of teams
    )
)
# GitHub, squashed; GH- as CPython wrote it.
_AT_END: Final = re.compile(r"\((?:#|GH-)(\d+)\)\s*\Z")
# GitLab, where its template for squashes says so.
_MERGE_REQUEST_AT_END: Final = re.compile(r"\((?:[\w.][\w./-]*)?!(\d+)\)\s*\Z")
# Of several lines of one form the last is the message's own: an earlier one was quoted, or is what it was
# picked from.
_IN_TRAILER: Final = tuple(
    (forge, word, re.compile(rf"(?m)^{pattern}[ \t]*$"))
    for forge, word, pattern in (
        (
            Forge.gitlab,
            "See merge request",
            r"See merge request (?:(?:[\w.][\w./-]*)?!|https?://\S+?/merge_requests/)(\d+)",
        ),
        (Forge.gitlab, "Part-of:", r"Part-of: <?https?://\S+?/merge_requests/(\d+)>?"),  # marge-bot's rebase
        (Forge.github, "PR-URL:", r"PR-URL: https?://\S+?/pulls?/(\d+)\S*"),  # Node.js
        (Forge.github, "Reviewed-on:", r"Reviewed-on: https?://\S+?/pulls/(\d+)"),  # Gitea, squashed
        (Forge.gerrit, "Reviewed-on:", r"Reviewed-on: https?://\S+?/(\d+)(?:/\d+)?/?"),  # perhaps with the patch set
        (
            Forge.phabricator,
            "Differential Revision:",
            r"(?:Summary: .*)?Differential Revision: (?:https?://\S+?/)?D(\d+)",
        ),
        (Forge.phabricator, "FB internal diff:", r"FB internal diff:[ \t]*D(\d+)"),  # folly until 2015
    )
)
# What Phabricator took over from a pull request, perhaps of another repository than the one it lands in.
_RESOLVED: Final = re.compile(r"Pull Request resolved: https?://[\w.-]+/[\w.-]+/([\w.-]+)/pull/\d+")
_CHANGE_ID: Final = re.compile(r"(?m)^Change-Id: (I[0-9a-f]{8,40})[ \t]*$")


def pull_request_of(message: str, repository: str | None = None) -> PullRequest | None:
    """The pull or merge request that the message was made for, in any form of the known forges.

    A `(#12)` that another repository than the named one counts is none.
    """
    subject = message.lstrip("\n").partition("\n")[0]
    if subject.startswith(("Merge", "Pull request", "Auto merge", "Rollup merge")):
        for forge, pattern in _OF_MERGES:
            found = pattern.match(subject)
            if found:
                return PullRequest(forge, int(found[1]))
    if subject.rstrip().endswith(")"):
        found = _AT_END.search(subject)
        if found and not _is_of_another(message, repository):
            return PullRequest(Forge.github, int(found[1]))
    for forge, word, pattern in _IN_TRAILER:
        if word in message:
            numbers = pattern.findall(message)
            if numbers:
                return PullRequest(forge, int(numbers[-1]))
    # Last, because Gitea writes it too where the issues are kept elsewhere.
    found = _MERGE_REQUEST_AT_END.search(subject) if "!" in subject else None
    return None if found is None else PullRequest(Forge.gitlab, int(found[1]))


def _is_of_another(message: str, repository: str | None) -> bool:
    if repository is None or "Pull Request resolved:" not in message:
        return False
    found = _RESOLVED.search(message)
    return found is not None and found[1].lower() != repository.lower()


def change_id_of(message: str) -> str | None:
    """Gerrit's Change-Id, which stays when a change is picked or landed again; the last one is the message's own."""
    found = _CHANGE_ID.findall(message) if "Change-Id:" in message else ()
    return found[-1] if found else None
