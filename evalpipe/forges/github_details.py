"""What only GitHub's GraphQL tells: which pull request or commit closed an issue, and a text as it was at first.

Of an edited text GitHub keeps every version. `includesCreatedEdit` says that the oldest is the one of creation;
`diff` holds the whole text of a version, whatever its name says, and is null when somebody deleted it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from evalpipe.forges.records import read_time

_FIELDS: Final = """
fragment texts on Comment {
  lastEditedAt includesCreatedEdit userContentEdits(last: 1) { nodes { diff deletedAt } }
}
fragment closing on Issue {
  issueRenames: timelineItems(itemTypes: [RENAMED_TITLE_EVENT], first: 1) {
    nodes { ... on RenamedTitleEvent { previousTitle } }
  }
  closings: timelineItems(itemTypes: [CLOSED_EVENT], last: 1) {
    nodes { ... on ClosedEvent { closer {
      ... on PullRequest { number repository { databaseId } }
      ... on Commit { oid }
    } } }
  }
}
fragment closed on PullRequest {
  pullRequestRenames: timelineItems(itemTypes: [RENAMED_TITLE_EVENT], first: 1) {
    nodes { ... on RenamedTitleEvent { previousTitle } }
  }
  closingIssuesReferences(first: 50) { nodes { number repository { databaseId } } }
}
"""


@dataclass(frozen=True, slots=True)
class Details:
    """`first_title` and `first_body` are None where today's text is the first one, or the first one is not known;
    `edited_at` is only set in the latter case. `closer` is a number or a commit."""

    first_title: str | None
    first_body: str | None
    edited_at: datetime | None
    closer: str | None
    closes: tuple[int, ...]


def details_query(numbers: Sequence[int]) -> str:
    """The query for these items of the project whose node id is the variable `id`."""
    items = " ".join(f"n{number}: issueOrPullRequest(number: {number}) {{ ...all }}" for number in numbers)
    return (
        f"query($id: ID!) {{ node(id: $id) {{ ... on Repository {{ {items} }} }} }}\n"
        f"fragment all on IssueOrPullRequest {{ ...texts ...closing ...closed }}{_FIELDS}"
    )


def read_details(data: Any, numbers: Sequence[int], project: int) -> dict[int, Details] | None:
    """The details by number, without the items that are gone; None when this is no answer to the query."""
    try:
        node = data["data"]["node"]
        found = {number: node[f"n{number}"] for number in numbers}
        return {number: _details(value, project) for number, value in found.items() if value is not None}
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None


def _details(value: dict[str, Any], project: int) -> Details:
    renames = _nodes(value, "issueRenames") or _nodes(value, "pullRequestRenames")
    first_body = edited_at = None
    if value["lastEditedAt"] is not None:
        oldest = _nodes(value, "userContentEdits")
        if value["includesCreatedEdit"] and oldest and oldest[0]["deletedAt"] is None:
            first_body = oldest[0]["diff"]
        if first_body is None:
            edited_at = read_time(value["lastEditedAt"])
    closings = _nodes(value, "closings")
    return Details(
        first_title=renames[0]["previousTitle"] if renames else None,
        first_body=first_body,
        edited_at=edited_at,
        closer=_closer(closings[0]["closer"], project) if closings else None,
        closes=tuple(
            sorted(
                issue["number"]
                for issue in _nodes(value, "closingIssuesReferences")
                if issue["repository"]["databaseId"] == project
            )
        ),
    )


def _closer(closer: dict[str, Any] | None, project: int) -> str | None:
    if not closer:
        return None
    if "oid" in closer:
        return str(closer["oid"])
    # A pull request of another project: its number means another one here.
    return str(closer["number"]) if closer["repository"]["databaseId"] == project else None


def _nodes(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The nodes of a connection; those that the token may not see are null."""
    return [node for node in (value.get(name) or {}).get("nodes") or [] if node]
