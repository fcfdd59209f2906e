"""A comparison of sweeps as tables, text, Markdown and JSON."""

from dataclasses import asdict
from typing import Any

from evalpipe.reports import wording
from evalpipe.reports.across import Drift, SweepComparison, SweepPair
from evalpipe.reports.markdown import escaped, markdown_table
from evalpipe.reports.scoreboard import comparison_cells, comparison_header
from evalpipe.reports.solved import solved_rows, solved_table
from evalpipe.reports.text import aligned
from evalpipe.reports.text_table import TextTable
from evalpipe.reports.usage import price_note, usage_table


def across_tables(found: SweepComparison) -> list[tuple[str, TextTable]]:
    """Return the pairs, who solves what, the drift of each category, and what attempts took, with their titles."""
    pairs = tuple(
        (*comparison_cells(pair.comparison)[:-1], _result(pair, number)) for number, pair in enumerate(found.pairs, 1)
    )
    solved = [
        row
        for pair in found.pairs
        for row in solved_rows(pair.comparison.first, pair.comparison.second, pair.comparison.mode, pair.solved)
    ]
    drift = tuple(_drift_cells(pair, row) for pair in found.pairs for row in pair.drift)
    header = ("first", "second", "mode", "category", "first", "second", "tasks", "second minus first", "95 % interval")
    return [
        ("Pairs", TextTable(comparison_header(), pairs, numeric=frozenset({3, 4, 5, 6}))),
        ("Solved in more than half of the samples", solved_table(solved)),
        ("By category, exploratory", TextTable(header, drift, numeric=frozenset({4, 5, 6, 7, 8}))),
        ("What attempts took, median and quartiles", usage_table(found.usage, found.prices)),
    ]


def across_footnotes(found: SweepComparison) -> list[str]:
    """Return the differences of manifests, by the number that stands behind the result of a pair."""
    return [f"[{number}] {line}" for number, pair in enumerate(found.pairs, 1) for line in pair.footnotes]


def across_text(found: SweepComparison) -> str:
    """Return the comparison as aligned lines."""
    lines = [f"Sweeps {', '.join(map(wording.plain, found.sweeps))} on {wording.count(len(found.tasks), 'task')}"]
    lines += [f"  {note}" for note in found.notes]
    for title, table in across_tables(found):
        lines += ["", title, *aligned(table)]
    footnotes = across_footnotes(found)
    return "\n".join([*lines, price_note(found.prices), *(["", *footnotes] if footnotes else [])])


def across_markdown(found: SweepComparison) -> str:
    """Return the comparison as Markdown."""
    parts = ["\n".join(f"- {escaped(note)}" for note in found.notes)]
    for title, table in across_tables(found):
        parts += [f"**{escaped(title)}**", markdown_table(table)]
    parts.append(escaped(price_note(found.prices)))
    footnotes = across_footnotes(found)
    return "\n\n".join([*parts, *(["\n".join(f"- {escaped(line)}" for line in footnotes)] if footnotes else [])])


def across_summary(found: SweepComparison) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    return {
        "sweeps": list(found.sweeps),
        "tasks": list(found.tasks),
        "notes": list(found.notes),
        "pairs": [_pair(pair) for pair in found.pairs],
        "prices": asdict(found.prices),
        "usage": [asdict(row) for row in found.usage],
    }


def _pair(pair: SweepPair) -> dict[str, Any]:
    row, paired = pair.comparison, pair.comparison.paired
    return {
        "first": row.first,
        "second": row.second,
        "mode": row.mode,
        "difference": paired.difference if paired else None,
        "interval": [paired.interval.low, paired.interval.high] if paired and paired.interval else None,
        "adjusted_p_value": row.adjusted_p,
        "detectable_difference": row.detectable,
        "verdict": row.sentence,
        "solved_by_both": list(pair.solved.both),
        "solved_by_first_only": list(pair.solved.only_first),
        "solved_by_second_only": list(pair.solved.only_second),
        "solved_by_neither": list(pair.solved.neither),
        "categories": {
            drift.category: {"tasks": drift.paired.tasks, "difference": drift.paired.difference} for drift in pair.drift
        },
        "manifest_differences": list(pair.footnotes),
    }


def _result(pair: SweepPair, number: int) -> str:
    return f"{pair.comparison.sentence} [{number}]" if pair.footnotes else pair.comparison.sentence


def _drift_cells(pair: SweepPair, row: Drift) -> tuple[str, ...]:
    enough = row.paired.tasks >= wording.LEAST_TASKS_FOR_A_RATE
    rates = [sum(count.rate for count in counts) / len(counts) for counts in (row.first, row.second)]
    shown = [
        wording.rate(rate) if enough else wording.fraction(counts)
        for rate, counts in zip(rates, (row.first, row.second), strict=True)
    ]
    return (
        wording.plain(pair.comparison.first, 60),
        wording.plain(pair.comparison.second, 60),
        wording.plain(pair.comparison.mode, 30),
        wording.words(row.category),
        *shown,
        str(row.paired.tasks),
        wording.paired_points(row.paired),
        wording.paired_interval(row.paired),
    )
