"""Which rows go into which plot."""

import math
from collections.abc import Sequence

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis, analyse
from evalpipe.reports.plots import ForestRow, HeatMap, Ticks, forest_png
from evalpipe.reports.records import SweepResults
from evalpipe.reports.scoreboard import agent_label
from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import RateEstimate


def agents_forest(analysis: Analysis) -> list[ForestRow]:
    """Return a row per agent with enough graded tasks for a rate, contenders first."""
    with_mode = len(analysis.results.modes) > 1
    rows = sorted(analysis.agents, key=lambda row: not row.agent.contends)
    return [
        _row(agent_label(row, with_mode=with_mode), row.estimate, row.counts) for row in rows if row.enough_for_a_rate
    ]


def category_forest(analysis: Analysis) -> list[ForestRow]:
    """Return, per category with enough tasks for a rate, a row per contender; at the end the weighted total."""
    with_mode = len(analysis.results.modes) > 1
    labels = {(row.agent.name, row.mode): agent_label(row, with_mode=with_mode) for row in analysis.agents}
    found: list[ForestRow] = []
    for category in dict.fromkeys(row.category for row in analysis.categories):
        shown = [
            _row(labels[row.agent.name, row.mode], row.estimate, row.counts)
            for row in analysis.categories
            if row.category == category and row.agent.contends and row.enough_for_a_rate and row.estimate
        ]
        if shown:
            found += [ForestRow(wording.words(category)), *shown]
    totals = [row for row in analysis.weighted if row.agent.contends and row.total]
    if totals:
        found.append(ForestRow("weighted total"))
    for row in totals:
        assert row.total is not None
        value = f"{wording.rate(row.total.rate)} ({wording.interval(row.total.interval)})"
        label = labels[row.agent.name, row.mode]
        found.append(ForestRow(label, value, row.total.rate, row.total.interval, emphasis=True))
    return found


def task_heat_map(analysis: Analysis) -> HeatMap:
    """Return solved of graded samples per task and agent, easiest task first.

    Without results only the controls are shown: they tell what went wrong.
    """
    with_mode = len(analysis.results.modes) > 1
    rows = [row for row in analysis.agents if analysis.valid or not row.agent.contends]
    rows.sort(key=lambda row: not row.agent.contends)
    counts = [analysis.samples.tallies[row.agent.name, row.mode].counts for row in rows]
    ease = {
        task.task_id: sum(
            column[task.task_id].rate
            for row, column in zip(rows, counts, strict=True)
            if task.task_id in column and row.agent.contends
        )
        for task in analysis.results.tasks
    }
    tasks = sorted(ease, key=lambda task_id: (-ease[task_id], task_id))
    provisional = {task.task_id for task in analysis.results.tasks if task.provisional}
    names = [f"{row.agent.name} {row.mode}" if with_mode else row.agent.name for row in rows]
    return HeatMap(
        tasks=tuple(f"{task} (provisional)" if task in provisional else task for task in tasks),
        agents=tuple(names),
        cells=tuple(tuple(_cell(column.get(task)) for column in counts) for task in tasks),
    )


def differences_forest(analysis: Analysis) -> list[ForestRow]:
    """Return a row per comparison with enough tasks for a rate, second minus first."""
    with_mode = len(analysis.results.modes) > 1
    rows = []
    for row in analysis.comparisons:
        if row.paired and row.paired.tasks >= wording.LEAST_TASKS_FOR_A_RATE:
            label = f"{row.second} minus {row.first}{f', {row.mode}' if with_mode else ''}"
            value = f"{wording.paired_points(row.paired)} ({wording.paired_interval(row.paired)})"
            better = row.better is not None
            rows.append(ForestRow(label, value, row.paired.difference, row.paired.interval, emphasis=better))
    return rows


def difference_ticks(rows: Sequence[ForestRow]) -> Ticks:
    """Return an axis in points that has its middle at no difference and room for every row."""
    ends = [abs(row.rate or 0.0) for row in rows]
    ends += [abs(end) for row in rows if row.interval for end in (row.interval.low, row.interval.high)]
    most = max(0.1, math.ceil(10 * max(ends, default=0.0)) / 10)
    return tuple((share * most, f"{round(100 * share * most):+d}" if share else "0") for share in (-1, -0.5, 0, 0.5, 1))


def scoreboard_png(results: SweepResults) -> bytes | None:
    """Return the forest plot of the agents as a small PNG for Dagster metadata; None without a rate."""
    rows = agents_forest(analyse(results))
    return forest_png(rows) if rows else None


def category_png(results: SweepResults) -> bytes | None:
    """Return the forest plot of the categories the same way; None without a category that has a rate."""
    rows = category_forest(analyse(results))
    return forest_png(rows) if rows else None


def comparison_png(results: SweepResults) -> bytes | None:
    """Return the forest plot of the differences the same way; None without a comparison."""
    rows = differences_forest(analyse(results))
    return forest_png(rows, difference_ticks(rows)) if rows else None


def _cell(count: TaskCount | None) -> tuple[int, int] | None:
    return None if count is None else (count.passes, count.samples)


def _row(label: str, estimate: RateEstimate | None, counts: tuple[TaskCount, ...]) -> ForestRow:
    assert estimate is not None
    value = f"{wording.estimate(estimate, counts)} ({wording.interval(estimate.interval)})"
    return ForestRow(label, value, estimate.rate, estimate.interval)
