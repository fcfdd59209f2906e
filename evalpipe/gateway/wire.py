"""The wire forms of model providers: which paths belong to them, where a key stands, and how they say an error."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum


class WireForm(StrEnum):
    """How a provider is spoken to."""

    ANTHROPIC_MESSAGES = "anthropic_messages"
    OPENAI_RESPONSES = "openai_responses"
    OPENAI_CHAT = "openai_chat"
    GEMINI = "gemini"


@dataclass(frozen=True, slots=True)
class Route:
    """A path that an agent may ask for. `generates` is false where the answer is a count of tokens only."""

    form: WireForm
    generates: bool


_MODEL = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_ROUTES = (
    (re.compile(r"/v1/messages"), Route(WireForm.ANTHROPIC_MESSAGES, True)),
    (re.compile(r"/v1/messages/count_tokens"), Route(WireForm.ANTHROPIC_MESSAGES, False)),
    (re.compile(r"/v1/responses"), Route(WireForm.OPENAI_RESPONSES, True)),
    (re.compile(r"/v1/chat/completions"), Route(WireForm.OPENAI_CHAT, True)),
    (re.compile(rf"/v1(beta)?/models/{_MODEL}:(generateContent|streamGenerateContent)"), Route(WireForm.GEMINI, True)),
    (re.compile(rf"/v1(beta)?/models/{_MODEL}:countTokens"), Route(WireForm.GEMINI, False)),
)
QUERY = frozenset({"alt", "beta", "api-version"})
"""Parameters that reach the provider; `key` is one of those that do not."""


def find_route(forms: frozenset[WireForm], method: str, raw_path: str) -> Route | None:
    """The route of a request, by its whole undecoded path; None when no configured form has it."""
    if method != "POST":
        return None
    for pattern, route in _ROUTES:
        if route.form in forms and pattern.fullmatch(raw_path):
            return route
    return None


def key_header(form: WireForm, key: str) -> tuple[str, str]:
    """The header that carries `key` to a provider of this form."""
    if form is WireForm.ANTHROPIC_MESSAGES:
        return "x-api-key", key
    if form is WireForm.GEMINI:
        return "x-goog-api-key", key
    return "Authorization", f"Bearer {key}"


def error_body(form: WireForm, status: int, message: str) -> bytes:
    """An error as a provider of this form would say it, so that an agent's program understands it (UTF-8 JSON)."""
    document: dict[str, object]
    if form is WireForm.ANTHROPIC_MESSAGES:
        kind = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}.get(
            status, "request_too_large" if status == 413 else "api_error"
        )
        document = {"type": "error", "error": {"type": kind, "message": message}}
    elif form is WireForm.GEMINI:
        state = {400: "FAILED_PRECONDITION", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}.get(
            status, "INVALID_ARGUMENT" if status == 413 else "UNAVAILABLE"
        )
        document = {"error": {"code": status, "message": message, "status": state}}
    else:
        kind = "invalid_request_error" if status < 500 else "server_error"
        document = {"error": {"message": message, "type": kind, "param": None, "code": "evalpipe_gateway"}}
    return json.dumps(document).encode()
