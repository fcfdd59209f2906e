"""Reads a list of a forge to its end, so that nothing is missed while it changes, and that a kill loses little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from evalpipe.forges.records import Completed, Forge, Item, Page, Row, Stream, read_time, written

_OVERLAP: Final = timedelta(seconds=5)
"""So far the next list reaches back: a forge may show an update a moment later than one that came after it."""
_AT_ONCE: Final = 25
"""Items completed together: a kill loses no more, and GitHub's GraphQL answers so many in good time."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a list was read: everything updated before `since` is done, and so is what `seen` holds (by number,
    with its time of update). `query` is the place in the list from there on."""

    since: datetime | None = None
    query: str | None = None
    seen: tuple[tuple[int, datetime], ...] = ()

    def fresh(self, items: Sequence[Item]) -> list[Item]:
        """The items that were not completed yet as they are now."""
        known = set(self.seen)
        return [item for item in items if (item.number, item.updated_at) not in known]

    def with_done(self, items: Sequence[Item]) -> Cursor:
        """The cursor when these items are completed too."""
        seen = dict(self.seen) | {item.number: item.updated_at for item in items}
        return Cursor(self.since, self.query, tuple(sorted(seen.items())))

    def after(self, stream: Stream, page: Page) -> Cursor:
        """The cursor when a page is completed.

        A list by time of update is asked anew from the last time seen, since its pages shift whenever an item is
        updated. Its next page is only asked for where many items share that time.
        """
        if not stream.by_update:
            return Cursor(None, page.next_query)
        times = [item.updated_at for item in page.items]
        horizon = times[-1] - _OVERLAP if times and times == sorted(times) else None
        if horizon is not None and (self.since is None or horizon > self.since):
            again = sum(time >= horizon for time in times)
            if page.next_query is None or again <= len(times) // 2:
                return Cursor(horizon, None, tuple((number, time) for number, time in self.seen if time >= horizon))
        return Cursor(self.since, page.next_query, self.seen)

    def resumed(self, stream: Stream) -> Cursor:
        """The cursor to go on with in another run: a place in a list that shifts is worth nothing then."""
        return Cursor(self.since, None, self.seen) if stream.by_update else self

    def to_json(self) -> Row:
        return {
            "since": self.since and written(self.since),
            "query": self.query,
            "seen": [[number, written(time)] for number, time in self.seen],
        }

    @classmethod
    def from_json(cls, value: Row) -> Cursor:
        """Read what `to_json` wrote; raises ValueError, KeyError or TypeError for anything else."""
        since = value["since"]
        return cls(
            since and read_time(since),
            value["query"],
            tuple((int(number), read_time(time)) for number, time in value["seen"]),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What one look brought, and how far the list is read with it."""

    completed: Completed
    cursor: Cursor


def walk(forge: Forge, stream: Stream, start: Cursor) -> Iterator[Step]:
    """Read a list from `start` to its end, a step at a time."""
    cursor = start
    while True:
        page = forge.page(stream, cursor.since, cursor.query)
        fresh = cursor.fresh(page.items)
        for first in range(0, len(fresh), _AT_ONCE):
            chunk = fresh[first : first + _AT_ONCE]
            completed = forge.complete(chunk)
            cursor = cursor.with_done(chunk)
            yield Step(completed, cursor)
        cursor = cursor.after(stream, page)
        yield Step(Completed((), ()), cursor)
        if page.next_query is None:
            return
