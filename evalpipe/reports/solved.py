"""Which tasks two agents solve, by name: both, only one of them, neither.

With several samples a task counts as solved when more than half of them resolved it, so that one lucky sample does not
put a task on a list. The lists explain a difference; only the paired test judges it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from evalpipe.reports import wording
from evalpipe.reports.text_table import TextTable
from evalpipe.stats.counts import TaskCount

_NAMED = 12


@dataclass(frozen=True, slots=True)
class SolvedBy:
    """Tasks graded for both agents, by who solves them."""

    both: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    neither: tuple[str, ...]


def solved_by(first: Mapping[str, TaskCount], second: Mapping[str, TaskCount]) -> SolvedBy:
    """Sort the tasks graded for both agents by who solves them in most samples; in the order of `first`."""
    groups: dict[tuple[bool, bool], list[str]] = {}
    for task, count in first.items():
        if task in second:
            groups.setdefault((_solves(count), _solves(second[task])), []).append(task)
    return SolvedBy(
        both=tuple(groups.get((True, True), ())),
        only_first=tuple(groups.get((True, False), ())),
        only_second=tuple(groups.get((False, True), ())),
        neither=tuple(groups.get((False, False), ())),
    )


def solved_rows(first: str, second: str, mode: str, found: SolvedBy) -> list[tuple[str, ...]]:
    """Return the rows of one pair for `solved_table`."""
    pair = f"{wording.plain(first, 60)}, {wording.plain(second, 60)}"
    groups = (
        ("both", found.both),
        (f"only {wording.plain(first, 60)}", found.only_first),
        (f"only {wording.plain(second, 60)}", found.only_second),
        ("neither", found.neither),
    )
    return [
        (pair, wording.plain(mode, 30), who, str(len(tasks)), wording.listed(tasks, _NAMED) or wording.NOTHING)
        for who, tasks in groups
    ]


def solved_table(rows: list[tuple[str, ...]]) -> TextTable:
    """Return who solves which tasks, pair by pair."""
    return TextTable(("pair", "mode", "solved by", "tasks", "which"), tuple(rows), numeric=frozenset({3}))


def _solves(count: TaskCount) -> bool:
    return 2 * count.passes > count.samples
