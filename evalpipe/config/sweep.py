"""`data/sweeps/<name>.yaml`: what a quarter is; everything that is decided before the first attempt."""

import math
from collections.abc import Iterator
from datetime import date
from typing import Literal, Self

from pydantic import Field, model_validator

from evalpipe.config.problems import did_you_mean
from evalpipe.config.values import (
    ConfigModel,
    Count,
    Currency,
    Memory,
    Owner,
    Positive,
    Rate,
    Slug,
    Text,
    TimeZone,
    refuse,
)

Category = Literal["single_file_repair", "multi_file_feature", "dependency_chore", "other"]
PromptMode = Literal["original", "terse"]


class LimitsConfig(ConfigModel):
    """Limits of one attempt of an agent."""

    timeout_s: Positive = Field(default=900.0, description="seconds that one attempt may take")
    memory: Memory = Field(default=4 * 1024**3, description="memory of the agent's container, as 512m or 4g")
    cpus: Positive = Field(default=2.0, description="processors of the agent's container")
    pids: Count = Field(default=512, description="processes and threads in the agent's container")
    silence_s: Positive = Field(
        default=600.0, description="seconds without output and without a byte from the model that end an attempt"
    )
    count_rate_limit_waits: bool = Field(
        default=True, description="whether seconds that an agent waits for rate limits are part of timeout_s"
    )


class SweepConfig(ConfigModel):
    """A sweep: one task set, the agents, and how they are compared. Its name is the name of its file."""

    name: Slug = Field(description="the name of the file, without `.yaml`")
    task_set: Slug = Field(description="the frozen task set, a folder of data/task_sets")
    agents: tuple[Slug, ...] = Field(description="the agents, files of data/agents")
    samples: Count = Field(description="attempts of each agent at each task, in each prompt mode")
    modes: tuple[PromptMode, ...] = Field(
        default=("original",), description="the prompts: `original` text, or a `terse` one"
    )
    history: Literal["ancestors", "none"] = Field(
        default="ancestors", description="what agents may read of the past: the parent's ancestors, or one commit"
    )
    weights: dict[Category, Positive] | None = Field(
        default=None, description="share of each category in the team's own work; must add up to 1"
    )
    decision: Text = Field(description="the decision that the result informs, in a sentence")
    smallest_difference: Rate | None = Field(
        default=None, description="smallest difference of pass@1 that matters to the decision: 0.1 is 10 points"
    )
    comparisons: tuple[tuple[Slug, Slug], ...] = Field(
        default=(), description="pairs of agents to compare, fixed beforehand"
    )
    cutoffs: dict[Slug, date] = Field(
        default={}, description="last day of which the model of an agent may have seen code, by agent"
    )
    limits: LimitsConfig = Field(default=LimitsConfig(), description="limits of one attempt")
    budget_usd: Positive | None = Field(
        default=None, description="US dollars that all attempts may cost; what does not fit is not begun"
    )
    record_bodies: bool = Field(
        default=False, description="whether requests and replies of models are kept whole, compressed, without secrets"
    )
    region: Text | None = Field(default=None, description="where the prices hold; needs currency")
    currency: Currency | None = Field(
        default=None, description="currency that reports give costs in, as three letters (ISO 4217); needs region"
    )
    usd_rate: Positive | None = Field(
        default=None, description="what one US dollar costs in that currency, because costs are measured in dollars"
    )
    time_zone: TimeZone = Field(default="UTC", description="the time zone of its quarterly rerun, as Europe/Berlin")
    owners: tuple[Owner, ...] = Field(
        default=(), description="who answers for it, as team:payments or an e-mail address; the UI shows them"
    )
    archived: bool = Field(
        default=False, description="whether the sweep is left out of Dagster; its rows stay readable"
    )

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        refuse(
            [
                *self._repetitions(),
                *self._weight_faults(),
                *self._comparison_faults(),
                *self._cutoff_faults(),
                *self._price_faults(),
            ]
        )
        return self

    def _repetitions(self) -> Iterator[tuple[str, str]]:
        for field, values in (("agents", self.agents), ("modes", self.modes)):
            if not values:
                yield field, "is empty; name at least one"
            for value in sorted({value for value in values if list(values).count(value) > 1}):
                yield field, f"{value!r} is named twice; keep one"

    def _weight_faults(self) -> Iterator[tuple[str, str]]:
        if self.weights is not None:
            total = math.fsum(self.weights.values())
            if abs(total - 1) > 1e-6:
                yield "weights", f"the weights add up to {total:g}; they must add up to 1"

    def _comparison_faults(self) -> Iterator[tuple[str, str]]:
        seen: set[frozenset[str]] = set()
        for pair in self.comparisons:
            for agent in sorted(set(pair) - set(self.agents)):
                yield "comparisons", self._stranger(agent)
            if pair[0] == pair[1]:
                yield "comparisons", f"{pair[0]!r} is compared with itself; name two agents"
            elif frozenset(pair) in seen:
                yield "comparisons", f"{pair[0]!r} and {pair[1]!r} are compared twice; keep one"
            seen.add(frozenset(pair))

    def _stranger(self, agent: str) -> str:
        hint = did_you_mean(agent, self.agents) or "; name it under agents too"
        return f"{agent!r} is not an agent of this sweep{hint}"

    def _cutoff_faults(self) -> Iterator[tuple[str, str]]:
        for agent in sorted(self.cutoffs.keys() - set(self.agents)):
            yield "cutoffs", self._stranger(agent)

    def _price_faults(self) -> Iterator[tuple[str, str]]:
        if (self.region is None) != (self.currency is None):
            lacking = "region" if self.region is None else "currency"
            yield lacking, "is missing: region and currency go together where costs are priced"
        if self.currency in (None, "USD"):
            if self.usd_rate not in (None, 1.0):
                yield "usd_rate", "is the price of a US dollar in another currency; name that as currency"
        elif self.usd_rate is None:
            yield "usd_rate", f"is missing: costs are measured in US dollars; say what one costs in {self.currency}"
