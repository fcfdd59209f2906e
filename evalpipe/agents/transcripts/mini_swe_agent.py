"""mini-swe-agent's trajectory: a document of JSON, indented by two, so that each message can be read by itself."""

from collections.abc import Iterator
from typing import Any

from evalpipe.agents.transcripts.atif import Writer, dollars, tokens
from evalpipe.agents.transcripts.lines import LINE_BYTES, lines, parsed, part, parts, text


def read(raw: bytes, writer: Writer) -> None:
    """See `transcript`. What the program prints beside it is left out, unless it is all there is.

    That is so of an attempt that was stopped in its first step: the trajectory is written after each.
    """
    is_written = False
    for name, block in _blocks(raw):
        is_written = True
        if name == "info":
            _info(block, writer)
        else:
            _message(block, writer)
    if not is_written:
        writer.whole_text(raw)


def _blocks(raw: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The object `info` and every message, as they stand indented; a text within them has no line break of its own."""
    ends = {b'  "info": {': (b"  }", "info"), b"    {": (b"    }", "message")}
    held: list[bytes] = []
    size, end, name = 0, b"", ""
    for line in lines(raw):
        if not end:
            end, name = ends.get(line, (b"", ""))
            held, size = [b"{"], 0
            continue
        closes = line in (end, end + b",")
        held.append(b"}" if closes else line)
        size += len(line)
        if closes or size > LINE_BYTES:
            found = parsed(b"\n".join(held)) if closes else None
            if isinstance(found, dict):
                yield name, found
            end = b""


def _info(info: dict[str, Any], writer: Writer) -> None:
    writer.version = text(info.get("mini_version")) or writer.version
    writer.model = text(part(info, "config", "model").get("model_name"))
    mode = text(part(info, "config", "agent").get("mode"))
    writer.said = {"tools": ["bash"], **({"permission_mode": mode} if mode else {})}
    writer.ending = text(info.get("exit_status"))
    stats = part(info, "model_stats")
    writer.reported = {"model_stats": stats}


def _message(message: dict[str, Any], writer: Writer) -> None:
    role = message.get("role")
    if role in ("system", "user"):
        writer.step("system" if role == "system" else "user", message.get("content"))
    elif role == "assistant":
        writer.step("agent", message.get("content"), reasoning=message.get("reasoning_content"))
        for call in parts(message.get("tool_calls")):
            function = part(call, "function")
            arguments = function.get("arguments")
            found = parsed(arguments.encode("utf-8", "replace")) if isinstance(arguments, str) else arguments
            writer.call(call.get("id"), function.get("name"), arguments if found is None else found)
        _usage(part(message, "extra"), writer)
    elif role == "tool":
        extra = part(message, "extra")
        shown = extra.get("raw_output") or extra.get("exception_info") or message.get("content")
        writer.result(message.get("tool_call_id"), shown, is_error=extra.get("returncode") != 0)


def _usage(extra: dict[str, Any], writer: Writer) -> None:
    usage = part(extra, "response", "usage")
    writer.metrics(
        prompt_tokens=tokens(usage.get("prompt_tokens")),
        completion_tokens=tokens(usage.get("completion_tokens")),
        cached_tokens=tokens(part(usage, "prompt_tokens_details").get("cached_tokens")),
        cost_usd=dollars(extra.get("cost")),
    )
