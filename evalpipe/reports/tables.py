"""The tables of a report as records: agents, categories, weighted totals, outcomes, excluded attempts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.reports.records import AgentInfo, SweepResults
from evalpipe.reports.samples import Samples, Tally
from evalpipe.reports.wording import LEAST_TASKS_FOR_A_RATE
from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import RateEstimate, task_clustered_wilson
from evalpipe.stats.passes import RepeatedPasses, Steadiness, repeated_passes, steadiness
from evalpipe.stats.power import planned_detectable_difference
from evalpipe.stats.weighted import EmptyCategoryError, WeightedTotal, weighted_total


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent in one prompt mode.

    `estimate` is pass@1 without invalid attempts; the two others, with counts of their own, take invalid and flagged
    attempts as not resolved. `detectable` is the difference from an agent much like this one that the sweep could see.
    All are None where nothing is graded, or where the sweep has no results and the agent is no control.
    """

    agent: AgentInfo
    mode: str
    counts: tuple[TaskCount, ...]
    counts_with_invalid: tuple[TaskCount, ...]
    counts_without_flagged: tuple[TaskCount, ...]
    estimate: RateEstimate | None
    with_invalid: RateEstimate | None
    without_flagged: RateEstimate | None
    repeated: RepeatedPasses | None
    steadiness: Steadiness | None
    detectable: float | None
    expected: int
    graded: int
    invalid: int
    flagged: int
    missing: tuple[tuple[str, str], ...]

    @property
    def enough_for_a_rate(self) -> bool:
        return len(self.counts) >= LEAST_TASKS_FOR_A_RATE


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """One agent in one prompt mode on the tasks of one category; `weight` is normalised, None without."""

    category: str
    agent: AgentInfo
    mode: str
    tasks_in_set: int
    counts: tuple[TaskCount, ...]
    estimate: RateEstimate | None
    weight: float | None
    variance_share: float | None

    @property
    def enough_for_a_rate(self) -> bool:
        return len(self.counts) >= LEAST_TASKS_FOR_A_RATE


@dataclass(frozen=True, slots=True)
class WeightedRow:
    """The workload-weighted total of one agent; `refused` says why there is none."""

    agent: AgentInfo
    mode: str
    total: WeightedTotal | None
    refused: str


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """How many chosen attempts of one agent ended with one outcome and one verdict."""

    agent: str
    mode: str
    outcome: str
    verdict: str
    counts: bool
    samples: int


@dataclass(frozen=True, slots=True)
class ExcludedRow:
    """Attempts that do not count, of one agent and one outcome; also those that a later attempt replaced."""

    agent: str
    mode: str
    outcome: str
    attempts: int
    tasks: tuple[str, ...]


def agent_rows(results: SweepResults, samples: Samples, *, valid: bool) -> tuple[AgentRow, ...]:
    """Return a row per agent and mode; contenders of an invalid sweep get their sample numbers only."""
    return tuple(
        _agent_row(results, agent, mode, samples.tallies[agent.name, mode], shown=valid or not agent.contends)
        for agent in results.agents
        for mode in results.modes
    )


def _agent_row(results: SweepResults, agent: AgentInfo, mode: str, tally: Tally, *, shown: bool) -> AgentRow:
    counts, with_invalid, without_flagged = (
        tuple(found.values()) if shown else ()
        for found in (tally.counts, tally.counts_with_invalid, tally.counts_without_flagged)
    )
    return AgentRow(
        agent=agent,
        mode=mode,
        counts=counts,
        counts_with_invalid=with_invalid,
        counts_without_flagged=without_flagged,
        estimate=task_clustered_wilson(counts),
        with_invalid=task_clustered_wilson(with_invalid),
        without_flagged=task_clustered_wilson(without_flagged),
        repeated=repeated_passes(counts),
        steadiness=steadiness(counts) if counts else None,
        detectable=planned_detectable_difference(counts) if agent.contends else None,
        expected=len(results.tasks) * results.samples_per_task,
        graded=tally.graded,
        invalid=tally.invalid,
        flagged=tally.flagged,
        missing=tally.missing,
    )


def weighted_rows(results: SweepResults, samples: Samples) -> tuple[WeightedRow, ...]:
    """Return the weighted total per agent and mode, or why it is refused; nothing without weights."""
    weights = results.weights
    if weights is None:
        return ()
    rows = []
    for agent in results.agents:
        for mode in results.modes:
            by_category = _by_category(results, samples.tallies[agent.name, mode].counts)
            try:
                rows.append(WeightedRow(agent, mode, weighted_total(by_category, weights), ""))
            except EmptyCategoryError as error:
                rows.append(WeightedRow(agent, mode, None, str(error)))
    return tuple(rows)


def category_rows(
    results: SweepResults, samples: Samples, weighted: tuple[WeightedRow, ...]
) -> tuple[CategoryRow, ...]:
    """Return a row per category, agent and mode; categories in the order of their size."""
    sizes = Counter(task.category for task in results.tasks)
    totals = {(row.agent.name, row.mode): row.total for row in weighted}
    rows = []
    for category, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        for agent in results.agents:
            for mode in results.modes:
                by_category = _by_category(results, samples.tallies[agent.name, mode].counts)
                counts = tuple(by_category.get(category, ()))
                total = totals.get((agent.name, mode))
                rows.append(
                    CategoryRow(
                        category=category,
                        agent=agent,
                        mode=mode,
                        tasks_in_set=size,
                        counts=counts,
                        estimate=task_clustered_wilson(counts),
                        weight=total.weights.get(category) if total else None,
                        variance_share=total.variance_shares.get(category) if total else None,
                    )
                )
    return tuple(rows)


def _by_category(results: SweepResults, counts: Mapping[str, TaskCount]) -> dict[str, list[TaskCount]]:
    found: dict[str, list[TaskCount]] = {}
    for task in results.tasks:
        if task.task_id in counts:
            found.setdefault(task.category, []).append(counts[task.task_id])
    return found


def outcome_rows(samples: Samples) -> tuple[OutcomeRow, ...]:
    """Return the chosen attempts counted by agent, mode, outcome and verdict."""
    keys = ["agent", "prompt_mode", "outcome", "verdict", "counts"]
    grouped = samples.chosen.group_by(keys).aggregate([([], "count_all")])
    ordered = grouped.sort_by([(key, "ascending") for key in keys[:-1]])
    return tuple(
        OutcomeRow(row["agent"], row["prompt_mode"], row["outcome"], row["verdict"], row["counts"], row["count_all"])
        for row in ordered.to_pylist()
    )


def excluded_rows(graded: pa.Table) -> tuple[ExcludedRow, ...]:
    """Return every attempt that does not count, by agent, mode and outcome."""
    keys = ["agent", "prompt_mode", "outcome"]
    invalid = graded.select([*keys, "task_id"]).filter(pc.invert(graded["counts"]))
    grouped = invalid.group_by(keys).aggregate([([], "count_all"), ("task_id", "distinct")])
    ordered = grouped.sort_by([(key, "ascending") for key in keys])
    return tuple(
        ExcludedRow(
            row["agent"],
            row["prompt_mode"],
            row["outcome"],
            row["count_all"],
            tuple(sorted(row["task_id_distinct"])),
        )
        for row in ordered.to_pylist()
    )
