"""Asks the gateway as an agent's program would: over the Unix socket of an attempt, with its placeholder key."""

import http.client
import json
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalpipe.gateway import OpenAttempt, Provider, WireForm

PATHS = {
    WireForm.ANTHROPIC_MESSAGES: "/v1/messages",
    WireForm.OPENAI_RESPONSES: "/v1/responses",
    WireForm.OPENAI_CHAT: "/v1/chat/completions",
    WireForm.GEMINI: "/v1beta/models/gemini-2.5-pro:generateContent",
}
STREAM_PATHS = {**PATHS, WireForm.GEMINI: "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"}
MODELS = {
    WireForm.ANTHROPIC_MESSAGES: "claude-sonnet-4-5",
    WireForm.OPENAI_RESPONSES: "gpt-5",
    WireForm.OPENAI_CHAT: "gpt-5",
    WireForm.GEMINI: "gemini-2.5-pro",
}
PRICE_LISTS = {
    WireForm.ANTHROPIC_MESSAGES: "anthropic",
    WireForm.OPENAI_RESPONSES: "openai",
    WireForm.OPENAI_CHAT: "openai",
    WireForm.GEMINI: "google",
}
KEY_HEADERS = {
    WireForm.ANTHROPIC_MESSAGES: "x-api-key",
    WireForm.OPENAI_RESPONSES: "Authorization",
    WireForm.OPENAI_CHAT: "Authorization",
    WireForm.GEMINI: "x-goog-api-key",
}
FORMS = list(WireForm)
KEY_VARIABLE, REAL_KEY = "EVALPIPE_TEST_KEY", "sk-real-canary-4711-0815"


def provider(url: str, form: WireForm, **changes: Any) -> Provider:
    """A provider called `test` at `url`."""
    settings: dict[str, Any] = {
        "name": "test",
        "base_url": url,
        "forms": frozenset({form}),
        "key_variable": KEY_VARIABLE,
        "price_list": PRICE_LISTS[form],
    }
    return Provider(**settings | changes)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=20)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass(frozen=True)
class Answer:
    """What came back. `cut` says that the connection broke before the answer was whole."""

    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool = False

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


def ask(
    attempt: OpenAttempt,
    form: WireForm,
    *,
    streams: bool = False,
    key: str | None = None,
    path: str | None = None,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Send one request; the body is a small one of the form unless one is given."""
    connection = UnixConnection(attempt.socket)
    shown = attempt.key if key is None else key
    name = KEY_HEADERS[form]
    value = f"Bearer {shown}" if name == "Authorization" else shown
    document = {"model": MODELS[form], "stream": streams, "messages": [{"role": "user", "content": "hello"}]}
    sent = json.dumps(document).encode() if body is None else body
    where = path or (STREAM_PATHS if streams else PATHS)[form]
    try:
        connection.request("POST", where, sent, {name: value, "Content-Type": "application/json", **(headers or {})})
        reply = connection.getresponse()
        try:
            return Answer(reply.status, dict(reply.headers), reply.read())
        except http.client.IncompleteRead as error:
            return Answer(reply.status, dict(reply.headers), error.partial, cut=True)
        except ConnectionError:
            return Answer(reply.status, dict(reply.headers), b"", cut=True)
    finally:
        connection.close()


def leave_with(attempt: OpenAttempt, last: bytes) -> None:
    """Ask in Anthropic's form for a stream, and break the connection off with the line that has `last`."""
    connection = UnixConnection(attempt.socket)
    body = json.dumps({"model": MODELS[WireForm.ANTHROPIC_MESSAGES], "stream": True})
    connection.request("POST", "/v1/messages", body, {"x-api-key": attempt.key})
    reply = connection.getresponse()
    while last not in (line := reply.readline()):
        assert line, f"the reply ended before {last!r}"
    reply.close()
    connection.close()
    deadline = time.monotonic() + 10
    while attempt.progress().in_flight and time.monotonic() < deadline:
        time.sleep(0.01)
