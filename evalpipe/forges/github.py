"""GitHub, on github.com and self-hosted: lists over REST and details over GraphQL, with PyGithub as the client."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from github import Auth, Github
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, RequestsResponse

from evalpipe.forges.github_details import Details, details_query, read_details
from evalpipe.forges.outcome import (
    PAGE,
    TIMEOUT,
    Answer,
    Outcome,
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


class GitHubForge:
    """A project on GitHub. Close it, or use it as a context manager."""

    def __init__(self, path: str, patience: Patience) -> None:
        self._path = path
        self._patience = patience
        self._place = patience.place
        token = self._place.token
        self._api = api_address(self._place.address)
        self._connection = _connection_to(self._api)
        self._client = Github(
            auth=None if token is None else Auth.Token(token.value),
            base_url=self._api,
            user_agent=_AGENT,
            # Waiting is Patience's: the library's own would sleep for an hour without a word.
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )
        self._id = 0
        self._node = ""
        self._has_details = token is not None

    def __enter__(self) -> GitHubForge:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._client.close()

    @property
    def identity(self) -> Row:
        return {
            "kind": "github",
            "url": self._place.address,
            "project": self._id,
            "details": self._place.token is not None,
        }

    def project(self) -> Project:
        what = f"the project {self._path}"
        outcome = self._ask(f"/repos/{self._path}", {}, what)
        if isinstance(outcome, Refusal) and outcome.status == 301:
            # A renamed project; followed once, and only where the token goes anyway.
            target = below(self._api, outcome.headers["location"])
            outcome = outcome if target is None else self._ask(target, {}, what)
        if isinstance(outcome, Refusal):
            raise refused(outcome, self._place, what)
        found = outcome.data
        match found:
            case {"id": int(number), "node_id": str(node), "full_name": str(path)}:
                self._id, self._node = number, node
            case _:
                raise unexpected(self._place, what)
        if self._place.token is None:
            self._patience.say(
                f"without a token ({self._place.variable}) GitHub answers 60 requests an hour, and tells neither what "
                f"closed an issue nor what was edited"
            )
        stream = Stream.github_issues if found.get("has_issues", True) else Stream.github_pull_requests
        return Project(number, path, (stream,))

    def page(self, stream: Stream, since: datetime | None, query: str | None) -> Page:
        # The number stays when a project is renamed in the middle of an export.
        address = f"/repositories/{self._id}"
        parameters = {"state": "all", "direction": "asc", "per_page": str(PAGE)}
        if stream is Stream.github_pull_requests:
            address, what = f"{address}/pulls", f"the pull requests of {self._path}"
            parameters["sort"] = "created"
        else:
            address, what = f"{address}/issues", f"the issues of {self._path}"
            parameters |= {"sort": "updated"} | ({"since": written(since)} if since else {})
        answer = self._ask(address, parameters if query is None else dict(parse_qsl(query)), what)
        if isinstance(answer, Refusal):
            raise refused(answer, self._place, what)
        if not isinstance(answer.data, list):
            raise unexpected(self._place, what)
        items = [_item(value, stream) for value in answer.data]
        good = [item for item in items if item is not None]
        if len(good) < len(items):
            raise unexpected(self._place, what)
        return Page(good, answer.next_query)

    def complete(self, items: Sequence[Item]) -> Completed:
        details = self._details([item.number for item in items]) if self._has_details else None
        if details is None:
            return Completed([item.row for item in items], ())
        rows: list[Row] = []
        gone: list[tuple[Kind, int]] = []
        for item in items:
            found = details.get(item.number)
            if found is None:
                gone.append((item.kind, item.number))
            else:
                rows.append(_with_details(item, found))
        return Completed(rows, gone)

    def _details(self, numbers: Sequence[int]) -> dict[int, Details] | None:
        """What GraphQL knows; None when it may not be asked, which is said once."""
        what = f"the details of {self._path}"
        request = {"query": details_query(numbers), "variables": {"id": self._node}}
        address = self._client.requester.graphql_url
        outcome = self._patience.ask(lambda: _graphql(self._attempt("POST", address, None, request)), what)
        if isinstance(outcome, Refusal):
            if outcome.status == 401 or outcome.status < 400:
                raise refused(outcome, self._place, what)
            self._has_details = False
            said = self._place.clean(outcome.message or outcome.status)
            self._patience.say(
                f"{self._place.address} does not give details ({said}): "
                f"what closed an issue and what was edited is left out"
            )
            return None
        found = read_details(outcome.data, numbers, self._id)
        if found is None:
            raise unexpected(self._place, what)
        return found

    def _ask(self, address: str, parameters: Mapping[str, str], what: str) -> Answer | Refusal:
        return self._patience.ask(lambda: self._attempt("GET", address, dict(parameters), None), what)

    def _attempt(self, verb: str, address: str, parameters: dict[str, str] | None, body: Row | None) -> Outcome:
        # No error of the library goes on from here, not even as a cause: what it holds is not ours to vouch for.
        try:
            status, headers, text = self._client.requester.requestJson(
                verb, address, parameters, None, body, self._connection
            )
        except _Moved as moved:
            return Refusal(301, {"location": moved.location}, "")
        except OSError as error:
            return trouble_of(error)
        try:
            data = json.loads(text)
        except ValueError:
            return Trouble(TroubleKind.not_json) if status < 300 else Refusal(status, lowered(headers), "")
        if status < 300:
            return Answer(data, lowered(headers))
        return Refusal(status, lowered(headers), str(data.get("message", "")) if isinstance(data, dict) else "")


class _Moved(Exception):
    """The server redirects for good. The text holds nothing: it is for `_attempt` alone."""

    def __init__(self, location: str) -> None:
        super().__init__()
        self.location = location


class _PlainConnection(HTTPRequestsConnectionClass):
    """Hands a redirect back: PyGithub would follow it any number of times, without the query."""

    def getresponse(self) -> RequestsResponse:
        return _unmoved(super().getresponse())


class _SecureConnection(HTTPSRequestsConnectionClass):
    """The same with TLS."""

    def getresponse(self) -> RequestsResponse:
        return _unmoved(super().getresponse())


def _unmoved(response: RequestsResponse) -> RequestsResponse:
    if response.status == 301:
        raise _Moved(response.headers.get("location", ""))
    return response


def _connection_to(api: str) -> _PlainConnection | _SecureConnection:
    parts = urlsplit(api)
    kind = _SecureConnection if parts.scheme == "https" else _PlainConnection
    return kind(parts.hostname or "", parts.port, timeout=TIMEOUT, retry=0, verify=certificates())


def api_address(address: str) -> str:
    """Where the API of a GitHub is, by its web address."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if host in ("github.com", "www.github.com"):
        return "https://api.github.com"
    if host.endswith(".ghe.com"):
        return f"{parts.scheme}://api.{host}"
    return f"{address}/api/v3"


def _graphql(outcome: Outcome) -> Outcome:
    """GraphQL says with status 200 what REST says with 403 and 502."""
    if not isinstance(outcome, Answer) or not isinstance(outcome.data, dict):
        return outcome
    errors = outcome.data.get("errors") or []
    if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
        return Trouble(TroubleKind.not_json)
    for error in errors:
        message = str(error.get("message", ""))
        if error.get("type") == "RATE_LIMITED":
            return Refusal(429, outcome.headers, message)
        if message.startswith("Something went wrong"):
            return Refusal(502, outcome.headers, message)
        # A missing item is null in the answer; a missing project is no answer.
        if error.get("type") != "NOT_FOUND" or error.get("path") == ["node"]:
            return Refusal(403, {}, message)
    return outcome


def _item(value: Any, stream: Stream) -> Item | None:
    """An item of a list, None when it is none."""
    try:
        is_pull_request = stream is Stream.github_pull_requests or "pull_request" in value
        kind = Kind.pull_request if is_pull_request else Kind.issue
        number = int(value["number"])
        created_at = read_time(value["created_at"])
        labels = [label["name"] if isinstance(label, dict) else label for label in value["labels"]]
        row: Row = {
            "number": number,
            "kind": kind.value,
            "title": text_of(value["title"]),
            "body": text_of(value["body"]),
            "author": text_of((value["user"] or {}).get("login")),
            "created_at": written(created_at),
            "labels": sorted(text_of(label) for label in labels),
            "closed_by": None,
        }
        updated_at = read_time(value["updated_at"])
        return Item(kind, number, created_at, updated_at, row, value["state"] == "closed", True)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _with_details(item: Item, found: Details) -> Row:
    row = dict(item.row)
    if found.first_title is not None:
        row["title"] = text_of(found.first_title)
    if found.first_body is not None:
        row["body"] = text_of(found.first_body)
    row["edited_at"] = found.edited_at and written(found.edited_at)
    if item.kind is Kind.pull_request:
        row["closes"] = list(found.closes)
    elif item.closed:
        row["closed_by"] = found.closer
    return row
