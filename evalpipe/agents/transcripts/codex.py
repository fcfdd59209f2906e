"""Codex's `exec --json`."""

from typing import Any

from evalpipe.agents.transcripts.atif import Writer, tokens
from evalpipe.agents.transcripts.lines import documents, part, text

# What its own sandbox says where a container forbids it: then no command runs at all.
_SANDBOX = "bwrap: "
# Fields of an item that say what it is, and not what was asked for.
_NOT_ARGUMENTS = frozenset({"id", "type", "status", "aggregated_output", "exit_code", "result", "error", "output"})


def read(raw: bytes, writer: Writer) -> None:
    """See `transcript`."""
    items = _Items(writer)
    for event in documents(raw):
        kind = event.get("type")
        if kind == "thread.started":
            writer.session = text(event.get("thread_id"))
        elif kind == "turn.completed":
            _usage(part(event, "usage"), writer)
            writer.ending = "turn.completed"
        elif kind in ("turn.failed", "error"):
            writer.ending = text(kind)
            items.fail(part(event, "error").get("message") or event.get("message"))
        else:
            items.read(part(event, "item"), has_ended=kind == "item.completed")
    if items.commands and items.commands == items.blocked:
        writer.refuse("command_execution")


class _Items:
    """Reads the items in their order. A tool's comes when it starts and again when it ends; some come only ended."""

    def __init__(self, writer: Writer) -> None:
        self.commands = self.blocked = 0
        self._writer = writer
        self._begun: set[str] = set()
        self._open_with = ""

    def fail(self, message: object) -> None:
        """What went wrong; words after it are of another step."""
        self._writer.step("system", message)
        self._open_with = ""

    def read(self, item: dict[str, Any], *, has_ended: bool) -> None:
        """Take one item; anything else is passed over."""
        kind = text(item.get("type"))
        if kind == "error":
            self.fail(item.get("message"))
        elif kind == "agent_message" and self._open_with == "reasoning":
            self._writer.add_text(item.get("text"))
            self._open_with = kind
        elif kind == "agent_message":
            self._begin(kind, message=item.get("text"))
        elif kind == "reasoning":
            self._begin(kind, reasoning=item.get("text"))
        elif kind is not None and kind != "todo_list":
            self._tool(kind, item, has_ended)

    def _begin(self, kind: str, message: object = "", reasoning: object = None) -> None:
        self._writer.step("agent", message, reasoning=reasoning)
        self._open_with = kind

    def _tool(self, kind: str, item: dict[str, Any], has_ended: bool) -> None:
        call = text(item.get("id")) or ""
        if not self._open_with:
            self._begin(kind)
        if call not in self._begun:
            self._begun.add(call)
            arguments = {name: value for name, value in item.items() if name not in _NOT_ARGUMENTS}
            self._writer.call(call, kind, arguments)
        if has_ended:
            self._open_with = kind
            shown, code = (
                item.get("aggregated_output") or item.get("result") or item.get("error"),
                item.get("exit_code"),
            )
            declined = item.get("status") == "declined"
            failed = declined or item.get("status") == "failed" or code not in (None, 0)
            self._writer.result(call, shown, is_error=failed, refused=declined)
            self.commands += kind == "command_execution"
            self.blocked += failed and (text(shown) or "").startswith(_SANDBOX)


def _usage(usage: dict[str, Any], writer: Writer) -> None:
    writer.totals = {
        "total_prompt_tokens": tokens(usage.get("input_tokens")),
        "total_completion_tokens": tokens(usage.get("output_tokens")),
        "total_cached_tokens": tokens(usage.get("cached_input_tokens")),
    }
    writer.reported = {"usage": usage}
