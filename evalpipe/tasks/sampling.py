"""Which of the tasks that could be frozen go into a set: all of them, or a seeded sample. A rule, not a taste.

A sample is stratified by category and, within each category, by the quarter of the merge date (UTC). Each stratum gets
its proportional share by the method of largest remainders (Hare quota), first the categories and then their quarters,
so that a category with many small quarters is not rounded away. Within a stratum the tasks come in the order of
SHA-256 of seed and task id. So nothing depends on an order of candidates, nobody can prefer an interesting task, and
another candidate moves no more than the shares that it changes.
"""

import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evalpipe.tasks.record import SampleRecord, StratumShare, Task

ALL = "all"
"""The rule of a set that has every task that could be frozen."""

Key = TypeVar("Key", bound=tuple[str, ...])


class SampleTooLarge(Exception):
    """More tasks are asked for than there are."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """A sample of `size` tasks, drawn by `seed`."""

    size: int
    seed: int

    @property
    def rule(self) -> str:
        """The rule as a reader of the set is told it."""
        return (
            f"sample of {self.size}, seed {self.seed}: stratified by category and quarter of the merge date, "
            f"proportional by largest remainders, within a stratum by SHA-256 of seed and task id"
        )


def draw(tasks: Sequence[Task], sampling: Sampling) -> tuple[frozenset[str], SampleRecord]:
    """The ids of the sampled tasks, and what each stratum gave. Raises SampleTooLarge."""
    if sampling.size > len(tasks):
        raise SampleTooLarge(
            f"a sample of {sampling.size} was asked for, and only {len(tasks)} tasks could be frozen: take fewer, "
            f"or all of them without --sample"
        )
    strata: dict[tuple[str, str], list[str]] = {}
    for task in tasks:
        strata.setdefault((task.category, quarter_of(task.merge_date)), []).append(task.task_id)
    categories = Counter((task.category,) for task in tasks)
    by_category = shares(categories, sampling.size, sampling.seed)
    drawn: set[str] = set()
    record = []
    for (category,), size in sorted(by_category.items()):
        quarters = {key: len(found) for key, found in strata.items() if key[0] == category}
        for key, share in sorted(shares(quarters, size, sampling.seed).items()):
            ranked = sorted(strata[key], key=lambda task_id: _rank(sampling.seed, task_id))
            drawn.update(ranked[:share])
            record.append(StratumShare(category=key[0], quarter=key[1], candidates=len(ranked), sampled=share))
    return frozenset(drawn), SampleRecord(size=sampling.size, seed=sampling.seed, strata=tuple(record))


def shares(counts: Mapping[Key, int], size: int, seed: int) -> dict[Key, int]:
    """Split `size`, at most the sum of `counts`, in proportion to them by the method of largest remainders.

    No share is above its count, and each is its exact part rounded down or up. Equal remainders go by hash.
    """
    total = sum(counts.values())
    found = {key: size * count // total for key, count in counts.items()}
    by_remainder = sorted(counts, key=lambda key: (-(size * counts[key] % total), _rank(seed, "\0".join(key))))
    for key in by_remainder[: size - sum(found.values())]:
        found[key] += 1
    return found


def quarter_of(date: str) -> str:
    """The quarter of a moment (ISO 8601) in UTC, as `2026-Q1`."""
    moment = dt.datetime.fromisoformat(date).astimezone(dt.UTC)
    return f"{moment.year:04}-Q{(moment.month + 2) // 3}"


def _rank(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}\0{name}".encode()).hexdigest()
