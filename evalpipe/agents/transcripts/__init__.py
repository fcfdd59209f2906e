"""Transcripts: what each program wrote, in one form that is validated (ATIF 1.7). One reader for each program."""

from collections.abc import Callable, Mapping
from typing import Any

from evalpipe.agents.transcripts import claude_code, codex, mini_swe_agent
from evalpipe.agents.transcripts.atif import TEXT_CHARS, Writer

__all__ = ["READERS", "refused_tools", "transcript"]

READERS: Mapping[str, Callable[[bytes, Writer], None]] = {
    "claude-code": claude_code.read,
    "codex": codex.read,
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
    reader = READERS.get(adapter)
    if reader is None:
        _text(raw, writer)
    else:
        reader(raw, writer)
    return writer.finish(prompt)


def refused_tools(document: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The tools that the program did not allow its agent, by its own words in a trajectory of `transcript`."""
    return tuple(document.get("extra", {}).get("refused_tools", ())) if document else ()


def _text(raw: bytes, writer: Writer) -> None:
    if raw.strip():
        half = TEXT_CHARS * 2
        kept = raw if len(raw) <= 2 * half else raw[:half] + raw[-half:]
        writer.step("agent", kept.decode("utf-8", "replace"))
