"""GitLab, on gitlab.com and self-hosted, over REST (v4), with python-gitlab as the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, quote

import requests
from gitlab import Gitlab
from gitlab.exceptions import GitlabError

from evalpipe.forges.outcome import (
    PAGE,
    TIMEOUT,
    Answer,
    Outcome,
    Place,
    Refusal,
    Trouble,
    TroubleKind,
    below,
    certificates,
    lowered,
    refused,
    trouble_of,
    unexpected,
)
from evalpipe.forges.patience import Patience
from evalpipe.forges.records import (
    Completed,
    Item,
    Kind,
    Page,
    Project,
    Row,
    Stream,
    read_time,
    text_of,
    written,
)

_AGENT: Final = "evalpipe"
_FOLDERS: Final = {Stream.gitlab_issues: "issues", Stream.gitlab_merge_requests: "merge_requests"}
_NAMES: Final = {Kind.issue: "issues", Kind.pull_request: "merge_requests"}
_KINDS: Final = {Stream.gitlab_issues: Kind.issue, Stream.gitlab_merge_requests: Kind.pull_request}
# The notes that GitLab writes itself when the text was changed.
_EDITS: Final = ("changed the description", "changed title")
_SAME_MOMENT: Final = timedelta(seconds=1)


class GitLabForge:
    """A project on GitLab. Close it, or use it as a context manager."""

    def __init__(self, path: str, patience: Patience) -> None:
        self._path = path
        self._patience = patience
        self._place = patience.place
        token = self._place.token
        self._session = _Session()
        self._client = Gitlab(
            self._place.address,
            private_token=None if token is None else token.value,
            ssl_verify=certificates(),
            timeout=TIMEOUT,
            user_agent=_AGENT,
            session=self._session,
        )
        self._id = 0
        self._has_details = True

    def __enter__(self) -> GitLabForge:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    @property
    def identity(self) -> Row:
        return {
            "kind": "gitlab",
            "url": self._place.address,
            "project": self._id,
            "details": self._place.token is not None,
        }

    def project(self) -> Project:
        what = f"the project {self._path}"
        outcome = self._ask(f"/projects/{quote(self._path, safe='')}", {}, what)
        if isinstance(outcome, Refusal) and outcome.status in (301, 302, 307, 308):
            # A renamed project; followed once, and only where the token goes anyway.
            target = below(self._client.api_url, outcome.headers.get("location", ""))
            outcome = outcome if target is None else self._ask(target, {}, what)
        if isinstance(outcome, Refusal):
            raise refused(outcome, self._place, what)
        match outcome.data:
            case {"id": int(number), "path_with_namespace": str(path)}:
                self._id = number
            case _:
                raise unexpected(self._place, what)
        if self._place.token is None:
            self._patience.say(f"without a token ({self._place.variable}) GitLab shows public items alone")
        streams = [
            stream
            for stream, folder in _FOLDERS.items()
            if outcome.data.get(f"{folder}_access_level", "enabled") != "disabled"
        ]
        return Project(number, path, tuple(streams))

    def page(self, stream: Stream, since: datetime | None, query: str | None) -> Page:
        folder = _FOLDERS[stream]
        what = f"the {folder.replace('_', ' ')} of {self._path}"
        parameters = {"scope": "all", "state": "all", "order_by": "updated_at", "sort": "asc", "per_page": str(PAGE)}
        if since is not None:
            parameters["updated_after"] = written(since)
        if query is not None:
            parameters = dict(parse_qsl(query))
        outcome = self._ask(f"/projects/{self._id}/{folder}", parameters, what)
        if isinstance(outcome, Refusal):
            raise refused(outcome, self._place, what)
        if not isinstance(outcome.data, list):
            raise unexpected(self._place, what)
        items = [_item(value, _KINDS[stream]) for value in outcome.data]
        good = [item for item in items if item is not None]
        if len(good) < len(items):
            raise unexpected(self._place, what)
        return Page(good, outcome.next_query)

    def complete(self, items: Sequence[Item]) -> Completed:
        rows: list[Row] = []
        gone: list[tuple[Kind, int]] = []
        for item in items:
            try:
                rows.append(self._completed(item))
            except _Gone:
                gone.append((item.kind, item.number))
            except (KeyError, TypeError, ValueError):
                raise unexpected(self._place, f"{_NAMES[item.kind]}/{item.number} of {self._path}") from None
        return Completed(rows, gone)

    def _completed(self, item: Item) -> Row:
        row = dict(item.row)
        if self._has_details:
            edits = self._edits(item) if item.updated_at - item.created_at > _SAME_MOMENT else []
            if edits is not None:
                row["edited_at"] = written(max(edits)) if edits else None
        if self._has_details and item.closed and item.has_closers and item.kind is Kind.issue:
            row["closed_by"] = self._closer(item)
        return row

    def _edits(self, item: Item) -> list[datetime] | None:
        """When the text was changed; None when GitLab does not tell without a token."""
        # Oldest first: a page that shifts can only repeat a note.
        query = {"activity_filter": "only_activity", "order_by": "created_at", "sort": "asc", "per_page": str(PAGE)}
        notes = self._below(item, "notes", query)
        return None if notes is None else [read_time(note["created_at"]) for note in notes if _is_edit(note)]

    def _closer(self, item: Item) -> str | None:
        """The merge request that closed an issue: of those that were to close it, the one merged last."""
        merged = [
            (read_time(found["merged_at"]), int(found["iid"]))
            for found in self._below(item, "closed_by", {"per_page": str(PAGE)}) or ()
            if found["merged_at"] and found["project_id"] == self._id
        ]
        return str(max(merged)[1]) if merged else None

    def _below(self, item: Item, name: str, query: Mapping[str, str]) -> list[dict[str, Any]] | None:
        """A whole list below an item; None when GitLab wants a token for it. Raises _Gone."""
        sign = "#" if item.kind is Kind.issue else "!"
        what = f"{name} of {self._path}{sign}{item.number}"
        found: list[dict[str, Any]] = []
        parameters: Mapping[str, str] | None = query
        while parameters is not None:
            address = f"/projects/{self._id}/{_NAMES[item.kind]}/{item.number}/{name}"
            outcome = self._ask(address, parameters, what)
            if isinstance(outcome, Refusal):
                if outcome.status in (404, 410):
                    raise _Gone
                if outcome.status != 401 or self._place.token is not None:
                    raise refused(outcome, self._place, what)
                self._has_details = False
                self._patience.say(f"without a token GitLab does not tell the {what}, nor of any other item")
                return None
            found += _entries(outcome.data, self._place, what)
            parameters = None if outcome.next_query is None else dict(parse_qsl(outcome.next_query))
        return found

    def _ask(self, address: str, parameters: Mapping[str, str], what: str) -> Answer | Refusal:
        return self._patience.ask(lambda: self._attempt(address, dict(parameters)), what)

    def _attempt(self, address: str, parameters: dict[str, Any]) -> Outcome:
        # No error of the library goes on from here, not even as a cause: what it holds is not ours to vouch for.
        try:
            # Waiting is Patience's: the library's own would sleep for an hour without a word.
            response = self._client.http_request("get", address, parameters, obey_rate_limit=False)
            return Answer(response.json(), lowered(response.headers))
        except requests.exceptions.JSONDecodeError:
            return Trouble(TroubleKind.not_json)
        except GitlabError as error:
            status, said = error.response_code or 0, error.error_message
        except OSError as error:
            return trouble_of(error)
        return Refusal(status, self._session.last_headers, said if isinstance(said, str) else "")


class _Session(requests.Session):
    """Follows no redirect, since the token's header would go along to any host; and asks no .netrc for a login."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = _unchanged
        self.last_headers: dict[str, str] = {}

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        return None

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        # The library's errors do not hold the headers, and those say how long a rate limit lasts.
        self.last_headers = {}
        response = super().send(request, **options)
        self.last_headers = lowered(response.headers)
        return response


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


class _Gone(Exception):
    """An item is not there any more, or not for this token."""


def _is_edit(note: dict[str, Any]) -> bool:
    return bool(note.get("system")) and str(note.get("body", "")).startswith(_EDITS)


def _entries(data: Any, place: Place, what: str) -> list[dict[str, Any]]:
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
        raise unexpected(place, what)
    return data


def _item(value: Any, kind: Kind) -> Item | None:
    """An item of a list, None when it is none."""
    try:
        number = int(value["iid"])
        created_at, updated_at = read_time(value["created_at"]), read_time(value["updated_at"])
        row: Row = {
            "number": number,
            "kind": kind.value,
            "title": text_of(value["title"]),
            "body": text_of(value["description"]),
            "author": text_of((value["author"] or {}).get("username")),
            "created_at": written(created_at),
            "labels": sorted(text_of(label) for label in value["labels"]),
            "closed_by": None,
        }
        closers = value.get("merge_requests_count")
        return Item(kind, number, created_at, updated_at, row, value["state"] == "closed", closers != 0)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
