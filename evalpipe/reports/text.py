"""The report for a terminal: plain text in aligned columns, nothing in it can steer the terminal."""

from collections.abc import Sequence

from evalpipe.reports import wording
from evalpipe.reports.analysis import analyse
from evalpipe.reports.cutoffs import cutoff_table
from evalpipe.reports.provenance import provenance
from evalpipe.reports.records import SweepResults
from evalpipe.reports.scoreboard import (
    INTERVAL_NOTE,
    comparison_table,
    funnel_table,
    review_table,
    scoreboard_table,
)
from evalpipe.reports.text_table import TextTable

_SIGNS_SHOWN = 10


def scoreboard_text(results: SweepResults) -> str:
    """Return question, answer, scoreboard, comparisons and cautions as lines without a newline at the end."""
    analysis = analyse(results)
    marks = f" · {wording.PROVISIONAL}" if analysis.provisional else ""
    lines = [
        f"Sweep {wording.plain(results.sweep)} · task set {wording.plain(results.task_set)} "
        f"({wording.count(len(results.tasks), 'task')}, {wording.plain(results.revision[:12])}) · "
        f"{wording.count(results.samples_per_task, 'sample')} per task{marks}",
        f"Decision: {wording.plain(results.decision, 500)}",
        "",
        analysis.answer,
        *(f"  no result: {finding.text}" for finding in analysis.no_result),
        "",
        *aligned(scoreboard_table(analysis)),
    ]
    if analysis.comparisons:
        lines += ["", *aligned(comparison_table(analysis))]
    if analysis.cutoffs:
        lines += ["", *aligned(cutoff_table(analysis.cutoffs))]
    if analysis.review:
        lines += ["", "To be read by a person:", *aligned(review_table(analysis, _SIGNS_SHOWN))]
    if analysis.cautions:
        lines += ["", "What limits this:", *(f"  - {finding.text}" for finding in analysis.cautions)]
    return "\n".join([*lines, "", INTERVAL_NOTE, f"{provenance(results)}."])


def funnel_text(mining: Sequence[tuple[str, int]], validation: Sequence[tuple[str, int]]) -> str:
    """Return the attrition funnel as aligned lines."""
    return "\n".join(aligned(funnel_table(mining, validation)))


def aligned(table: TextTable) -> list[str]:
    """Return a table as lines of aligned columns."""
    rows = (table.header, *table.rows)
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.header))]
    lines = [
        "  ".join(
            cell.rjust(width) if column in table.numeric else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]
