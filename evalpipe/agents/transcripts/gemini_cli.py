"""Gemini CLI's `-o stream-json`."""

from typing import Any

from evalpipe.agents.transcripts.atif import Writer, total
from evalpipe.agents.transcripts.lines import documents, part, text

# A model may ask for a tool that never was; these are there unless they were taken away.
_CHANGING = frozenset({"run_shell_command", "write_file", "replace"})


def read(raw: bytes, writer: Writer) -> None:
    """See `transcript`. What the model says comes in pieces; its calls come after, and their results after these."""
    speaks = False
    for event in documents(raw):
        kind = event.get("type")
        if kind == "init":
            writer.session, writer.model = text(event.get("session_id")), text(event.get("model"))
        elif kind == "message" and event.get("role") == "user":
            writer.step("user", event.get("content"))
            speaks = False
        elif kind in ("message", "tool_use"):
            if not speaks:
                writer.step("agent")
                speaks = True
            if kind == "message":
                writer.add_text(event.get("content"), between="")
            else:
                writer.call(event.get("tool_id"), event.get("tool_name"), event.get("parameters"))
        elif kind == "tool_result":
            speaks = False
            _result(event, writer)
        elif kind == "error":
            speaks = False
            writer.step("system", event.get("message"))
        elif kind == "result":
            speaks = False
            _ending(event, writer)


def _result(event: dict[str, Any], writer: Writer) -> None:
    error = part(event, "error")
    kind, call = text(error.get("type")), event.get("tool_id")
    is_missing = kind == "tool_not_registered" and writer.name_of(call) in _CHANGING
    shown = event.get("output") or error.get("message")
    refused = is_missing or kind == "policy_violation"
    writer.result(call, shown, is_error=event.get("status") == "error", refused=refused)


def _ending(event: dict[str, Any], writer: Writer) -> None:
    writer.ending = text(event.get("status"))
    stats = part(event, "stats")
    writer.totals = {
        "total_prompt_tokens": total(stats.get("input_tokens")),
        "total_completion_tokens": total(stats.get("output_tokens")),
        "total_cached_tokens": total(stats.get("cached")),
    }
    writer.reported = {"stats": stats}
    message = part(event, "error").get("message")
    if message:
        writer.step("system", message)
