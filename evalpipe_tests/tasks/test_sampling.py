"""Samples: a rule that nobody can bend, and that the next candidate hardly moves."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.tasks import SampleTooLarge, Sampling, Task
from evalpipe.tasks.sampling import draw, quarter_of, shares
from evalpipe_tests.tasks.records import task_record

_TEMPLATE = task_record()


def _task(task_id: str, category: str = "other", merge_date: str = "2026-03-02T10:00:00+00:00") -> Task:
    return _TEMPLATE.model_copy(update={"task_id": task_id, "category": category, "merge_date": merge_date})


_DATES = st.sampled_from(
    [f"{year}-{month:02}-15T10:00:00+00:00" for year in (2025, 2026) for month in (1, 3, 5, 8, 12)]
)
_CATEGORIES = st.sampled_from(["single_file_repair", "multi_file_feature", "dependency_chore", "other"])


@st.composite
def _populations(draw_one: st.DrawFn, least: int = 1) -> list[Task]:
    places = draw_one(st.lists(st.tuples(_CATEGORIES, _DATES), min_size=least, max_size=40))
    return [_task(f"t{number}", *place) for number, place in enumerate(places)]


@st.composite
def _cases(draw_one: st.DrawFn) -> tuple[list[Task], Sampling]:
    tasks = draw_one(_populations())
    return tasks, Sampling(draw_one(st.integers(1, len(tasks))), draw_one(st.integers()))


def _stratum(task: Task) -> tuple[str, str]:
    return task.category, quarter_of(task.merge_date)


@given(_cases(), st.randoms(use_true_random=False))
def test_a_sample_depends_on_tasks_and_seed_and_not_on_their_order(
    case: tuple[list[Task], Sampling], rng: random.Random
) -> None:
    tasks, sampling = case
    shuffled = list(tasks)
    rng.shuffle(shuffled)
    assert draw(shuffled, sampling) == draw(tasks, sampling)


@given(_cases())
def test_a_sample_has_its_size_and_tells_each_stratum(case: tuple[list[Task], Sampling]) -> None:
    tasks, sampling = case
    drawn, record = draw(tasks, sampling)
    assert len(drawn) == sampling.size == record.size
    assert drawn <= {task.task_id for task in tasks}
    everything = Counter(_stratum(task) for task in tasks)
    sampled = Counter(_stratum(task) for task in tasks if task.task_id in drawn)
    assert {(one.category, one.quarter): one.candidates for one in record.strata} == everything
    assert {(one.category, one.quarter): one.sampled for one in record.strata if one.sampled} == sampled


@given(_cases())
def test_every_category_gets_its_proportional_share_but_for_rounding(case: tuple[list[Task], Sampling]) -> None:
    tasks, sampling = case
    _, record = draw(tasks, sampling)
    for category, count in Counter(task.category for task in tasks).items():
        exact = sampling.size * count / len(tasks)
        share = sum(one.sampled for one in record.strata if one.category == category)
        assert abs(share - exact) < 1
        for one in record.strata:
            if one.category == category:
                assert abs(one.sampled - share * one.candidates / count) < 1


@given(_cases())
def test_one_more_candidate_moves_its_own_stratum_by_one_and_the_shares_that_it_changes(
    case: tuple[list[Task], Sampling],
) -> None:
    tasks, sampling = case
    before, earlier = draw(tasks, sampling)
    added = _task("added", "other", "2026-03-02T10:00:00+00:00")
    after, later = draw([*tasks, added], sampling)
    shares_before = {(one.category, one.quarter): one.sampled for one in earlier.strata}
    shares_after = {(one.category, one.quarter): one.sampled for one in later.strata}
    for stratum in shares_before.keys() | shares_after.keys():
        kept = {task.task_id for task in tasks if _stratum(task) == stratum and task.task_id in before}
        found = {task.task_id for task in (*tasks, added) if _stratum(task) == stratum and task.task_id in after}
        moved = shares_after.get(stratum, 0) - shares_before.get(stratum, 0)
        own = 1 if stratum == _stratum(added) else 0
        # One goes out for the one that comes in, or a share grows or shrinks: never a reshuffle.
        assert len(found - kept) <= max(moved, 0) + own
        assert len(kept - found) <= max(-moved, 0) + own


@given(_populations(least=2), st.integers())
def test_a_whole_population_is_sampled_whole(tasks: list[Task], seed: int) -> None:
    drawn, _ = draw(tasks, Sampling(len(tasks), seed))
    assert drawn == {task.task_id for task in tasks}


@given(st.dictionaries(st.tuples(st.text(max_size=3)), st.integers(1, 50), min_size=1, max_size=8), st.data())
def test_shares_add_up_and_are_exact_but_for_rounding(counts: dict[tuple[str], int], data: st.DataObject) -> None:
    size = data.draw(st.integers(0, sum(counts.values())))
    found = shares(counts, size, 0)
    assert sum(found.values()) == size
    assert all(0 <= found[key] <= counts[key] for key in counts)
    assert all(abs(found[key] - size * counts[key] / sum(counts.values())) < 1 for key in counts)


def test_shares_of_a_known_case() -> None:
    counts = {("a",): 47, ("b",): 16, ("c",): 15, ("d",): 12, ("e",): 6, ("f",): 4}
    # The textbook example of the largest remainder: exact parts 4.7, 1.6, 1.5, 1.2, 0.6 and 0.4 of ten.
    assert shares(counts, 10, 0) == {("a",): 5, ("b",): 2, ("c",): 1, ("d",): 1, ("e",): 1, ("f",): 0}


def test_boring_categories_are_not_sampled_away() -> None:
    tasks = [_task(f"f{n}", "multi_file_feature") for n in range(30)]
    tasks += [_task(f"c{n}", "dependency_chore", f"2025-{n + 1:02}-01T00:00:00+00:00") for n in range(10)]
    _, record = draw(tasks, Sampling(8, 3))
    assert sum(one.sampled for one in record.strata if one.category == "dependency_chore") == 2


@pytest.mark.parametrize("seed", [1, 2])
def test_a_sample_of_known_tasks_stays_what_it_is(seed: int) -> None:
    """A seed that was written into a report draws the same tasks in every later version."""
    tasks = [_task(f"clock-{n}", merge_date=f"2026-0{1 + n % 6}-01T00:00:00+00:00") for n in range(12)]
    expected = {1: ["clock-10", "clock-11", "clock-7", "clock-8"], 2: ["clock-0", "clock-11", "clock-8", "clock-9"]}
    assert sorted(draw(tasks, Sampling(4, seed))[0]) == expected[seed]


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(SampleTooLarge, match="only 2 tasks could be frozen"):
        draw([_task("a"), _task("b")], Sampling(3, 0))


@pytest.mark.parametrize(
    ("date", "quarter"),
    [
        ("2026-01-01T00:00:00+00:00", "2026-Q1"),
        ("2026-03-31T23:59:59+00:00", "2026-Q1"),
        ("2026-04-01T01:00:00+02:00", "2026-Q1"),
        ("2026-12-31T23:00:00-02:00", "2027-Q1"),
        ("2026-12-31T23:00:00+00:00", "2026-Q4"),
    ],
)
def test_quarters_are_those_of_utc(date: str, quarter: str) -> None:
    assert quarter_of(date) == quarter
