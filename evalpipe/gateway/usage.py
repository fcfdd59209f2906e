"""Tokens in one definition for all providers, read from what their replies report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalpipe.gateway.wire import WireForm

_MESSAGE_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one or many calls.

    `input` is the whole prompt; `cached` (read from a cache) and `cache_write` (written to one) are parts of it.
    `output` is all that was generated; `reasoning` is a part of it.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.input + other.input,
            self.cached + other.cached,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


@dataclass(slots=True)
class ReplyFacts:
    """What a reply says of itself. Documents (a JSON body, or each event of a stream) are given to `read` in order."""

    form: WireForm
    model: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    ended: bool = False
    """Whether the reply said itself that it is whole; a plain body always does."""
    unread: bool = False
    """Whether some of the reply could not be read, so that its usage may be wrong."""
    _reported: dict[str, Any] = field(default_factory=dict)

    def read(self, document: object) -> None:
        """Take what is known from one document; what is not of the form is passed over."""
        if isinstance(document, list):  # Gemini's stream without `alt=sse` is one list.
            for part in document:
                self.read(part)
            return
        if not isinstance(document, dict):
            return
        for holder in (document, document.get("message"), document.get("response")):
            if isinstance(holder, dict):
                self._read_holder(holder)
        self.ended = self.ended or _ends(self.form, document)

    def _read_holder(self, holder: Mapping[str, Any]) -> None:
        usage = holder.get("usageMetadata" if self.form is WireForm.GEMINI else "usage")
        if isinstance(usage, dict):
            # Reports within a stream are cumulative: a later one replaces, and leaves alone what it does not name.
            self._reported.update({name: value for name, value in usage.items() if value is not None})
        model = holder.get("modelVersion" if self.form is WireForm.GEMINI else "model")
        if isinstance(model, str) and model:
            self.model = model
        error = holder.get("error")
        if isinstance(error, dict):
            kinds = (error.get("code"), error.get("type"), error.get("status"))
            self.error_type = next((kind for kind in kinds if isinstance(kind, str) and kind), "error")
            self.error_message = str(error.get("message", ""))[:_MESSAGE_CHARS]

    @property
    def usage(self) -> TokenUsage | None:
        """What was reported until now; None when nothing was."""
        return _DEFINITIONS[self.form](self._reported) if self._reported else None


def _ends(form: WireForm, document: Mapping[str, Any]) -> bool:
    kind = document.get("type")
    if form is WireForm.ANTHROPIC_MESSAGES:
        return kind == "message_stop"
    if form is WireForm.OPENAI_RESPONSES:
        return kind in ("response.completed", "response.incomplete", "response.failed")
    choices = document.get("candidates" if form is WireForm.GEMINI else "choices")
    reason = "finishReason" if form is WireForm.GEMINI else "finish_reason"
    return isinstance(choices, list) and any(isinstance(choice, dict) and choice.get(reason) for choice in choices)


def _count(report: Mapping[str, Any], *path: str) -> int:
    value: Any = report
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


def _anthropic(report: Mapping[str, Any]) -> TokenUsage:
    # https://docs.anthropic.com/en/api/messages: input_tokens is what no cache had any part in.
    cached, written = _count(report, "cache_read_input_tokens"), _count(report, "cache_creation_input_tokens")
    return TokenUsage(
        _count(report, "input_tokens") + cached + written, cached, written, _count(report, "output_tokens")
    )


def _responses(report: Mapping[str, Any]) -> TokenUsage:
    return TokenUsage(
        _count(report, "input_tokens"),
        _count(report, "input_tokens_details", "cached_tokens"),
        0,
        _count(report, "output_tokens"),
        _count(report, "output_tokens_details", "reasoning_tokens"),
    )


def _chat(report: Mapping[str, Any]) -> TokenUsage:
    return TokenUsage(
        _count(report, "prompt_tokens"),
        _count(report, "prompt_tokens_details", "cached_tokens"),
        0,
        _count(report, "completion_tokens"),
        _count(report, "completion_tokens_details", "reasoning_tokens"),
    )


def _gemini(report: Mapping[str, Any]) -> TokenUsage:
    # https://ai.google.dev/api/generate-content#UsageMetadata: thoughts and the results of tools are counted beside
    # candidates and prompt; cached content is a part of the prompt.
    thoughts = _count(report, "thoughtsTokenCount")
    return TokenUsage(
        _count(report, "promptTokenCount") + _count(report, "toolUsePromptTokenCount"),
        _count(report, "cachedContentTokenCount"),
        0,
        _count(report, "candidatesTokenCount") + thoughts,
        thoughts,
    )


_DEFINITIONS = {
    WireForm.ANTHROPIC_MESSAGES: _anthropic,
    WireForm.OPENAI_RESPONSES: _responses,
    WireForm.OPENAI_CHAT: _chat,
    WireForm.GEMINI: _gemini,
}
