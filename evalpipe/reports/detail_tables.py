"""The tables that explain a result: who solves what, how attempts ended, what does not count, what is no task."""

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis
from evalpipe.reports.records import SweepResults
from evalpipe.reports.solved import solved_by, solved_rows, solved_table
from evalpipe.reports.text_table import TextTable


def pair_table(analysis: Analysis) -> TextTable:
    """Return who solves which tasks, for every comparison fixed beforehand."""
    tallies = analysis.samples.tallies
    rows: list[tuple[str, ...]] = []
    for row in analysis.comparisons:
        found = solved_by(tallies[row.first, row.mode].counts, tallies[row.second, row.mode].counts)
        rows += solved_rows(row.first, row.second, row.mode, found)
    return solved_table(rows)


def outcome_table(analysis: Analysis) -> TextTable:
    """Return how attempts ended, by agent, mode, outcome and verdict."""
    rows = tuple(
        (
            wording.plain(row.agent, 60),
            wording.plain(row.mode, 30),
            wording.words(row.outcome),
            wording.words(row.verdict),
            "yes" if row.counts else "no",
            str(row.samples),
        )
        for row in analysis.outcomes
    )
    header = ("agent", "mode", "outcome of the attempt", "verdict", "counts", "samples")
    return TextTable(header, rows, numeric=frozenset({5}))


def excluded_table(analysis: Analysis) -> TextTable:
    """Return the attempts that do not count, with their reasons."""
    rows = tuple(
        (
            wording.plain(row.agent, 60),
            wording.plain(row.mode, 30),
            wording.words(row.outcome),
            str(row.attempts),
            wording.listed(row.tasks, 8),
        )
        for row in analysis.excluded
    )
    return TextTable(("agent", "mode", "reason", "attempts", "tasks"), rows, numeric=frozenset({3}))


def left_out_table(results: SweepResults, most: int) -> TextTable:
    """Return the candidates that are no tasks of the set, with their reasons: at most so many lines."""
    rows: list[tuple[str, ...]] = [
        (
            wording.plain(one.candidate_id, 120),
            wording.plain(one.repository, 60),
            wording.words(one.reason),
            wording.plain(one.detail, 200) or wording.NOTHING,
        )
        for one in results.left_out
    ]
    shown = rows[:most]
    if len(rows) > most:
        shown.append((f"and {len(rows) - most} more in validated_tasks", *[wording.NOTHING] * 3))
    return TextTable(("candidate", "repository", "reason", "evidence"), tuple(shown))
