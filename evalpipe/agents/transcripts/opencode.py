"""opencode's `run --format json`."""

from typing import Any

from evalpipe.agents.transcripts.atif import Writer, dollars, total
from evalpipe.agents.transcripts.lines import documents, part, text

# How opencode tells its model that a call was not allowed.
_REFUSALS = ("The user rejected permission", "The user has specified a rule which prevents you")

_NAMES = 50


def read(raw: bytes, writer: Writer) -> None:
    """See `transcript`. A step begins and ends with events of its own; a tool's event comes when the tool has ended."""
    for event in documents(raw):
        kind, piece = event.get("type"), part(event, "part")
        writer.session = writer.session or text(event.get("sessionID"))
        if kind == "step_start":
            writer.step("agent")
        elif kind == "text":
            writer.add_text(piece.get("text"))
        elif kind == "reasoning":
            writer.add_reasoning(piece.get("text"))
        elif kind == "tool_use":
            _tool(piece, writer)
        elif kind == "step_finish":
            _usage(piece, writer)
        elif kind == "error":
            error = part(event, "error")
            writer.step("system", part(error, "data").get("message") or error.get("name"))
            writer.ending = "error"


def _tool(piece: dict[str, Any], writer: Writer) -> None:
    state = part(piece, "state")
    writer.call(piece.get("callID"), piece.get("tool"), state.get("input"))
    error = text(state.get("error")) or ""
    failed = bool(error) or part(state, "metadata").get("exit") not in (None, 0)
    refused = error.startswith(_REFUSALS)
    writer.result(piece.get("callID"), error or state.get("output"), is_error=failed, refused=refused)


def _usage(piece: dict[str, Any], writer: Writer) -> None:
    tokens, cache = part(piece, "tokens"), part(piece, "tokens", "cache")
    # opencode counts apart what came from a cache, what went into one, and what was reasoning. Its cost is 0 without
    # prices in its settings, and they have none: it stands in its own words only.
    writer.metrics(
        prompt_tokens=total(tokens.get("input"), cache.get("read"), cache.get("write")),
        completion_tokens=total(tokens.get("output"), tokens.get("reasoning")),
        cached_tokens=total(cache.get("read")),
    )
    writer.reported = _sum(writer.reported, {"tokens": tokens, "cost": piece.get("cost")})
    writer.ending = text(piece.get("reason"))


def _sum(before: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    """opencode reports step by step, and says no sum: both in its own words, number by number."""
    found = dict(before)
    for name, value in step.items():
        if isinstance(value, dict) and len(found) < _NAMES:
            found[name] = _sum(part(found.get(name)), value)
        elif dollars(value) is not None and len(found) < _NAMES:
            found[name] = (dollars(found.get(name)) or 0) + value
    return found
