"""Codex's `exec --json`."""

from typing import Any

from evalpipe.agents.transcripts.atif import Writer, tokens
from evalpipe.agents.transcripts.lines import documents, part, text

# Fields of an item that say what it is, and not what was asked for.
_NOT_ARGUMENTS = frozenset({"id", "type", "status", "aggregated_output", "exit_code", "result", "error", "output"})


def read(raw: bytes, writer: Writer) -> None:
    """See `transcript`. A tool's item comes when it starts and again when it ends; some come only ended."""
    begun: set[str] = set()
    is_open = False
    for event in documents(raw):
        kind, item = event.get("type"), part(event, "item")
        if kind == "thread.started":
            writer.session = text(event.get("thread_id"))
        elif kind == "turn.completed":
            _usage(part(event, "usage"), writer)
            writer.ending = "turn.completed"
        elif kind in ("turn.failed", "error"):
            writer.step("system", part(event, "error").get("message") or event.get("message"))
            writer.ending, is_open = text(kind), False
        elif item.get("type") == "error":
            writer.step("system", item.get("message"))
            is_open = False
        elif item.get("type") == "agent_message":
            writer.step("agent", item.get("text"))
            is_open = True
        elif item.get("type") == "reasoning":
            writer.step("agent", reasoning=item.get("text"))
            is_open = True
        elif item.get("type") not in (None, "todo_list"):
            if not is_open:
                writer.step("agent")
                is_open = True
            _tool(item, kind == "item.completed", begun, writer)


def _tool(item: dict[str, Any], has_ended: bool, begun: set[str], writer: Writer) -> None:
    call = text(item.get("id")) or ""
    if call not in begun:
        begun.add(call)
        arguments = {name: value for name, value in item.items() if name not in _NOT_ARGUMENTS}
        writer.call(call, item.get("type"), arguments)
    if has_ended:
        status = item.get("status")
        shown = item.get("aggregated_output") or item.get("result") or item.get("error") or ""
        code = item.get("exit_code")
        failed = status in ("failed", "declined") or code not in (None, 0)
        writer.result(call, shown, is_error=failed, refused=status == "declined")


def _usage(usage: dict[str, Any], writer: Writer) -> None:
    writer.totals = {
        "total_prompt_tokens": tokens(usage.get("input_tokens")),
        "total_completion_tokens": tokens(usage.get("output_tokens")),
        "total_cached_tokens": tokens(usage.get("cached_input_tokens")),
    }
    writer.reported = {"usage": usage}
