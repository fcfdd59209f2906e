"""Looks whether the calls of the agents that are to run have a price; the doctor tells what was found."""

import datetime as dt
from collections.abc import Iterator

from evalpipe.config import AgentConfig, ProviderConfig, Workspace
from evalpipe.config.doctor import Finding
from evalpipe.gateway.prices import is_priced


def look_at_prices(workspace: Workspace) -> Iterator[Finding]:
    """A finding for each agent of a live sweep that calls a model, once."""
    providers = workspace.load_providers().items
    for _, agent in sorted(workspace.agents_of_live_sweeps().items()):
        if agent.provider in providers:
            yield _look_at(agent, providers[agent.provider])


def _look_at(agent: AgentConfig, provider: ProviderConfig) -> Finding:
    name = f"price of {agent.name}"
    if is_priced(provider.price_list, agent.model, dt.datetime.now(dt.UTC)):
        return Finding(name, True, f"{agent.model} is known to genai-prices ({provider.price_list})")
    listed = f"list {provider.price_list}" if provider.price_list else f"{provider.name} names no `price_list`"
    held = "its cost stays open" if agent.max_cost_usd is None else "`max_cost_usd` cannot be held, and it is not run"
    remedy = f"correct `model`, or `price_list` in data/providers/{provider.name}.yaml"
    if agent.max_cost_usd is not None:
        remedy += "; or limit `max_turns` or `max_tokens` in the place of the cost"
    return Finding(name, False, f"genai-prices does not know {agent.model} ({listed}): {held}", remedy, required=False)
