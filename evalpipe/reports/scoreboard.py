"""The cells of every table that is printed in more than one form: terminal, Markdown and HTML.

A table is a header and rows of finished text, so that all forms say the same.
"""

from collections.abc import Sequence

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis
from evalpipe.reports.comparisons import Comparison
from evalpipe.reports.tables import AgentRow, CategoryRow
from evalpipe.reports.text_table import TextTable
from evalpipe.stats.weighted import WeightedTotal

NO_SAMPLE = "no graded sample"
INTERVAL_NOTE = (
    "pass@1: mean over tasks of the share of samples that resolved the task. Intervals: 95 %, task-clustered "
    "Wilson, for work like these tasks. pass^k: chance that all of k samples resolve a task. “always / some / never”: "
    "tasks by how many of their samples resolved them. “sees”, “could have seen”: the smallest difference that would "
    "be detected with 80 % power, from an agent much like this one, and between the two of a pair."
)


def agent_label(row: AgentRow, *, with_mode: bool) -> str:
    """Return the name of an agent with what a reader must not overlook about it."""
    marks = [] if row.agent.contends else ["control"]
    if row.agent.contends and row.agent.scripted:
        marks.append("scripted")
    name = wording.plain(row.agent.name, 60)
    if with_mode:
        name = f"{name} · {wording.plain(row.mode, 30)}"
    return f"{name} ({', '.join(marks)})" if marks else name


def rate_header(analysis: Analysis) -> str:
    """Return the header over rates, marked when they rest on provisional tasks."""
    return "pass@1 (provisional)" if analysis.provisional else "pass@1"


def scoreboard_table(analysis: Analysis) -> TextTable:
    """Return pass@1 with interval per agent and mode, contenders first, in the order of the sweep.

    Rates with invalid or flagged attempts as failed stand there where any attempt is invalid or flagged.
    """
    results = analysis.results
    with_mode = len(results.modes) > 1
    header = (
        "agent",
        rate_header(analysis),
        "95 % interval",
        "tasks",
        "samples",
        "invalid",
        "missing",
        "invalid as failed",
        "flagged as failed",
        "pass^k",
        "always / some / never",
        "sees",
    )
    rows = sorted(analysis.agents, key=lambda row: not row.agent.contends)
    cells = tuple(_scoreboard_cells(row, with_mode=with_mode) for row in rows)
    same = {
        "invalid as failed": any(row.invalid for row in rows),
        "flagged as failed": any(row.flagged for row in rows),
    }
    table = TextTable(header, cells, numeric=frozenset(range(1, len(header))))
    return table.without([name for name, differs in same.items() if not differs])


def _scoreboard_cells(row: AgentRow, *, with_mode: bool) -> tuple[str, ...]:
    steady, repeated = row.steadiness, row.repeated if row.enough_for_a_rate else None
    return (
        agent_label(row, with_mode=with_mode),
        wording.estimate(row.estimate, row.counts),
        wording.estimate_interval(row.estimate),
        str(len(row.counts)),
        f"{row.graded}/{row.expected}",
        str(row.invalid),
        str(len(row.missing)),
        wording.estimate(row.with_invalid, row.counts_with_invalid),
        wording.estimate(row.without_flagged, row.counts_without_flagged),
        f"{wording.rate(repeated.pass_hat_k)} (k={repeated.k})" if repeated else wording.NOTHING,
        f"{steady.stable} / {steady.sometimes} / {steady.never}" if steady else wording.NOTHING,
        wording.detectable(row.detectable) if row.estimate and row.agent.contends else wording.NOTHING,
    )


def review_table(analysis: Analysis, most: int) -> TextTable:
    """Return the attempts that a person should read, with each sign and where it was seen: at most so many lines."""
    rows: list[tuple[str, ...]] = [
        (
            wording.plain(attempt.agent, 60),
            wording.plain(attempt.task_id, 60),
            wording.plain(attempt.sample, 30),
            "yes" if attempt.resolved else "no",
            wording.words(sign.sign),
            wording.plain(sign.place, 60),
            wording.plain(sign.evidence, 120),
        )
        for attempt in analysis.review
        for sign in attempt.signs
    ]
    shown = rows[:most]
    if len(rows) > most:
        shown.append((f"and {len(rows) - most} more signs in graded_results", *[wording.NOTHING] * 6))
    header = ("agent", "task", "sample", "resolved", "sign", "place", "evidence")
    return TextTable(header, tuple(shown))


def comparison_header() -> tuple[str, ...]:
    """Return the header over `comparison_cells`."""
    return (
        "first",
        "second",
        "mode",
        "second minus first",
        "95 % interval",
        "tasks",
        "second / first better",
        "result",
    )


def comparison_table(analysis: Analysis) -> TextTable:
    """Return the comparisons fixed beforehand; differences are second minus first, in points."""
    rows = tuple(comparison_cells(row) for row in analysis.comparisons)
    return TextTable(comparison_header(), rows, numeric=frozenset({3, 4, 5, 6}))


def comparison_cells(row: Comparison) -> tuple[str, ...]:
    """Return one comparison as cells."""
    paired = row.paired
    return (
        wording.plain(row.first, 60),
        wording.plain(row.second, 60),
        wording.plain(row.mode, 30),
        wording.paired_points(paired) if paired else wording.NOTHING,
        wording.paired_interval(paired) if paired else wording.NOTHING,
        str(paired.tasks) if paired else "0",
        f"{paired.second_better} / {paired.first_better}" if paired else wording.NOTHING,
        row.sentence,
    )


def category_table(analysis: Analysis) -> TextTable:
    """Return pass@1 per category, agent and mode, fractions below five tasks; then the total, weighted and plain.

    A share of variance says how much of the uncertainty of the weighted total a category brings.
    """
    with_mode = len(analysis.results.modes) > 1
    labels = {(row.agent.name, row.mode): agent_label(row, with_mode=with_mode) for row in analysis.agents}
    header = ("category", "agent", rate_header(analysis), "95 % interval", "tasks", "weight", "share of variance")
    rows = [
        (wording.words(row.category), labels[row.agent.name, row.mode], *_category_cells(row))
        for row in analysis.categories
        if row.agent.contends
    ]
    for total in analysis.weighted:
        if total.agent.contends:
            rows.append(("weighted total", labels[total.agent.name, total.mode], *_weighted_cells(total.total)))
    for row in analysis.agents:
        if row.agent.contends and analysis.weighted:
            interval = wording.estimate_interval(row.estimate)
            rate, tasks = wording.estimate(row.estimate, row.counts), str(len(row.counts))
            unweighted = (rate, interval, tasks, wording.NOTHING, wording.NOTHING)
            rows.append(("all tasks, unweighted", labels[row.agent.name, row.mode], *unweighted))
    table = TextTable(header, tuple(rows), numeric=frozenset({2, 3, 4, 5, 6}))
    return table if analysis.weighted else table.without(("weight", "share of variance"))


def _category_cells(row: CategoryRow) -> tuple[str, ...]:
    return (
        wording.estimate(row.estimate, row.counts),
        wording.estimate_interval(row.estimate),
        f"{len(row.counts)}/{row.tasks_in_set}",
        wording.rate(row.weight),
        wording.rate(row.variance_share),
    )


def _weighted_cells(total: WeightedTotal | None) -> tuple[str, ...]:
    if total is None:
        return ("refused", *[wording.NOTHING] * 4)
    tasks = sum(part.tasks for part in total.by_category.values())
    return (wording.rate(total.rate), wording.interval(total.interval), str(tasks), "1.00", "1.00")


def funnel_table(mining: Sequence[tuple[str, int]], validation: Sequence[tuple[str, int]]) -> TextTable:
    """Return every change looked at by reason, and every candidate by validation class, with totals.

    A stage that is not given has no rows.
    """
    rows: list[tuple[str, str, str]] = []
    for stage, everything, counts in (
        ("mined", "all changes looked at", mining),
        ("validated", "all candidates", validation),
    ):
        if counts:
            rows.append((stage, everything, str(sum(number for _, number in counts))))
            rows += [(stage, wording.words(name), str(number)) for name, number in counts]
    return TextTable(("stage", "reason or class", "changes"), tuple(rows), numeric=frozenset({2}))
