"""`data/agents/<name>.yaml`: an agent, pinned so exactly that a later run of it is the same agent."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from evalpipe.config.values import ConfigModel, Count, Slug, Text, refuse

# Agents without a model behind them: what the manifest says of the model is the same for each.
_WITHOUT_MODEL = ("reference", "empty")
_NO_MODEL = {"model": "none", "model_version": "1", "scaffold": "none", "scaffold_version": "1"}


class RetryPolicy(ConfigModel):
    """How often a sample whose attempt was invalid (infrastructure) is run again."""

    max_attempts: Count = Field(default=3, description="attempts of one sample, the first included")


class AgentConfig(ConfigModel):
    """An agent. Its name is the name of its file; everything here goes into the manifest."""

    name: Slug = Field(description="the name of the file, without `.yaml`")
    adapter: Literal["reference", "empty", "scripted"] = Field(description="the code that drives the agent")
    description: str = Field(default="", description="one line for reports")
    model: Text = Field(description="the model's name, as its provider writes it")
    model_version: Text = Field(description="the pinned version of the model")
    scaffold: Text = Field(description="the program around the model")
    scaffold_version: Text = Field(description="the pinned version of the scaffold")
    tools: tuple[Text, ...] = Field(default=(), description="the tools that the agent may use")
    max_turns: Count | None = Field(default=None, description="turns until the agent is stopped; else no limit")
    context_limit: Count | None = Field(default=None, description="tokens of context; else the model's own")
    temperature: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="the sampling temperature; else the provider's"
    )
    retry_policy: RetryPolicy = Field(default=RetryPolicy(), description="how invalid attempts are run again")
    script: Path | None = Field(
        default=None, description="stored patches that `adapter: scripted` replays, from the workspace's top"
    )

    @model_validator(mode="before")
    @classmethod
    def _no_model_behind(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("adapter") in _WITHOUT_MODEL:
            return {**_NO_MODEL, **value}
        return value

    @model_validator(mode="after")
    def _script_belongs_to_scripted(self) -> Self:
        if self.adapter == "scripted" and self.script is None:
            refuse([("script", "is missing: `adapter: scripted` needs the path of the patches to replay")])
        if self.adapter != "scripted" and self.script is not None:
            refuse([("script", f"belongs to `adapter: scripted`; `adapter: {self.adapter}` has none")])
        return self
