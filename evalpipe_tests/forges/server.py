"""Local servers that answer as the APIs of GitHub Enterprise Server and GitLab do, and misbehave when asked to."""

from __future__ import annotations

import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

TOKEN = "c4n4ry_T0KEN_never_seen_elsewhere"
START = datetime(2026, 1, 1, tzinfo=UTC)
PROJECT_ID = 4711
OTHER_PROJECT_ID = 12


def moment(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


@dataclass
class FakeItem:
    """An issue or pull request; times are minutes after START. `closer` is (project, number) or a commit."""

    number: int
    pull: bool = False
    title: str = "A title"
    body: str | None = "A body"
    created: float = 0.0
    updated: float = 0.0
    author: str | None = "ann"
    labels: tuple[str, ...] = ()
    closed: bool = False
    first_title: str | None = None
    first_body: str | None = None
    edited: float | None = None
    first_body_deleted: bool = False
    closer: tuple[int, int] | str | None = None
    closes: tuple[int, ...] = ()
    hidden: bool = False
    """Whether a look at the item itself does not find it, though the list had it."""


@dataclass(frozen=True)
class Request:
    verb: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Response:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Fault = Callable[[Request], Response | None]


@dataclass
class FakeForge(ABC):
    """A forge with one project. `fault` may answer in its stead; `requests` is all that came."""

    items: list[FakeItem] = field(default_factory=list)
    path: str = "team/shop"
    old_paths: tuple[str, ...] = ()
    token: str = TOKEN
    public: bool = True
    fault: Fault | None = None
    requests: list[Request] = field(default_factory=list)
    address: str = ""

    def answer(self, request: Request) -> Response:
        self.requests.append(request)
        found = self.fault(request) if self.fault else None
        return found or self.route(request)

    @abstractmethod
    def route(self, request: Request) -> Response: ...

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def paged(self, values: Sequence[Any], request: Request) -> Response:
        """One page, with Link headers as the forges write them."""
        size, page = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
        last = max(1, -(-len(values) // size))
        links = []
        for rel, target in (("next", page + 1), ("last", last), ("first", 1)):
            if rel != "next" or target <= last:
                query = urlencode({**request.query, "page": target})
                links.append(f'<{self.address}{request.path}?{query}>; rel="{rel}"')
        headers = {"Link": ", ".join(links), "X-Total": str(len(values)), "X-Page": str(page)}
        return Response(200, list(values[(page - 1) * size : page * size]), headers)


class FakeGitHub(FakeForge):
    has_issues = True
    graphql = True

    def route(self, request: Request) -> Response:
        sent = request.headers.get("authorization")
        if sent is not None and sent != f"token {self.token}":
            return Response(401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"})
        api = "/api/v3"
        path = request.path.removeprefix(api)
        missing = Response(404, {"message": "Not Found", "status": "404"})
        if not self.public and sent is None:
            return missing
        if request.path == "/api/graphql":
            return self._graphql(request, sent)
        if path in [f"/repos/{old}" for old in self.old_paths]:
            target = f"{self.address}{api}/repositories/{PROJECT_ID}"
            return Response(301, {"message": "Moved Permanently", "url": target}, {"Location": target})
        if path in (f"/repos/{self.path}", f"/repositories/{PROJECT_ID}"):
            known = {"id": PROJECT_ID, "node_id": "R_node", "full_name": self.path, "has_issues": self.has_issues}
            return Response(200, known)
        if path == f"/repositories/{PROJECT_ID}/issues":
            if not self.has_issues:
                return Response(410, {"message": "Issues has been disabled in this repository."})
            assert (request.query["state"], request.query["sort"], request.query["direction"]) == (
                "all",
                "updated",
                "asc",
            )
            since = datetime.fromisoformat(request.query.get("since", "2000-01-01T00:00:00Z"))
            chosen = [item for item in self.items if moment(item.updated) >= since]
            chosen.sort(key=lambda item: (item.updated, item.number))
            return self.paged([self.shown(item) for item in chosen], request)
        if path == f"/repositories/{PROJECT_ID}/pulls":
            pulls = sorted((item for item in self.items if item.pull), key=lambda item: item.created)
            return self.paged([self.shown(item) for item in pulls], request)
        return missing

    def shown(self, item: FakeItem) -> dict[str, Any]:
        value: dict[str, Any] = {
            "id": item.number + 10**9,
            "number": item.number,
            "title": item.title,
            "body": item.body,
            "user": None if item.author is None else {"login": item.author, "type": "User"},
            "state": "closed" if item.closed else "open",
            "labels": [{"id": 1, "name": name, "color": "fff"} for name in item.labels],
            "created_at": _seconds(item.created),
            "updated_at": _seconds(item.updated),
            "comments": 3,
        }
        return value | ({"pull_request": {"url": "…"}} if item.pull else {})

    def _graphql(self, request: Request, sent: str | None) -> Response:
        if sent is None:
            return Response(403, {"message": "API rate limit exceeded for 127.0.0.1."}, {"X-RateLimit-Remaining": "0"})
        if not self.graphql:
            return Response(404, {"message": "Not Found"})
        sent_body = json.loads(request.body)
        assert sent_body["variables"] == {"id": "R_node"}
        asked = [int(number) for number in re.findall(r"n(\d+): issueOrPullRequest", sent_body["query"])]
        by_number = {item.number: item for item in self.items if not item.hidden}
        node = {f"n{number}": _details(by_number[number]) if number in by_number else None for number in asked}
        errors = [
            {"type": "NOT_FOUND", "path": ["node", f"n{number}"], "message": "Could not resolve"}
            for number in asked
            if number not in by_number
        ]
        return Response(200, {"data": {"node": node}} | ({"errors": errors} if errors else {}))


def _details(item: FakeItem) -> dict[str, Any]:
    edits = []
    if item.edited is not None and (item.first_body is not None or item.first_body_deleted):
        deleted = _seconds(item.edited) if item.first_body_deleted else None
        edits = [{"diff": None if deleted else item.first_body, "deletedAt": deleted}]
    value: dict[str, Any] = {
        "lastEditedAt": None if item.edited is None else _seconds(item.edited),
        "includesCreatedEdit": bool(edits),
        "userContentEdits": {"nodes": edits},
    }
    renames = {"nodes": [] if item.first_title is None else [{"previousTitle": item.first_title}]}
    if item.pull:
        closes = [{"number": number, "repository": {"databaseId": PROJECT_ID}} for number in item.closes]
        closes.append({"number": 99, "repository": {"databaseId": OTHER_PROJECT_ID}})
        return value | {"pullRequestRenames": renames, "closingIssuesReferences": {"nodes": closes}}
    closer: dict[str, Any] | None = None
    if isinstance(item.closer, str):
        closer = {"oid": item.closer}
    elif item.closer is not None:
        closer = {"number": item.closer[1], "repository": {"databaseId": item.closer[0]}}
    return value | {"issueRenames": renames, "closings": {"nodes": [{"closer": closer}] if item.closed else []}}


class FakeGitLab(FakeForge):
    issues_enabled = True
    notes_need_a_token = False

    def route(self, request: Request) -> Response:
        sent = request.headers.get("private-token")
        if sent is not None and sent != self.token:
            return Response(401, {"message": "401 Unauthorized"})
        missing = Response(404, {"message": "404 Project Not Found"})
        if not self.public and sent is None:
            return missing
        path = request.path.removeprefix("/lab/api/v4/projects/")
        if path in self.old_paths:
            target = f"{self.address}/api/v4/projects/{PROJECT_ID}"
            return Response(301, b"This resource has been moved permanently", {"Location": target})
        if path in (self.path, str(PROJECT_ID)):
            access = "enabled" if self.issues_enabled else "disabled"
            known = {"id": PROJECT_ID, "path_with_namespace": self.path, "issues_access_level": access}
            return Response(200, known)
        found = re.fullmatch(rf"{PROJECT_ID}/(issues|merge_requests)(?:/(\d+)/(notes|closed_by))?", path)
        if found is None:
            return missing
        folder, number, below = found.groups()
        items = [item for item in self.items if item.pull == (folder == "merge_requests")]
        if number is None:
            return self._list(items, request)
        item = next((item for item in items if item.number == int(number) and not item.hidden), None)
        if item is None:
            return Response(404, {"message": "404 Not found"})
        if below == "notes" and self.notes_need_a_token and sent is None:
            return Response(401, {"message": "401 Unauthorized"})
        return self.paged(self._notes(item) if below == "notes" else self._closed_by(item), request)

    def _list(self, items: list[FakeItem], request: Request) -> Response:
        assert request.query["scope"] == request.query["state"] == "all"
        assert (request.query["order_by"], request.query["sort"]) == ("updated_at", "asc")
        since = datetime.fromisoformat(request.query.get("updated_after", "2000-01-01T00:00:00Z"))
        chosen = [item for item in items if moment(item.updated) >= since]
        chosen.sort(key=lambda item: (item.updated, item.number))
        return self.paged([self.shown(item) for item in chosen], request)

    def shown(self, item: FakeItem) -> dict[str, Any]:
        value = {
            "id": item.number + 10**6,
            "iid": item.number,
            "project_id": PROJECT_ID,
            "title": item.title,
            "description": item.body,
            "author": None if item.author is None else {"username": item.author},
            "state": ("merged" if item.pull else "closed") if item.closed else "opened",
            "labels": list(item.labels),
            "created_at": _millis(item.created),
            "updated_at": _millis(item.updated),
        }
        return value if item.pull else value | {"merge_requests_count": int(item.closer is not None)}

    def _notes(self, item: FakeItem) -> list[dict[str, Any]]:
        chat = [
            {"body": "changed the description of my life", "system": False, "created_at": _millis(item.updated)},
            {"body": "added ~bug label", "system": True, "created_at": _millis(item.created)},
        ]
        if item.edited is not None:
            body = "changed the description" if item.first_title is None else "changed title from **A** to **B**"
            chat.append({"body": body, "system": True, "created_at": _millis(item.edited)})
        return chat

    def _closed_by(self, item: FakeItem) -> list[dict[str, Any]]:
        assert isinstance(item.closer, tuple)
        project, number = item.closer
        return [
            {"iid": number, "project_id": project, "merged_at": _millis(10), "state": "merged"},
            {"iid": number + 1, "project_id": project, "merged_at": None, "state": "closed"},
            {"iid": 1, "project_id": project, "merged_at": _millis(5), "state": "merged"},
        ]


def _seconds(minutes: float) -> str:
    return moment(minutes).strftime("%Y-%m-%dT%H:%M:%SZ")


def _millis(minutes: float) -> str:
    return moment(minutes).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def serving(forge: FakeForge, base: str = "") -> Iterator[FakeForge]:
    """Serve a forge on this machine; its `address` is what a team would write as `forge.url`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else every answer waits for the client's delayed acknowledgement.
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(
                self.command, unquote(parts.path), dict(parse_qsl(parts.query)), headers, self.rfile.read(length)
            )
            response = forge.answer(request)
            if response.status == 0:
                # As a server that dies in the middle.
                self.close_connection = True
                return
            self.send_response(response.status)
            for name, value in {
                "Content-Type": "application/json; charset=utf-8",
                "X-RateLimit-Limit": "5000",
                "X-RateLimit-Remaining": "4999",
                **response.headers,
                "Content-Length": str(len(response.data)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.data)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    forge.address = f"http://127.0.0.1:{server.server_address[1]}{base}"
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
