"""What attempts took: time, calls, tokens, cost and lines changed, by the same definitions for every agent.

All attempts that count are in, resolved or not. What was not measured is None, never 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.reports import wording
from evalpipe.reports.records import SweepResults
from evalpipe.reports.samples import Samples
from evalpipe.reports.text_table import TextTable

MEASURES = ("attempt_seconds", "model_calls", "input_tokens", "cached_input_tokens", "output_tokens", "cost_usd")
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
class UsageRow:
    """One agent in one prompt mode, over `attempts` that count.

    `measures` are keyed by MEASURES. `lines` is lines changed (added and removed) over the reference change's, a ratio.
    `cost_per_resolved` (US dollars) is the cost of all attempts over the resolved ones; None unless the cost of every
    attempt is known and one resolved. `edited_tests`: attempts whose edits of test files were left out of the grading.
    """

    agent: str
    mode: str
    attempts: int
    resolved: int
    measures: Mapping[str, Spread | None]
    lines: Spread | None
    cost_per_resolved: float | None
    edited_tests: int


def usage_rows(results: SweepResults, samples: Samples) -> tuple[UsageRow, ...]:
    """Return a row per contender and mode."""
    return tuple(_row(results, samples, agent.name, mode) for agent in results.contenders for mode in results.modes)


def spread(values: Sequence[float | None]) -> Spread | None:
    """Return the spread of the values that there are; None without any."""
    known = np.asarray([value for value in values if value is not None], dtype=float)
    if not known.size:
        return None
    low, median, high = (float(value) for value in np.quantile(known, (0.25, 0.5, 0.75)))
    return Spread(int(known.size), low, median, high, float(known.sum()))


def _row(results: SweepResults, samples: Samples, agent: str, mode: str) -> UsageRow:
    rows = samples.chosen.filter((pc.field("agent") == agent) & (pc.field("prompt_mode") == mode) & pc.field("counts"))
    measures = {name: spread(rows[name].to_pylist()) for name in MEASURES}
    tally = samples.tallies[agent, mode]
    resolved = sum(count.passes for count in tally.counts.values())
    cost = measures["cost_usd"]
    complete = cost is not None and cost.number == rows.num_rows and resolved > 0
    edited = sum(number > 0 for number in pc.list_value_length(rows["ignored_paths"]).to_pylist())
    return UsageRow(
        agent=agent,
        mode=mode,
        attempts=rows.num_rows,
        resolved=resolved,
        measures=measures,
        lines=_lines(results, rows),
        cost_per_resolved=cost.total / resolved if cost and complete else None,
        edited_tests=edited,
    )


def _lines(results: SweepResults, rows: pa.Table) -> Spread | None:
    reference = {task.task_id: task.reference_lines for task in results.tasks}
    if not any(reference.values()):
        return None
    pairs = zip(rows["task_id"].to_pylist(), rows["patch_sha256"].to_pylist(), strict=True)
    ratios = []
    for task, digest in pairs:
        lines, most = results.patch_lines.get(digest) if digest else 0, reference[str(task)]
        if lines is not None and most:
            ratios.append(lines / most)
    return spread(ratios)


def usage_table(rows: tuple[UsageRow, ...]) -> TextTable:
    """Return medians with quartiles; costs in US dollars, as providers bill them."""
    header = (
        "agent",
        "mode",
        "attempts",
        "seconds",
        "model calls",
        "input tokens",
        "of them cached",
        "output tokens",
        "cost, USD",
        "cost per resolved, USD",
        "lines / reference's",
        "edited tests",
    )
    return TextTable(header, tuple(_cells(row) for row in rows), numeric=frozenset(range(2, len(header))))


def _cells(row: UsageRow) -> tuple[str, ...]:
    measured = [_quartiles(row.measures[name], 2 if name == "cost_usd" else 0) for name in MEASURES]
    resolved_cost = NOT_MEASURED if row.cost_per_resolved is None else f"{row.cost_per_resolved:,.2f}"
    if row.measures["cost_usd"] and not row.resolved:
        resolved_cost = "nothing resolved"
    return (
        wording.plain(row.agent, 60),
        wording.plain(row.mode, 30),
        str(row.attempts),
        *measured,
        resolved_cost,
        _quartiles(row.lines, 1),
        str(row.edited_tests),
    )


def _quartiles(found: Spread | None, digits: int) -> str:
    if found is None:
        return NOT_MEASURED
    low, median, high = (f"{value:,.{digits}f}" for value in (found.low, found.median, found.high))
    return f"{median} ({low} to {high})"


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
