"""How much an agent loses when the prompt says less, and whether one agent loses more than another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.paired import PairedComparison, compare_differences, compare_paired

Counts = Mapping[str, TaskCount]


@dataclass(frozen=True, slots=True)
class PromptGap:
    """One agent on the same tasks with two prompts; `paired` is original minus terse.

    `ratio` is the terse rate over the original one on these tasks, None where the original prompt solved nothing. It is
    printed and not tested: the difference is.
    """

    paired: PairedComparison
    original_rate: float
    terse_rate: float

    @property
    def ratio(self) -> float | None:
        return self.terse_rate / self.original_rate if self.original_rate else None


def prompt_gap(original: Counts, terse: Counts) -> PromptGap | None:
    """Return the gap between two prompts on the tasks graded with both; None when there are none.

    Test and interval are those of `compare_paired`. Source: reference A8.
    """
    paired = compare_paired(terse, original)
    if paired is None:
        return None
    shared = original.keys() & terse.keys()
    return PromptGap(
        paired=paired,
        original_rate=float(sum(original[task].exact_rate for task in shared) / len(shared)),
        terse_rate=float(sum(terse[task].exact_rate for task in shared) / len(shared)),
    )


def task_gap_differences(
    first_original: Counts, first_terse: Counts, second_original: Counts, second_terse: Counts
) -> list[Fraction]:
    """Return by how much the gap of the first agent is larger than that of the second, task by task.

    (o_1 - t_1) - (o_2 - t_2) on the tasks graded in all four.
    """
    shared = sorted(first_original.keys() & first_terse.keys() & second_original.keys() & second_terse.keys())
    return [
        (first_original[task].exact_rate - first_terse[task].exact_rate)
        - (second_original[task].exact_rate - second_terse[task].exact_rate)
        for task in shared
    ]


def difference_of_gaps(differences: Sequence[Fraction]) -> PairedComparison | None:
    """Test the `task_gap_differences` of two agents; None without any."""
    return compare_differences(differences, most=2.0)
