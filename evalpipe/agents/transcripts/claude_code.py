"""Claude Code's `--output-format stream-json --verbose`."""

from typing import Any

from evalpipe.agents.transcripts.atif import Writer, dollars, total
from evalpipe.agents.transcripts.lines import documents, part, parts, text

# These need a person to answer, and are refused in every run without one, whatever it may do.
_ASK_A_PERSON = frozenset({"AskUserQuestion", "ExitPlanMode"})
# Without any of these no file can be changed: they were taken away.
_CHANGING = ("Bash", "Edit", "Write")
_REPORTED = ("usage", "modelUsage", "num_turns", "total_cost_usd", "duration_api_ms")
# Claude Code counts apart what came from a cache and what went into one.
_USAGE = {
    "prompt_tokens": ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"),
    "completion_tokens": ("outputTokens",),
    "cached_tokens": ("cacheReadInputTokens",),
}
_OF_ITSELF = {"tools": "tools", "permissionMode": "permission_mode", "apiKeySource": "api_key_source"}
_OF_ITSELF |= {"mcp_servers": "mcp_servers", "output_style": "output_style"}


def read(raw: bytes, writer: Writer) -> None:
    """See `transcript`. A message is told by several events, one for each of its parts."""
    message_id: object = None
    for event in documents(raw):
        kind = event.get("type")
        if kind == "system" and event.get("subtype") == "init":
            _of_itself(event, writer)
        elif kind == "assistant":
            message = part(event, "message")
            if message_id is None or message.get("id") != message_id:
                model = text(message.get("model"))
                writer.step("agent", model=model if model != writer.model else None)
            message_id = message.get("id")
            for block in parts(message.get("content")):
                _block(block, writer)
        elif kind == "user":
            message_id = None
            for block in parts(part(event, "message").get("content")):
                if block.get("type") == "tool_result":
                    content = block.get("content")
                    shown = "\n".join(text(one.get("text")) or "" for one in parts(content)) or content
                    writer.result(block.get("tool_use_id"), shown, is_error=block.get("is_error") is True)
        elif kind == "result":
            _result(event, writer)


def _of_itself(event: dict[str, Any], writer: Writer) -> None:
    writer.version = text(event.get("claude_code_version")) or writer.version
    writer.model, writer.session = text(event.get("model")), text(event.get("session_id"))
    writer.said = {name: event[key] for key, name in _OF_ITSELF.items() if key in event}
    tools = event.get("tools")
    if isinstance(tools, list) and not any(name in tools for name in _CHANGING):
        for name in _CHANGING:
            writer.refuse(name)


def _block(block: dict[str, Any], writer: Writer) -> None:
    if block.get("type") == "text":
        writer.add_text(block.get("text"))
    elif block.get("type") == "thinking":
        writer.add_reasoning(block.get("thinking"))
    elif block.get("type") == "tool_use":
        writer.call(block.get("id"), block.get("name"), block.get("input"))


def _result(event: dict[str, Any], writer: Writer) -> None:
    # The usage beside it leaves out models of helpers; events of messages are of their start, and are no sums.
    usages = [part(usage) for usage in part(event, "modelUsage").values()]
    writer.totals = {
        f"total_{name}": total(*(usage.get(key) for usage in usages for key in keys)) for name, keys in _USAGE.items()
    }
    writer.totals["total_cost_usd"] = dollars(event.get("total_cost_usd"))
    writer.reported = {name: event[name] for name in _REPORTED if name in event}
    writer.ending = text(event.get("terminal_reason")) or text(event.get("subtype"))
    if event.get("is_error") is True:
        writer.step("system", event.get("result") or event.get("errors") or event.get("subtype"))
    for denial in parts(event.get("permission_denials")):
        tool = text(denial.get("tool_name"))
        if tool not in _ASK_A_PERSON:
            writer.refuse(tool)
