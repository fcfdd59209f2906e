"""The same tables as Markdown, for the metadata of Dagster assets. Text from elsewhere is escaped."""

import html
import re
from collections.abc import Sequence

from evalpipe.reports.analysis import analyse
from evalpipe.reports.provenance import provenance
from evalpipe.reports.records import SweepResults
from evalpipe.reports.scoreboard import (
    INTERVAL_NOTE,
    category_table,
    comparison_table,
    funnel_table,
    review_table,
    scoreboard_table,
)
from evalpipe.reports.text_table import TextTable

_SIGNS_SHOWN = 50

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~])")


def scoreboard_markdown(results: SweepResults) -> str:
    """Return answer, scoreboard, comparisons, cautions and where the tasks come from."""
    analysis = analyse(results)
    parts = [f"**{escaped(analysis.answer)}**", markdown_table(scoreboard_table(analysis))]
    if analysis.comparisons:
        parts.append(markdown_table(comparison_table(analysis)))
    if analysis.review:
        parts += ["**To be read by a person**", markdown_table(review_table(analysis, _SIGNS_SHOWN))]
    findings = (*analysis.no_result, *analysis.cautions)
    if findings:
        parts.append("\n".join(f"- {escaped(finding.text)}" for finding in findings))
    return "\n\n".join([*parts, escaped(INTERVAL_NOTE), escaped(f"{provenance(results)}.")])


def category_markdown(results: SweepResults) -> str:
    """Return pass@1 per category, with the weighted total where the sweep has weights."""
    analysis = analyse(results)
    if not analysis.valid:
        return f"**{escaped(analysis.answer)}**"
    return markdown_table(category_table(analysis))


def funnel_markdown(mining: Sequence[tuple[str, int]], validation: Sequence[tuple[str, int]]) -> str:
    """Return the attrition funnel."""
    return markdown_table(funnel_table(mining, validation))


def markdown_table(table: TextTable) -> str:
    """Return a table whose cells cannot be markup."""
    rule = ["---:" if column in table.numeric else "---" for column in range(len(table.header))]
    lines = [[escaped(cell) for cell in row] for row in (table.header, *table.rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (lines[0], rule, *lines[1:]))


def escaped(cell: str) -> str:
    """Return text that Markdown shows as it is."""
    # Both, because Markdown lets HTML through: an image of an agent's choosing would be fetched by a reader.
    return html.escape(_MARKUP.sub(r"\\\1", cell), quote=False)
