"""`data/agents/<name>.yaml`: an agent, pinned so exactly that a later run of it is the same agent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from evalpipe.config.provider import WireFormName
from evalpipe.config.values import ConfigModel, Count, Positive, Slug, Text, refuse

AdapterName = Literal[
    "reference",
    "empty",
    "scripted",
    "command",
    "claude-code",
    "codex",
    "gemini-cli",
    "opencode",
    "aider",
    "mini-swe-agent",
]

PROGRAM_FORMS: dict[AdapterName, frozenset[WireFormName]] = {
    "claude-code": frozenset({"anthropic_messages"}),
    "codex": frozenset({"openai_responses"}),
    "gemini-cli": frozenset({"gemini"}),
    "opencode": frozenset({"openai_chat"}),
    "aider": frozenset({"openai_chat"}),
    "mini-swe-agent": frozenset({"openai_chat"}),
}
"""The programs that evalpipe installs, each with the wire forms of which its provider must have one."""

# Agents without a model behind them: what the manifest says of the model is the same for each.
_WITHOUT_MODEL = ("reference", "empty")
_NO_MODEL = {"model": "none", "model_version": "1", "scaffold": "none", "scaffold_version": "1"}


_LATER_FIELDS = ("provider", "max_tokens", "max_cost_usd", "command", "variables", "forwarder")


class RetryPolicy(ConfigModel):
    """How often a sample whose attempt was invalid (infrastructure) is run again."""

    max_attempts: Count = Field(default=3, description="attempts of one sample, the first included")


class AgentConfig(ConfigModel):
    """An agent. Its name is the name of its file; everything here goes into the manifest."""

    name: Slug = Field(description="the name of the file, without `.yaml`")
    adapter: AdapterName = Field(description="the code that drives the agent")
    description: str = Field(default="", description="one line for reports")
    model: Text = Field(description="the model's name, as its provider writes it")
    model_version: Text = Field(description="the pinned version of the model")
    scaffold: Text = Field(description="the program around the model")
    scaffold_version: Text = Field(description="the pinned version of the scaffold")
    provider: Slug | None = Field(default=None, description="who serves the model, a file of data/providers")
    tools: tuple[Text, ...] = Field(default=(), description="the tools that the agent may use")
    max_turns: Count | None = Field(default=None, description="model calls until the agent is stopped; else no limit")
    max_tokens: Count | None = Field(default=None, description="tokens of an attempt, input and output; else no limit")
    max_cost_usd: Positive | None = Field(default=None, description="US dollars of an attempt; else no limit")
    context_limit: Count | None = Field(default=None, description="tokens of context; else the model's own")
    temperature: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="the sampling temperature; else the provider's"
    )
    retry_policy: RetryPolicy = Field(default=RetryPolicy(), description="how invalid attempts are run again")
    script: Path | None = Field(
        default=None, description="stored patches that `adapter: scripted` replays, from the workspace's top"
    )
    command: tuple[Text, ...] = Field(
        default=(), description="the program and its arguments of `adapter: command`, which gets the prompt on stdin"
    )
    variables: dict[Text, str] = Field(
        default={}, description="the environment of `command`; `{url}` and `{key}` stand for the way to its model"
    )
    forwarder: Literal["python", "node"] | None = Field(
        default=None, description="what the task's image has to run the way to the model with, for `command`"
    )

    @model_serializer(mode="wrap")
    def _without_unused_later_fields(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # So that an agent of an earlier version has the digest and the manifest that it always had: no attempt is
        # paid for again because a field came.
        written: dict[str, Any] = serialize(self)
        return {name: value for name, value in written.items() if value or name not in _LATER_FIELDS}

    @model_validator(mode="before")
    @classmethod
    def _known_defaults(cls, value: Any) -> Any:
        adapter = value.get("adapter") if isinstance(value, dict) else None
        if adapter in _WITHOUT_MODEL:
            return {**_NO_MODEL, **value}
        if isinstance(adapter, str) and adapter in PROGRAM_FORMS:
            return {"scaffold": adapter, **value}
        return value

    @model_validator(mode="after")
    def _fields_belong_to_the_adapter(self) -> Self:
        refuse([*self._script_faults(), *self._command_faults(), *self._provider_faults()])
        return self

    def _script_faults(self) -> Iterator[tuple[str, str]]:
        if self.adapter == "scripted" and self.script is None:
            yield "script", "is missing: `adapter: scripted` needs the path of the patches to replay"
        if self.adapter != "scripted" and self.script is not None:
            yield "script", f"belongs to `adapter: scripted`; `adapter: {self.adapter}` has none"

    def _command_faults(self) -> Iterator[tuple[str, str]]:
        if self.adapter == "command" and not self.command:
            yield "command", "is missing: `adapter: command` needs the program and its arguments, as a list"
        for field in ("command", "variables", "forwarder"):
            if self.adapter != "command" and getattr(self, field):
                yield field, f"belongs to `adapter: command`; `adapter: {self.adapter}` has none"

    def _provider_faults(self) -> Iterator[tuple[str, str]]:
        if self.adapter == "command" and (self.forwarder is None) != (self.provider is None):
            lacking = "forwarder" if self.forwarder is None else "provider"
            yield lacking, "is missing: a command that calls a model has a provider and a forwarder"
        if self.adapter in PROGRAM_FORMS and self.provider is None:
            yield "provider", "is missing: name the file of data/providers that serves the model"
        if self.adapter in (*_WITHOUT_MODEL, "scripted") and self.provider is not None:
            yield "provider", f"`adapter: {self.adapter}` calls no model; remove this line"
        for field in ("max_tokens", "max_cost_usd"):
            if self.provider is None and getattr(self, field) is not None:
                yield field, "is held by the gateway, and needs a provider"
