"""One question to a model through the gateway, for evalpipe's own use: counted and redacted as an agent's calls are."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from aiohttp import ClientError, ClientSession, UnixConnector

from evalpipe.gateway.gateway import OpenAttempt
from evalpipe.gateway.provider import ProviderError
from evalpipe.gateway.wire import WireForm, key_header

MOST_TOKENS = 4_000
"""Of an answer. More than its words, since models that reason count their thoughts too."""


def complete(attempt: OpenAttempt, form: WireForm, model: str, instruction: str, text: str) -> str:
    """What `model` answers to `text` under `instruction`, without what it thought. Raises ProviderError."""
    path, body = request_of(form, model, instruction, text)
    status, reply = asyncio.run(_post(attempt, form, path, body))
    document = _document(reply)
    if status != 200:
        raise ProviderError(f"{model} did not answer: status {status}, {_error_of(document) or 'no reason given'}")
    return "".join(_texts(form, document)).strip()


def request_of(form: WireForm, model: str, instruction: str, text: str) -> tuple[str, dict[str, Any]]:
    """The path and the document of a request that is no stream."""
    if form is WireForm.ANTHROPIC_MESSAGES:
        messages = [{"role": "user", "content": text}]
        return "/v1/messages", {
            "model": model,
            "max_tokens": MOST_TOKENS,
            "system": instruction,
            "messages": messages,
        }
    if form is WireForm.OPENAI_RESPONSES:
        asked = {"model": model, "instructions": instruction, "input": text, "max_output_tokens": MOST_TOKENS}
        return "/v1/responses", asked
    if form is WireForm.OPENAI_CHAT:
        # Servers of this form do not agree on how an answer is limited.
        roles = [{"role": "system", "content": instruction}, {"role": "user", "content": text}]
        return "/v1/chat/completions", {"model": model, "messages": roles}
    return f"/v1beta/models/{model}:generateContent", {
        "systemInstruction": {"parts": [{"text": instruction}]},
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "generationConfig": {"maxOutputTokens": MOST_TOKENS},
    }


async def _post(attempt: OpenAttempt, form: WireForm, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    name, key = key_header(form, attempt.key)
    headers = {name: key, **({"anthropic-version": "2023-06-01"} if form is WireForm.ANTHROPIC_MESSAGES else {})}
    try:
        async with (
            ClientSession(connector=UnixConnector(str(attempt.socket))) as session,
            session.post(f"http://model{path}", json=body, headers=headers) as reply,
        ):
            return reply.status, await reply.read()
    except ClientError as error:
        raise ProviderError(f"the call to the model broke off: {error}") from error


def _document(reply: bytes) -> dict[str, Any]:
    try:
        found = json.loads(reply)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _error_of(document: dict[str, Any]) -> str:
    error = document.get("error")
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def _texts(form: WireForm, document: dict[str, Any]) -> Iterator[str]:
    if form is WireForm.ANTHROPIC_MESSAGES:
        parts = _parts(document, "content")
    elif form is WireForm.OPENAI_RESPONSES:
        parts = [part for item in _parts(document, "output") for part in _parts(item, "content")]
    elif form is WireForm.OPENAI_CHAT:
        parts = [{"text": _inner(choice, "message").get("content")} for choice in _parts(document, "choices")[:1]]
    else:
        first = _parts(document, "candidates")[:1]
        parts = [part for one in first for part in _parts(_inner(one, "content"), "parts") if not part.get("thought")]
    yield from (part["text"] for part in parts if isinstance(part.get("text"), str))


def _parts(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = holder.get(name)
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _inner(holder: dict[str, Any], name: str) -> dict[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}
