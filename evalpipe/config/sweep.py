"""`data/sweeps/<name>.yaml`: what a quarter is; everything that is decided before the first attempt."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evalpipe.config.problems import did_you_mean
from evalpipe.config.values import ConfigModel, Count, Memory, Positive, Slug, Text, wrong

Category = Literal["single_file_repair", "multi_file_feature", "dependency_chore", "other"]
PromptMode = Literal["original", "terse"]


class LimitsConfig(ConfigModel):
    """Limits of one attempt of an agent."""

    timeout_s: Positive = Field(default=900.0, description="seconds that one attempt may take")
    memory: Memory = Field(default=4 * 1024**3, description="memory of the agent's container, as 512m or 4g")
    cpus: Positive = Field(default=2.0, description="processors of the agent's container")
    pids: Count = Field(default=512, description="processes and threads in the agent's container")


class SweepConfig(ConfigModel):
    """A sweep: one task set, the agents, and how they are compared. Its name is the name of its file."""

    name: Slug = Field(description="the name of the file, without `.yaml`")
    task_set: Slug = Field(description="the frozen task set, a folder of data/task_sets")
    agents: tuple[Slug, ...] = Field(description="the agents, files of data/agents")
    samples: Count = Field(description="attempts of each agent at each task, in each prompt mode")
    modes: tuple[PromptMode, ...] = Field(
        default=("original",), description="the prompts: `original` text, or a `terse` one"
    )
    weights: dict[Category, Positive] | None = Field(
        default=None, description="share of each category in the team's own work; must add up to 1"
    )
    decision: Text = Field(description="the decision that the result informs, in a sentence")
    comparisons: tuple[tuple[Slug, Slug], ...] = Field(
        default=(), description="pairs of agents to compare, fixed beforehand"
    )
    limits: LimitsConfig = Field(default=LimitsConfig(), description="limits of one attempt")
    region: Text | None = Field(default=None, description="where the prices hold; needs currency")
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = Field(
        default=None, description="currency of the prices as three letters (ISO 4217); needs region"
    )
    archived: bool = Field(
        default=False, description="whether the sweep is left out of Dagster; its rows stay readable"
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for field, values in (("agents", self.agents), ("modes", self.modes)):
            if not values:
                raise wrong("is empty; name at least one", field)
            twice = sorted({value for value in values if list(values).count(value) > 1})
            if twice:
                raise wrong(f"{twice[0]!r} is named twice; keep one", field)
        return self

    @model_validator(mode="after")
    def _weights_add_up(self) -> Self:
        if self.weights is not None:
            total = math.fsum(self.weights.values())
            if abs(total - 1) > 1e-6:
                raise wrong(f"the weights add up to {total:g}; they must add up to 1", "weights")
        return self

    @model_validator(mode="after")
    def _comparisons_are_of_the_sweep(self) -> Self:
        seen: set[frozenset[str]] = set()
        for pair in self.comparisons:
            for agent in pair:
                if agent not in self.agents:
                    hint = did_you_mean(agent, self.agents) or "; name it under agents too"
                    raise wrong(f"{agent!r} is not an agent of this sweep{hint}", "comparisons")
            if pair[0] == pair[1]:
                raise wrong(f"{pair[0]!r} is compared with itself; name two agents", "comparisons")
            if frozenset(pair) in seen:
                raise wrong(f"{pair[0]!r} and {pair[1]!r} are compared twice; keep one", "comparisons")
            seen.add(frozenset(pair))
        return self

    @model_validator(mode="after")
    def _prices_have_place_and_currency(self) -> Self:
        if (self.region is None) != (self.currency is None):
            lacking = "region" if self.region is None else "currency"
            raise wrong("is missing: region and currency go together where costs are priced", lacking)
        return self
