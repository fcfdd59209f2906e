"""What attempts took: time, calls, tokens, cost and lines changed, by the same definitions for every agent.

All attempts that count are in, resolved or not. What was not measured is None, never 0. Costs are measured in US
dollars and given in the currency of the sweep.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.reports import wording
from evalpipe.reports.records import Prices, SweepResults
from evalpipe.reports.samples import Samples
from evalpipe.reports.text_table import TextTable
from evalpipe.stats.intervals import Interval, t_interval

MEASURES = ("attempt_seconds", "model_calls", "input_tokens", "cached_input_tokens", "output_tokens", "cost")
NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles over `number` attempts, and their sum."""

    number: int
    low: float
    median: float
    high: float
    total: float


@dataclass(frozen=True, slots=True)
class MeanCost:
    """Mean cost of an attempt: the mean over tasks of their means, with its t interval over tasks."""

    mean: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One agent in one prompt mode, over `attempts` that count.

    `measures` are keyed by MEASURES. `lines` is lines changed (added and removed) over the reference change's, a ratio.
    `mean_cost`, and `cost_per_resolved`, the cost of all attempts over the resolved ones, are None unless the cost of
    every attempt is known. `edited_tests`: attempts whose edits of test files were left out of the grading.
    `style_checked` are patches that a task's style command looked at, `style_clean` those with which it was content.
    """

    agent: str
    mode: str
    attempts: int
    resolved: int
    measures: Mapping[str, Spread | None]
    lines: Spread | None
    mean_cost: MeanCost | None
    cost_per_resolved: float | None
    edited_tests: int
    style_checked: int
    style_clean: int


def usage_rows(results: SweepResults, samples: Samples) -> tuple[UsageRow, ...]:
    """Return a row per contender and mode; costs in the currency of the sweep."""
    table = measured(results, samples)
    return tuple(_row(table, samples, agent.name, mode) for agent in results.contenders for mode in results.modes)


def measured(results: SweepResults, samples: Samples) -> pa.Table:
    """Return the attempts that count, with MEASURES; `tokens` of input and output together, `lines` over the
    reference's, `edited` whether tests were."""
    chosen = samples.chosen
    names = ["agent", "prompt_mode", "task_id", "resolved", "style_clean", "attempt_seconds", "model_calls"]
    table = chosen.select([*names, "input_tokens", "cached_input_tokens", "output_tokens"])
    # What is no number was not measured.
    dollars = pc.if_else(pc.is_finite(chosen["cost_usd"]), chosen["cost_usd"], pa.scalar(None, pa.float64()))
    table = table.append_column("cost", pc.multiply(dollars, pa.scalar(results.prices.usd_rate)))
    table = table.append_column("tokens", pc.add(chosen["input_tokens"], chosen["output_tokens"]))
    table = table.append_column("lines", _line_ratios(results, chosen))
    table = table.append_column("edited", pc.greater(pc.list_value_length(chosen["ignored_paths"]), pa.scalar(0)))
    return table.filter(chosen["counts"])


def spread(values: "pa.ChunkedArray[Any]") -> Spread | None:
    """Return the spread of the values that there are; None without any."""
    known = values.drop_null().to_numpy()
    if not known.size:
        return None
    low, median, high = (float(value) for value in np.quantile(known, (0.25, 0.5, 0.75)))
    return Spread(int(known.size), low, median, high, float(known.sum()))


def _row(table: pa.Table, samples: Samples, agent: str, mode: str) -> UsageRow:
    rows = table.filter((pc.field("agent") == agent) & (pc.field("prompt_mode") == mode))
    measures = {name: spread(rows[name]) for name in MEASURES}
    resolved = sum(count.passes for count in samples.tallies[agent, mode].counts.values())
    cost = measures["cost"]
    complete = cost is not None and cost.number == rows.num_rows
    return UsageRow(
        agent=agent,
        mode=mode,
        attempts=rows.num_rows,
        resolved=resolved,
        measures=measures,
        lines=spread(rows["lines"]),
        mean_cost=_mean_cost(rows) if complete else None,
        cost_per_resolved=cost.total / resolved if cost and complete and resolved else None,
        edited_tests=pc.sum(rows["edited"], min_count=0).as_py(),
        style_checked=pc.count(rows["style_clean"]).as_py(),
        style_clean=pc.sum(rows["style_clean"], min_count=0).as_py(),
    )


def _mean_cost(rows: pa.Table) -> MeanCost:
    means = rows.group_by("task_id").aggregate([("cost", "mean")])["cost_mean"].to_numpy().tolist()
    return MeanCost(sum(means) / len(means), t_interval(means))


def _line_ratios(results: SweepResults, chosen: pa.Table) -> "pa.ChunkedArray[Any]":
    """Lines of each patch over those of the reference change; null where one is not known. No patch changes none."""
    lines = _looked_up(chosen["patch_sha256"], results.patch_lines)
    lines = pc.if_else(pc.is_null(chosen["patch_sha256"]), pa.scalar(0.0), lines)
    reference = {task.task_id: task.reference_lines for task in results.tasks if task.reference_lines}
    ratios: pa.ChunkedArray[Any] = pc.divide(lines, _looked_up(chosen["task_id"], reference))
    return ratios


def _looked_up(keys: "pa.ChunkedArray[Any]", values: Mapping[str, int]) -> "pa.ChunkedArray[Any]":
    places = pc.index_in(keys, value_set=pa.array(list(values), pa.string()))
    return pa.chunked_array([pa.array(list(values.values()), pa.float64())]).take(places)


def usage_table(rows: tuple[UsageRow, ...], prices: Prices) -> TextTable:
    """Return medians with quartiles; costs in the currency of the sweep. What nobody measured has no column."""
    currency = wording.plain(prices.currency, 10)
    header = (
        "agent",
        "mode",
        "attempts",
        f"cost per resolved, {currency}",
        f"cost, {currency}",
        "seconds",
        "model calls",
        "input tokens",
        "of them cached",
        "output tokens",
        "lines / reference's",
        "edited tests",
        "style clean",
    )
    table = TextTable(header, tuple(_cells(row) for row in rows), numeric=frozenset(range(2, len(header))))
    unknown = [name for name, *column in zip(header, *table.rows, strict=True) if set(column) == {NOT_MEASURED}]
    return table.without([*unknown, "mode"] if len({row.mode for row in rows}) == 1 else unknown)


def not_measured_note(rows: tuple[UsageRow, ...]) -> str:
    """Return in a sentence what was measured of no attempt; nothing when all was measured of some."""
    names = [
        name.removeprefix("attempt_").replace("_", " ")
        for name in MEASURES
        if not any(row.measures[name] for row in rows)
    ]
    return f"Not measured of any attempt: {', '.join(names)}." if rows and names else ""


def price_note(prices: Prices) -> str:
    """Return in a sentence what currency costs are in, at what rate and where."""
    currency, where = wording.plain(prices.currency, 10), wording.plain(prices.region, 80)
    rate = "as providers bill them" if currency == "USD" else f"at {prices.usd_rate:g} for one US dollar"
    return f"Costs are in {currency}, {rate}{f', prices of {where}' if where else ''}."


def _cells(row: UsageRow) -> tuple[str, ...]:
    amounts = [_quartiles(row.measures[name], wording.amount) for name in MEASURES if name != "cost"]
    resolved_cost = NOT_MEASURED if row.cost_per_resolved is None else _money(row.cost_per_resolved)
    if row.mean_cost and not row.resolved:
        resolved_cost = "nothing resolved"
    return (
        wording.plain(row.agent, 60),
        wording.plain(row.mode, 30),
        str(row.attempts),
        resolved_cost,
        _quartiles(row.measures["cost"], _money),
        *amounts,
        _quartiles(row.lines, wording.amount),
        str(row.edited_tests),
        f"{row.style_clean}/{row.style_checked}" if row.style_checked else NOT_MEASURED,
    )


def _quartiles(found: Spread | None, shown: Callable[[float], str]) -> str:
    if found is None:
        return NOT_MEASURED
    return f"{shown(found.median)} ({shown(found.low)} to {shown(found.high)})"


def _money(value: float) -> str:
    return f"{value:,.2f}"


def changed_lines(patch: bytes) -> int:
    """Return how many lines a git patch adds and removes, over text files: what `git diff --numstat` adds up to."""
    changed = old = new = 0
    for line in patch.split(b"\n"):
        if old <= 0 and new <= 0:
            old, new = _hunk(line) if line.startswith(b"@@ -") else (0, 0)
        elif line.startswith(b"+"):
            changed, new = changed + 1, new - 1
        elif line.startswith(b"-"):
            changed, old = changed + 1, old - 1
        elif not line.startswith(b"\\"):
            old, new = old - 1, new - 1
    return changed


def _hunk(header: bytes) -> tuple[int, int]:
    """The numbers of old and new lines of `@@ -1,3 +1,4 @@`; a number that is left out is 1."""
    ranges = header.split(b" ")[1:3]
    numbers = [part.partition(b",")[2] or b"1" for part in ranges]
    return (int(numbers[0]), int(numbers[1])) if all(number.isdigit() for number in numbers) else (0, 0)
