"""pass@1 on tasks merged before and after a model's training cutoff: what the model may have seen, and what not.

The two are different tasks, so nothing is paired and nothing is tested: two rates, two intervals.
"""

from dataclasses import dataclass
from datetime import date

from evalpipe.reports import wording
from evalpipe.reports.records import SweepResults
from evalpipe.reports.samples import Samples
from evalpipe.reports.text_table import TextTable
from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import task_clustered_wilson


@dataclass(frozen=True, slots=True)
class CutoffRow:
    """An agent whose model's cutoff is known; tasks merged on the day of the cutoff count as before it."""

    agent: str
    mode: str
    cutoff: date
    before: tuple[TaskCount, ...]
    after: tuple[TaskCount, ...]


def cutoff_rows(results: SweepResults, samples: Samples) -> tuple[CutoffRow, ...]:
    """Return a row per contender with a known cutoff and mode."""
    merged = {task.task_id: task.merge_date for task in results.tasks}
    rows = []
    for agent in results.contenders:
        if agent.training_cutoff is not None:
            for mode in results.modes:
                counts = samples.tallies[agent.name, mode].counts
                before = tuple(count for task, count in counts.items() if merged[task] <= agent.training_cutoff)
                after = tuple(count for task, count in counts.items() if merged[task] > agent.training_cutoff)
                rows.append(CutoffRow(agent.name, mode, agent.training_cutoff, before, after))
    return tuple(rows)


def cutoff_table(rows: tuple[CutoffRow, ...]) -> TextTable:
    """Return both rates with their intervals; fractions below five tasks."""
    header = ("agent", "mode", "cutoff", "tasks before", "pass@1 before", "tasks after", "pass@1 after")
    cells = tuple(
        (
            wording.plain(row.agent, 60),
            wording.plain(row.mode, 30),
            row.cutoff.isoformat(),
            str(len(row.before)),
            _rate(row.before),
            str(len(row.after)),
            _rate(row.after),
        )
        for row in rows
    )
    return TextTable(header, cells, numeric=frozenset({3, 4, 5, 6}))


def _rate(counts: tuple[TaskCount, ...]) -> str:
    estimate = task_clustered_wilson(counts)
    text, interval = wording.estimate(estimate, counts), wording.estimate_interval(estimate)
    return text if interval == wording.NOTHING else f"{text} ({interval})"
