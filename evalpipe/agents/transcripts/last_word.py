"""Hears a program's last event while it runs: what it does after that is no work of its agent's."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evalpipe.agents.transcripts.lines import LINE_BYTES, parsed, part


class LastWord(StrEnum):
    """What a program says of its own end."""

    DONE = "done"
    FAILED = "failed"


def _claude_code(event: Mapping[str, Any]) -> LastWord | None:
    if event.get("type") != "result":
        return None
    return LastWord.FAILED if event.get("is_error") is True else LastWord.DONE


def _codex(event: Mapping[str, Any]) -> LastWord | None:
    return {"turn.completed": LastWord.DONE, "turn.failed": LastWord.FAILED}.get(str(event.get("type")))


def _gemini_cli(event: Mapping[str, Any]) -> LastWord | None:
    if event.get("type") != "result":
        return None
    return LastWord.FAILED if event.get("status") == "error" else LastWord.DONE


def _opencode(event: Mapping[str, Any]) -> LastWord | None:
    if event.get("type") == "error":
        return LastWord.FAILED
    # After a step that asked for tools, or did not say why it ended, comes another.
    is_last = event.get("type") == "step_finish" and part(event, "part").get("reason") not in ("tool-calls", "unknown")
    return LastWord.DONE if is_last else None


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a line of the event holds, so that others need not be read, and what the event says."""

    mark: bytes
    word: Callable[[Mapping[str, Any]], LastWord | None]


# aider and mini-swe-agent print no events.
_RULES = {
    "claude-code": _Rule(b'"result"', _claude_code),
    "codex": _Rule(b'"turn.', _codex),
    "gemini-cli": _Rule(b'"result"', _gemini_cli),
    "opencode": _Rule(b'"type"', _opencode),
}


class LastWordListener:
    """Is fed what a program prints, as it comes; keeps no more of it than a line."""

    def __init__(self, adapter: str) -> None:
        self.word: LastWord | None = None
        self.at = 0.0
        """When it was said, on the clock of `time.monotonic`."""
        self._rule = _RULES.get(adapter)
        self._line = bytearray()

    def feed(self, chunk: bytes) -> None:
        """The next bytes, cut anywhere."""
        if self._rule is None:
            return
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._line += piece
            self._read(bytes(self._line), self._rule)
            self._line.clear()
        # A line that is too long stays so until it ends.
        if len(self._line) <= LINE_BYTES:
            self._line += rest

    def _read(self, line: bytes, rule: _Rule) -> None:
        if len(line) > LINE_BYTES or not line.startswith(b"{") or rule.mark not in line:
            return
        event = parsed(line)
        word = rule.word(event) if isinstance(event, dict) else None
        if word is not None:
            self.at = time.monotonic()  # First: another thread looks at both.
            self.word = word
