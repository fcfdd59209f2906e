"""Which rows go into which plot."""

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis, analyse
from evalpipe.reports.plots import ForestRow, HeatMap, forest_png
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


def scoreboard_png(results: SweepResults) -> bytes | None:
    """Return the forest plot of the agents as a small PNG for Dagster metadata; None without samples."""
    rows = agents_forest(analyse(results))
    return forest_png(rows) if rows else None


def _cell(count: TaskCount | None) -> tuple[int, int] | None:
    return None if count is None else (count.passes, count.samples)


def _row(label: str, estimate: RateEstimate | None, counts: tuple[TaskCount, ...]) -> ForestRow:
    assert estimate is not None
    value = f"{wording.estimate(estimate, counts)} ({wording.interval(estimate.interval)})"
    return ForestRow(label, value, estimate.rate, estimate.interval)
