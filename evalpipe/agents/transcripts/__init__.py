"""Transcripts: what each program wrote, in one form that is validated (ATIF 1.7). One reader for each program."""

from collections.abc import Callable, Mapping
from typing import Any

from evalpipe.agents.transcripts import aider, claude_code, codex, gemini_cli, mini_swe_agent, opencode
from evalpipe.agents.transcripts.atif import Writer

__all__ = ["READERS", "refused_tools", "transcript"]

READERS: Mapping[str, Callable[[bytes, Writer], None]] = {
    "claude-code": claude_code.read,
    "codex": codex.read,
    "gemini-cli": gemini_cli.read,
    "opencode": opencode.read,
    "aider": aider.read,
    "mini-swe-agent": mini_swe_agent.read,
}
"""By the name of the adapter. The other agents' output has no form: it is a text."""


def transcript(adapter: str, raw: bytes, *, version: str = "unknown", prompt: str = "") -> dict[str, Any] | None:
    """The trajectory (a document of JSON, ATIF 1.7) in the output `raw` of an attempt; None when it has no step.

    `version` is the pinned one, where the program does not say its own. `prompt` becomes the first step where the
    output does not hold it. Tokens and cost are as the program reports them. Whatever cannot be read is passed over:
    nothing in `raw` raises, and the document is bounded whatever its size.
    """
    writer = Writer(adapter, version)
    READERS.get(adapter, _read_text)(raw, writer)
    return writer.finish(prompt)


def refused_tools(document: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The tools that the program did not allow its agent, by its own words in a trajectory of `transcript`."""
    return tuple(document.get("extra", {}).get("refused_tools", ())) if document else ()


def _read_text(raw: bytes, writer: Writer) -> None:
    writer.whole_text(raw)
