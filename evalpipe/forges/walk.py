"""Reads a list of a forge to its end, so that nothing is missed while it changes, and that a kill loses little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from evalpipe.forges.records import Completed, Forge, Item, Page, Row, Stream, read_time, written

_OVERLAP: Final = timedelta(seconds=5)
"""So far the next list reaches back: a forge may show an update a moment later than one that came after it."""
_MOST_PASSES: Final = 5
"""Readings of one part of a list, in a project so busy that none sees all that the last one saw: an item would have
to slip through every time."""
_AT_ONCE: Final = 25
"""Items completed together: a kill loses no more, and GitHub's GraphQL answers so many in good time."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a list was read: everything updated before `since` is done, and so is what `seen` holds (by number,
    with its time of update). `query` is the place in a list that has no such time."""

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

    def moved_to(self, horizon: datetime | None) -> Cursor:
        """The cursor when everything before a time is done; it never goes back."""
        if horizon is None or (self.since is not None and horizon <= self.since):
            return self
        return Cursor(horizon, None, tuple((number, time) for number, time in self.seen if time >= horizon))

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


@dataclass(slots=True)
class _Pass:
    """What one reading of a list from a time on saw, and how far it came."""

    items: set[tuple[int, datetime]] = field(default_factory=set)
    pages: int = 0
    horizon: datetime | None = None
    ended: bool = False

    def sees_again(self, earlier: _Pass) -> bool:
        """Whether everything is there that an earlier pass saw before its horizon."""
        horizon = earlier.horizon
        return self.items >= {item for item in earlier.items if horizon is None or item[1] < horizon}


def walk(forge: Forge, stream: Stream, start: Cursor) -> Iterator[Step]:
    """Read a list from `start` to its end, a step at a time."""
    return _by_update(forge, stream, start) if stream.by_update else _by_creation(forge, stream, start)


def _by_creation(forge: Forge, stream: Stream, cursor: Cursor) -> Iterator[Step]:
    """A list that only grows at its end: its pages never shift."""
    while True:
        page = forge.page(stream, None, cursor.query)
        yield from _completed(forge, page.items, cursor)
        cursor = Cursor(None, page.next_query)
        yield Step(Completed((), ()), cursor)
        if page.next_query is None:
            return


def _by_update(forge: Forge, stream: Stream, cursor: Cursor) -> Iterator[Step]:
    """A list by time of update. An item that is updated goes to its end, and all after its old place move up.

    So the next page is asked for by time, not by place. Where too many items share a time, places must do, and an
    item can slip through between two pages, but then the one whose update moved it is not at its place any more. So
    such a part is read again until a pass sees all that the pass before saw: that one was whole.
    """
    earlier: _Pass | None = None
    passes = 0
    while True:
        this = _Pass()
        query: str | None = None
        while True:
            page = forge.page(stream, cursor.since, query)
            for step in _completed(forge, cursor.fresh(page.items), cursor):
                cursor = step.cursor
                yield step
            query = _add(this, page, cursor.since)
            if query is None:
                break
        passes += 1
        whole = this if this.pages == 1 or passes == _MOST_PASSES else earlier
        if whole is None or (whole is earlier and not this.sees_again(earlier)):
            earlier = this
            continue
        cursor = cursor.moved_to(whole.horizon)
        yield Step(Completed((), ()), cursor)
        if whole.ended:
            return
        earlier, passes = None, 0


def _add(this: _Pass, page: Page, since: datetime | None) -> str | None:
    """Add a page to a pass. Returns the query of the page to read next, None when the pass ends with this one."""
    times = [item.updated_at for item in page.items]
    this.items |= {(item.number, item.updated_at) for item in page.items}
    this.pages += 1
    this.ended = page.next_query is None
    # A page in another order says nothing about what comes after it.
    if times and times == sorted(times):
        this.horizon = max(times[-1] - _OVERLAP, this.horizon or times[0] - _OVERLAP)
        moves = since is None or this.horizon > since
        # Asked anew from the horizon, so many items would come again.
        if moves and sum(time >= this.horizon for time in times) <= len(times) // 2:
            return None
    return page.next_query


def _completed(forge: Forge, items: Sequence[Item], cursor: Cursor) -> Iterator[Step]:
    for first in range(0, len(items), _AT_ONCE):
        chunk = items[first : first + _AT_ONCE]
        completed = forge.complete(chunk)
        cursor = cursor.with_done(chunk)
        yield Step(completed, cursor)
