"""The gap between the original and the terse prompt: of each agent, and how it differs between agents."""

from dataclasses import dataclass

from evalpipe.reports import wording
from evalpipe.reports.records import SweepResults
from evalpipe.reports.samples import Samples
from evalpipe.reports.text_table import TextTable
from evalpipe.stats.gaps import PromptGap, difference_of_gaps, prompt_gap, task_gap_differences
from evalpipe.stats.multiple import LEVEL, holm
from evalpipe.stats.paired import PairedComparison
from evalpipe.stats.power import gap_detectable_difference, pilot_detectable_difference

ORIGINAL, TERSE = "original", "terse"


@dataclass(frozen=True, slots=True)
class GapRow:
    """An agent's gap, original minus terse; `adjusted_p` is Holm over the gaps of all agents.

    `detectable` is the gap that these data could have seen, at the level that Holm leaves the smallest of them.
    """

    agent: str
    gap: PromptGap | None
    adjusted_p: float | None
    detectable: float | None


@dataclass(frozen=True, slots=True)
class GapDifference:
    """By how much the gap of `first` is larger than that of `second`; Holm over all pairs fixed beforehand.

    `detectable` is None also where too few tasks differ to say what could have been seen.
    """

    first: str
    second: str
    paired: PairedComparison | None
    adjusted_p: float | None
    detectable: float | None


def gap_rows(results: SweepResults, samples: Samples) -> tuple[GapRow, ...]:
    """Return the gap of every contender; nothing unless the sweep ran both prompts."""
    if not {ORIGINAL, TERSE} <= set(results.modes):
        return ()
    sides = [
        (samples.tallies[agent.name, ORIGINAL].counts, samples.tallies[agent.name, TERSE].counts)
        for agent in results.contenders
    ]
    gaps = [prompt_gap(original, terse) for original, terse in sides]
    adjusted = holm([1.0 if gap is None else gap.paired.p_value for gap in gaps])
    return tuple(
        GapRow(
            agent=agent.name,
            gap=gap,
            adjusted_p=None if gap is None else p_value,
            detectable=pilot_detectable_difference(terse, original, alpha=LEVEL / len(gaps)),
        )
        for agent, gap, p_value, (original, terse) in zip(results.contenders, gaps, adjusted, sides, strict=True)
    )


def gap_differences(results: SweepResults, samples: Samples) -> tuple[GapDifference, ...]:
    """Return the difference of gaps of every pair that the sweep compares; nothing unless it ran both prompts."""
    if not {ORIGINAL, TERSE} <= set(results.modes):
        return ()
    by_task = [
        task_gap_differences(*(samples.tallies[name, mode].counts for name in pair for mode in (ORIGINAL, TERSE)))
        for pair in results.comparisons
    ]
    found = [difference_of_gaps(differences) for differences in by_task]
    adjusted = holm([1.0 if one is None else one.p_value for one in found])
    return tuple(
        GapDifference(
            first=first,
            second=second,
            paired=one,
            adjusted_p=None if one is None else p_value,
            detectable=gap_detectable_difference(differences, alpha=LEVEL / len(found)),
        )
        for (first, second), one, p_value, differences in zip(
            results.comparisons, found, adjusted, by_task, strict=True
        )
    )


def gap_table(rows: tuple[GapRow, ...], between: tuple[GapDifference, ...]) -> TextTable:
    """Return gaps and their differences, in points."""
    header = ("agent", "original", "terse", "terse / original", "gap", "95 % interval", "tasks", "result")
    cells = [_gap_cells(row) for row in rows]
    cells += [_difference_cells(row) for row in between]
    return TextTable(header, tuple(cells), numeric=frozenset({1, 2, 3, 4, 5, 6}))


def _gap_cells(row: GapRow) -> tuple[str, ...]:
    name, gap = wording.plain(row.agent, 60), row.gap
    if gap is None:
        return (name, *[wording.NOTHING] * 5, "0", "no task is graded with both prompts")
    enough = gap.paired.tasks >= wording.LEAST_TASKS_FOR_A_RATE
    rates = (gap.original_rate, gap.terse_rate, gap.ratio)
    return (
        name,
        *(wording.rate(rate if enough else None) for rate in rates),
        *_paired_cells(gap.paired),
        _sentence(row, gap.paired, "loses with the terse prompt", "gains with the terse prompt"),
    )


def _difference_cells(row: GapDifference) -> tuple[str, ...]:
    first, second = wording.plain(row.first, 60), wording.plain(row.second, 60)
    name = f"{first} minus {second}"
    if row.paired is None:
        return (name, *[wording.NOTHING] * 5, "0", "no task is graded with both prompts for both")
    return (
        name,
        *[wording.NOTHING] * 3,
        *_paired_cells(row.paired),
        _sentence(row, row.paired, f"{first} loses more than {second}", f"{second} loses more than {first}"),
    )


def _paired_cells(paired: PairedComparison) -> tuple[str, str, str]:
    return wording.paired_points(paired), wording.paired_interval(paired), str(paired.tasks)


def _sentence(row: GapRow | GapDifference, paired: PairedComparison, above: str, below: str) -> str:
    if row.adjusted_p is not None and row.adjusted_p <= LEVEL:
        return f"{above if paired.difference > 0 else below} ({wording.p_value(row.adjusted_p)})"
    if row.detectable is not None:
        return f"no difference detected (could have seen {wording.detectable(row.detectable)})"
    return "no difference detected (too few tasks to say what could have been seen)"
