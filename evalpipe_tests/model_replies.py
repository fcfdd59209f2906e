"""What the scripted model server answers: whole replies, streams and errors in the four wire forms."""

import json
from dataclasses import dataclass
from typing import Any

PROMPT_TOKENS, CACHED_TOKENS, WRITTEN_TOKENS, OUTPUT_TOKENS, REASONING_TOKENS = 100, 30, 10, 7, 2
"""What each reply reports: a prompt of 100 tokens in all, of which 30 came from a cache and (where the form has it)
10 went into one; 7 tokens of output in all, of which 2 were reasoning (where the form has it)."""
MODEL = "gpt-5"


@dataclass(frozen=True)
class Say:
    """Answer with a text, and end the turn."""

    text: str = "done"
    model: str | None = None
    reports_usage: bool = True
    lingers: bool = False
    """Send all of a stream, and leave it open."""


@dataclass(frozen=True)
class Use:
    """Ask for one tool."""

    tool: str
    arguments: dict[str, Any]
    text: str = ""
    model: str | None = None
    reports_usage: bool = True


@dataclass(frozen=True)
class Fail:
    """Answer with a status and an error in the provider's form (or `body` as it is)."""

    status: int
    kind: str = "error"
    message: str = "scripted"
    retry_after: str | None = None
    body: bytes | None = None


def wire_of(path: str) -> str:
    for ending, form in (("/messages", "anthropic"), ("/responses", "responses"), ("/chat/completions", "chat")):
        if path.endswith(ending):
            return form
    return "gemini"


def error_of(form: str, step: Fail) -> bytes:
    if step.body is not None:
        return step.body
    if form == "anthropic":
        return json.dumps({"type": "error", "error": {"type": step.kind, "message": step.message}}).encode()
    if form == "gemini":
        return json.dumps({"error": {"code": step.status, "message": step.message, "status": step.kind}}).encode()
    return json.dumps(
        {"error": {"message": step.message, "type": step.kind, "param": None, "code": step.kind}}
    ).encode()


def _event(document: dict[str, Any], name: str | None = None) -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + json.dumps(document).encode() + b"\n\n"


def _model(step: Say | Use, document: dict[str, Any]) -> str:
    return step.model or str(document.get("model") or MODEL)


def _anthropic_usage(step: Say | Use) -> dict[str, int]:
    uncached = PROMPT_TOKENS - CACHED_TOKENS - WRITTEN_TOKENS
    return {
        "input_tokens": uncached,
        "cache_read_input_tokens": CACHED_TOKENS,
        "cache_creation_input_tokens": WRITTEN_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
    }


def _anthropic_blocks(step: Say | Use) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
    if isinstance(step, Use):
        blocks.append({"type": "tool_use", "id": "toolu_1", "name": step.tool, "input": step.arguments})
    return blocks


def _anthropic_plain(step: Say | Use, document: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": _model(step, document),
        "content": _anthropic_blocks(step),
        "stop_reason": "tool_use" if isinstance(step, Use) else "end_turn",
        "stop_sequence": None,
        **({"usage": _anthropic_usage(step)} if step.reports_usage else {}),
    }


def _anthropic_events(step: Say | Use, document: dict[str, Any]) -> list[bytes]:
    whole = _anthropic_plain(step, document)
    start = whole | {"content": [], "stop_reason": None}
    if step.reports_usage:
        start["usage"] = whole["usage"] | {"output_tokens": 1}
    events = [_event({"type": "message_start", "message": start}, "message_start")]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            begun = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        for kind, more in (
            ("content_block_start", {"content_block": begun}),
            ("content_block_delta", {"delta": delta}),
            ("content_block_stop", {}),
        ):
            events.append(_event({"type": kind, "index": index, **more}, kind))
    ended = {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}}
    if step.reports_usage:
        ended["usage"] = {"output_tokens": OUTPUT_TOKENS}
    return [*events, _event(ended, "message_delta"), _event({"type": "message_stop"}, "message_stop")]


def _responses_items(step: Say | Use) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if step.text:
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        items.append({"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content})
    if isinstance(step, Use):
        arguments = json.dumps(step.arguments)
        items.append(
            {
                "type": "function_call",
                "id": "f1",
                "call_id": "call_1",
                "name": step.tool,
                "arguments": arguments,
                "status": "completed",
            }
        )
    return items


def _responses_plain(step: Say | Use, document: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": PROMPT_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": REASONING_TOKENS},
        "total_tokens": PROMPT_TOKENS + OUTPUT_TOKENS,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": _model(step, document),
        "output": _responses_items(step),
        "error": None,
        "usage": usage if step.reports_usage else None,
    }


def _responses_events(step: Say | Use, document: dict[str, Any]) -> list[bytes]:
    whole = _responses_plain(step, document)
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    events = [_event({"type": "response.created", "response": begun}, "response.created")]
    for index, item in enumerate(whole["output"]):
        for kind in ("response.output_item.added", "response.output_item.done"):
            events.append(_event({"type": kind, "output_index": index, "item": item}, kind))
    return [*events, _event({"type": "response.completed", "response": whole}, "response.completed")]


def _chat_usage() -> dict[str, Any]:
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": PROMPT_TOKENS + OUTPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "completion_tokens_details": {"reasoning_tokens": REASONING_TOKENS},
    }


def _chat_message(step: Say | Use) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if isinstance(step, Use):
        function = {"name": step.tool, "arguments": json.dumps(step.arguments)}
        message["tool_calls"] = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    return message


def _chat_plain(step: Say | Use, document: dict[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if isinstance(step, Use) else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": _model(step, document),
        "choices": [{"index": 0, "message": _chat_message(step), "finish_reason": reason}],
        **({"usage": _chat_usage()} if step.reports_usage else {}),
    }


def _chat_events(step: Say | Use, document: dict[str, Any]) -> list[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": _model(step, document)}
    message, reason = _chat_message(step), "tool_calls" if isinstance(step, Use) else "stop"
    events = [
        _event(head | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
        _event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
    ]
    if step.reports_usage and (document.get("stream_options") or {}).get("include_usage"):
        events.append(_event(head | {"choices": [], "usage": _chat_usage()}))
    return [*events, b"data: [DONE]\n\n"]


def _gemini_usage() -> dict[str, int]:
    return {
        "promptTokenCount": PROMPT_TOKENS,
        "cachedContentTokenCount": CACHED_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS - REASONING_TOKENS,
        "thoughtsTokenCount": REASONING_TOKENS,
        "totalTokenCount": PROMPT_TOKENS + OUTPUT_TOKENS,
    }


def _gemini_plain(step: Say | Use, document: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": step.text}] if step.text else []
    if isinstance(step, Use):
        parts.append({"functionCall": {"name": step.tool, "args": step.arguments}})
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "modelVersion": _model(step, document),
        **({"usageMetadata": _gemini_usage()} if step.reports_usage else {}),
    }


def _gemini_events(step: Say | Use, document: dict[str, Any]) -> list[bytes]:
    whole = _gemini_plain(step, document)
    first = {"candidates": [whole["candidates"][0] | {"finishReason": None}], "modelVersion": whole["modelVersion"]}
    last = whole | {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]}
    return [_event(first), _event(last)]


PLAIN = {"anthropic": _anthropic_plain, "responses": _responses_plain, "chat": _chat_plain, "gemini": _gemini_plain}
EVENTS = {
    "anthropic": _anthropic_events,
    "responses": _responses_events,
    "chat": _chat_events,
    "gemini": _gemini_events,
}
