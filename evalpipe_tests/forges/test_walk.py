"""A list is read whole while it changes, whatever is killed and updated in between."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.forges.records import Completed, Item, Kind, Page, Project, Row, Stream, written
from evalpipe.forges.walk import Cursor, walk
from evalpipe_tests.forges.server import moment

SIZE = 4


class MemoryForge:
    """A list of `number: seconds of its last update`, as a forge pages it. `happens` runs before each page."""

    def __init__(self, updated: dict[int, int]) -> None:
        self.updated = updated
        self.events: list[tuple[int, int]] = []
        self.pages = 0
        self.completed: list[tuple[int, datetime]] = []

    @property
    def identity(self) -> Row:
        return {}

    def project(self) -> Project:
        return Project(1, "a/b", (Stream.gitlab_issues,))

    def page(self, stream: Stream, since: datetime | None, query: str | None) -> Page:
        if self.events:
            number, seconds = self.events.pop()
            # An update is always now, after all others.
            self.updated[number] = max([0, *self.updated.values()]) + seconds
        self.pages += 1
        start = since or moment(0)
        if query is not None:
            place, begin = query.split("|")
            start, first = datetime.fromisoformat(place), int(begin)
        else:
            first = 0
        chosen = sorted((self.time(number), number) for number in self.updated if self.time(number) >= start)
        items = [self.item(number) for _, number in chosen[first : first + SIZE]]
        more = first + SIZE < len(chosen)
        return Page(items, f"{written(start)}|{first + SIZE}" if more else None)

    def complete(self, items: Sequence[Item]) -> Completed:
        self.completed += [(item.number, item.updated_at) for item in items]
        return Completed([item.row for item in items], ())

    def time(self, number: int) -> datetime:
        return moment(0) + timedelta(seconds=self.updated[number])

    def item(self, number: int) -> Item:
        row = {"number": number, "seconds": self.updated[number]}
        return Item(Kind.issue, number, moment(0), self.time(number), row, False, False)


def read(forge: MemoryForge, start: Cursor, steps: int | None = None) -> tuple[dict[int, Any], Cursor, bool]:
    """The rows of a walk, where it stands, and whether it came to its end before so many steps."""
    rows: dict[int, Any] = {}
    cursor = start
    for done, step in enumerate(walk(forge, Stream.gitlab_issues, start), 1):
        rows |= {row["number"]: row["seconds"] for row in step.completed.rows}
        cursor = step.cursor
        if done == steps:
            return rows, cursor, False
    return rows, cursor, True


updates = st.dictionaries(st.integers(1, 60), st.integers(0, 90), max_size=40)
events = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 20)), max_size=6)


@settings(max_examples=300, deadline=None)
@given(updates, events, st.lists(st.integers(1, 5), max_size=8))
def test_nothing_is_missed_when_it_is_killed_and_items_are_updated(
    updated: dict[int, int], happening: list[tuple[int, int]], kills: list[int]
) -> None:
    forge = MemoryForge(dict(updated))
    # At the first kill things begin to change, so that later runs meet pages that shifted.
    rows: dict[int, Any] = {}
    cursor = Cursor()
    for steps in kills:
        found, cursor, _ = read(forge, cursor, steps)
        rows |= found
        cursor = Cursor.from_json(cursor.to_json())
        forge.events = list(happening)
    found, cursor, _ = read(forge, cursor)
    rows |= found
    forge.events = []
    found, cursor, ended = read(forge, cursor)
    rows |= found
    assert ended
    assert rows == forge.updated


@settings(max_examples=200, deadline=None)
@given(updates, st.integers(1, 60))
def test_a_second_walk_completes_only_what_was_updated(updated: dict[int, int], number: int) -> None:
    forge = MemoryForge(dict(updated))
    _, cursor, _ = read(forge, Cursor())
    assert sorted(forge.completed) == sorted((item, forge.time(item)) for item in updated)
    forge.completed = []
    forge.events = [(number, 1)]
    _, again, _ = read(forge, cursor)
    assert forge.completed == [(number, forge.time(number))]
    forge.completed = []
    read(forge, again)
    assert forge.completed == []


def test_items_updated_one_after_another_cost_about_one_request_a_page() -> None:
    forge = MemoryForge({number: number for number in range(400)})
    read(forge, Cursor())
    assert forge.pages <= 2 * 400 / SIZE


class ShuffledForge(MemoryForge):
    """A server that does not sort."""

    def page(self, stream: Stream, since: datetime | None, query: str | None) -> Page:
        page = super().page(stream, since, query)
        return Page(list(reversed(page.items)), page.next_query)


def test_a_list_in_another_order_is_still_read_whole() -> None:
    forge = ShuffledForge({number: 30 * number for number in range(50)})
    rows, _, _ = read(forge, Cursor())
    assert rows == forge.updated


class BusyForge(MemoryForge):
    """Between any two pages an item is updated, for ever."""

    def page(self, stream: Stream, since: datetime | None, query: str | None) -> Page:
        self.events = [(self.pages % len(self.updated), 0)]
        return super().page(stream, since, query)


def test_a_list_that_never_rests_comes_to_an_end() -> None:
    forge = BusyForge(dict.fromkeys(range(40), 0))
    rows, _, ended = read(forge, Cursor(), 2000)
    assert ended
    assert set(rows) == set(forge.updated)


def test_a_list_by_creation_goes_on_at_its_page() -> None:
    class Growing(MemoryForge):
        def page(self, stream: Stream, since: datetime | None, query: str | None) -> Page:
            begin = int(query or 0)
            more = str(begin + 1) if begin < 3 else None
            return Page([self.item(begin + 1)], more)

    forge = Growing({1: 0, 2: 0, 3: 0, 4: 0})
    steps = list(walk(forge, Stream.github_pull_requests, Cursor(None, "2")))
    assert [number for number, _ in forge.completed] == [3, 4]
    assert steps[-1].cursor == Cursor()
    assert steps[1].cursor.to_json() == {"since": None, "query": "3", "seen": []}
