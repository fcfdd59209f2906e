"""What a sweep would show and cost, before money is spent on it."""

import itertools
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from evalpipe.reports import wording
from evalpipe.reports.records import SweepResults
from evalpipe.reports.samples import collect_samples
from evalpipe.stats.multiple import LEVEL
from evalpipe.stats.planning import ASSUMED_SPREAD, Spread, pilot_spread, planned_difference, tasks_needed

_DIFFERENCES = (0.05, 0.10, 0.15, 0.20)


@dataclass(frozen=True, slots=True)
class SweepSize:
    """How large a sweep is to be. `comparisons` are those of its family for Holm, in all prompt modes.

    `smallest_difference` is the smallest one that matters to its decision; None where nobody says.
    """

    tasks: int
    samples: int
    agents: int
    modes: int
    comparisons: int
    smallest_difference: float | None = None

    @property
    def attempts(self) -> int:
        """Attempts of contenders; the controls call no model."""
        return self.tasks * self.samples * self.agents * self.modes


@dataclass(frozen=True, slots=True)
class AttemptCost:
    """What one attempt takes on average, agent and grading together; None where nobody knows.

    `currency` is empty for a price given without one.
    """

    seconds: float | None
    price: float | None
    currency: str


@dataclass(frozen=True, slots=True)
class Pilot:
    """What an earlier sweep says of a later one: the widest spread of any of its pairs, and what attempts took."""

    sweep: str
    spread: Spread | None
    cost: AttemptCost


def read_pilot(results: SweepResults) -> Pilot:
    """Return what `results` show for planning, over their contenders."""
    samples = collect_samples(results)
    pairs = itertools.combinations([agent.name for agent in results.contenders], 2)
    spreads = [
        pilot_spread(samples.tallies[first, mode].counts, samples.tallies[second, mode].counts)
        for first, second in pairs
        for mode in results.modes
    ]
    found = [spread for spread in spreads if spread is not None]
    contenders = [agent.name for agent in results.contenders]
    rows = samples.chosen.filter(pc.field("agent").isin(contenders))
    agent_seconds, grading_seconds = (pc.mean(rows[name]).as_py() for name in ("attempt_seconds", "grading_seconds"))
    dollars = pc.mean(rows["cost_usd"]).as_py()
    return Pilot(
        sweep=results.sweep,
        spread=max(found, key=lambda one: one.task_variance + one.chance_variance, default=None),
        cost=AttemptCost(
            seconds=None if agent_seconds is None else agent_seconds + (grading_seconds or 0.0),
            price=None if dollars is None else dollars * results.prices.usd_rate,
            currency=results.prices.currency,
        ),
    )


def plan_summary(size: SweepSize, cost: AttemptCost, pilot: Pilot | None) -> dict[str, Any]:
    """Return the plan as JSON values; differences are rates, None is not known or cannot be seen."""
    spread = pilot.spread if pilot and pilot.spread else ASSUMED_SPREAD
    alpha = LEVEL / max(1, size.comparisons)
    return {
        "tasks": size.tasks,
        "samples": size.samples,
        "agents": size.agents,
        "modes": size.modes,
        "comparisons": size.comparisons,
        "attempts": size.attempts,
        "container_hours": None if cost.seconds is None else size.attempts * cost.seconds / 3600,
        "cost": None if cost.price is None else size.attempts * cost.price,
        "currency": cost.currency or None,
        "detectable_difference": planned_difference(spread, tasks=size.tasks, samples=size.samples, alpha=alpha),
        "spread": "assumed" if spread is ASSUMED_SPREAD else f"pilot {pilot.sweep}" if pilot else "assumed",
        "tasks_needed": {
            f"{difference:.2f}": tasks_needed(spread, difference=difference, samples=size.samples, alpha=alpha)
            for difference in sorted({*_DIFFERENCES, size.smallest_difference or _DIFFERENCES[0]})
        },
    }


def plan_text(plan: dict[str, Any]) -> str:
    """Return a plan of `plan_summary` as lines for a terminal."""
    seen = plan["detectable_difference"]
    hours, cost = plan["container_hours"], plan["cost"]
    source = (
        "assumed: most tasks nearly always or nearly never solved, agents alike by .5"
        if plan["spread"] == "assumed"
        else f"as in {wording.plain(plan['spread'])}"
    )
    family = f"{wording.count(plan['comparisons'], 'comparison')} fixed beforehand"
    sees = "none: too few tasks for the test" if seen is None else f"{wording.detectable(seen)} or more"
    lines = [
        ("tasks x samples", f"{plan['tasks']} x {plan['samples']}"),
        ("agents, prompt modes", f"{plan['agents']}, {plan['modes']}"),
        ("difference it can see", f"{sees} (80 % power, {family})"),
        ("spread of tasks", source),
        ("attempts", f"{plan['attempts']:,}"),
        ("container hours", "not known: give --minutes or --pilot" if hours is None else f"{hours:,.1f}"),
        (
            "cost",
            "not known: give --price or a --pilot with costs"
            if cost is None
            else f"{cost:,.2f} {plan['currency'] or ''}".rstrip(),
        ),
        *(
            (f"tasks to see {wording.detectable(float(difference))}", f"{tasks:,}")
            for difference, tasks in plan["tasks_needed"].items()
        ),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in lines)
