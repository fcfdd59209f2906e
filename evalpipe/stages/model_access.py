"""How the attempts of an agent reach its model: the gateway, the caps of an attempt, and the budget of the sweep."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalpipe.config import AgentConfig, ProviderConfig, SweepConfig
from evalpipe.gateway import (
    Caps,
    Evidence,
    Gateway,
    OpenAttempt,
    Provider,
    ProviderError,
    SweepBudget,
    WireForm,
    read_calls,
)
from evalpipe.gateway.recording import CALLS
from evalpipe.gateway.redaction import Redactor
from evalpipe.sandbox import ProcessSandbox
from evalpipe.stages.bench import Workbench


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """The way of one agent's attempts to its model, while it is open."""

    agent: AgentConfig
    gateway: Gateway
    budget: SweepBudget | None
    secrets: tuple[str, ...] = ()

    def redacted(self, data: bytes) -> bytes:
        """`data` without the provider's key, which a provider can say to an agent in an answer."""
        redactor = Redactor(self.secrets)
        return redactor.feed(data) + redactor.finish()

    @contextmanager
    def attempt(self, attempt_id: str, folder: Path) -> Iterator[OpenAttempt | None]:
        """A key and a socket for one attempt, in its turn among those that use the provider.

        None when the budget has not the worst case of an attempt; nothing is then reserved. `folder` receives the
        journal of its calls. What the attempt cost is settled at its end. Raises ProviderError.
        """
        provider = self.agent.provider
        assert provider is not None
        with self.gateway.slot(provider):
            if self.budget is not None and not self.budget.reserve(attempt_id, _worst_case(self.agent)):
                yield None
                return
            try:
                model = self.gateway.open_attempt(
                    attempt_id, provider, model=self.agent.model, caps=_caps(self.agent), folder=folder
                )
            except (ProviderError, OSError):
                self._settle(attempt_id, Decimal(0))
                raise
            with model:
                yield model
            self._settle(attempt_id, model.close().cost_usd)

    def _settle(self, attempt_id: str, cost_usd: Decimal | None) -> None:
        if self.budget is not None:
            self.budget.settle(attempt_id, cost_usd)


@contextmanager
def open_model_access(bench: Workbench, sweep: SweepConfig, agent: AgentConfig) -> Iterator[ModelAccess | None]:
    """The gateway of an agent's attempts; None for an agent that calls no model.

    Raises ConfigError for its provider, ProviderError when the provider's key is not there or would not be hidden, or a
    limit of cost is to be held for a model without a price.
    """
    if agent.provider is None:
        yield None
        return
    provider = gateway_provider(bench.workspace.load_provider(agent.provider))
    if provider.key_variable and isinstance(bench.sandbox, ProcessSandbox) and not bench.sandbox.hides_processes:
        raise ProviderError(
            f"{agent.name}: on this kernel, agents that run as processes can read {provider.key_variable} from the "
            "environment of other processes: use Docker"
        )
    key = provider.key()  # Before anything is built or begun for it.
    gateway = Gateway(
        [provider],
        records_bodies=sweep.record_bodies,
        silence_s=sweep.limits.silence_s,
        places=bench.workspace.state_dir / "providers",
    )
    with gateway:
        if agent.max_cost_usd is not None:
            gateway.require_price(agent.provider, agent.model)
        budget = sweep_budget(bench, sweep)
        if budget is not None:
            budget.include(_paid(bench, sweep))
        yield ModelAccess(agent, gateway, budget, (key,) if key else ())


def _paid(bench: Workbench, sweep: SweepConfig) -> dict[str, Decimal]:
    """What each attempt of a sweep has cost that says so, whichever machine made it, in US dollars."""
    rows = bench.lake.read("agent_runs", sweep.name).select(["attempt_id", "cost_usd"]).to_pylist()
    return {row["attempt_id"]: Decimal(str(row["cost_usd"])) for row in rows if row["cost_usd"] is not None}


def sweep_budget(bench: Workbench, sweep: SweepConfig) -> SweepBudget | None:
    """The budget of a sweep, kept in the lake with what was paid; None without one."""
    if sweep.budget_usd is None:
        return None
    return SweepBudget(bench.lake.root / "budgets" / f"{sweep.name}.sqlite", Decimal(str(sweep.budget_usd)))


def gateway_provider(config: ProviderConfig) -> Provider:
    """A provider as the gateway has it."""
    forms = frozenset(WireForm(form) for form in config.forms)
    return Provider(config.name, config.base_url, forms, config.key_variable, config.price_list, config.concurrency)


def calls_folder(bench: Workbench, place: tuple[str, ...], attempt: int) -> Path:
    """Where the journal of an attempt's calls is written, and the bodies where they are kept."""
    return bench.lake.root.joinpath("calls", *place, str(attempt))


def recorded_calls(bench: Workbench, place: tuple[str, ...], attempt: int) -> Path:
    """The same of an attempt that has ended, whichever machine made it. Raises StoreError."""
    folder = calls_folder(bench, place, attempt)
    bench.lake.folder.look(folder)
    return folder


def usage_columns(evidence: Evidence | None) -> dict[str, Any]:
    """What an attempt used, as columns of `agent_runs`; all are null for an agent without a model."""
    if evidence is None:
        return {}
    usage, cost = evidence.usage, evidence.cost_usd
    return {
        "model_calls": evidence.succeeded,
        "input_tokens": usage.input,
        "cached_input_tokens": usage.cached,
        "cache_write_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "reasoning_tokens": usage.reasoning,
        "cost_usd": None if cost is None else float(cost),
        "rate_limit_wait_s": evidence.rate_limit_wait_s,
        "usage_warnings": list(evidence.warnings),
    }


def usage_of_interrupted(bench: Workbench, sweep: SweepConfig, row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The row of an attempt that evalpipe did not see the end of, with what its journal says it used.

    The budget then has what it cost in the place of its worst case. Each call is in the journal before it is sent, so
    without one there was none. What an attempt used on another machine stays unknown: its journal is there.
    """
    if row["model_calls"] is not None or not folder.exists():
        return row
    evidence = read_calls(folder / CALLS) if (folder / CALLS).exists() else Evidence(())
    budget = sweep_budget(bench, sweep)
    if budget is not None and row["attempt_id"] in budget.unsettled():
        budget.settle(row["attempt_id"], evidence.cost_usd)
    return row | usage_columns(evidence)


def _caps(agent: AgentConfig) -> Caps:
    cost = None if agent.max_cost_usd is None else _worst_case(agent)
    return Caps(calls=agent.max_turns, tokens=agent.max_tokens, cost_usd=cost)


def _worst_case(agent: AgentConfig) -> Decimal:
    assert agent.max_cost_usd is not None  # check_references requires it of sweeps with a budget
    return Decimal(str(agent.max_cost_usd))
