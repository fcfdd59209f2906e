from dataclasses import replace
from typing import Any

import pytest

from evalpipe.reports.samples import Tally, collect_samples, sample_keys
from evalpipe.stats.counts import TaskCount
from evalpipe_tests.reports.sweeps import SweepBuilder, graded_row, graded_table, rows_of, task

FIRST = task(0).task_id


def _tally(rows: list[dict[str, Any]], *, tasks: int = 2, samples: int = 2) -> Tally:
    results = SweepBuilder({"steady": [0] * tasks}, samples=samples).build()
    return collect_samples(replace(results, graded=graded_table(rows))).tallies["steady", "original"]


def test_sample_keys_carry_their_mode() -> None:
    assert sample_keys("terse", 2) == ["terse-1", "terse-2"]


def test_counts_per_task() -> None:
    tally = _tally(rows_of("steady", [2, 1], 2))
    assert list(tally.counts.values()) == [TaskCount(2, 2), TaskCount(1, 2)]
    assert (tally.graded, tally.invalid, tally.missing) == (4, 0, ())


def test_what_was_never_graded_is_named() -> None:
    tally = _tally([*rows_of("steady", [2], 2), graded_row("steady", "demo-001", "original-2", resolved=True)])
    assert tally.missing == (("demo-001", "original-1"),)
    assert tally.counts["demo-001"] == TaskCount(1, 1)


def test_an_invalid_attempt_leaves_the_rate_and_enters_the_bound() -> None:
    rows = rows_of("steady", [2, 2], 2)
    rows[0].update(counts=False, resolved=False, outcome="engine_error", verdict="not_graded")
    tally = _tally(rows)
    assert tally.counts[FIRST] == TaskCount(1, 1)
    assert tally.counts_with_invalid[FIRST] == TaskCount(1, 2)
    assert (tally.graded, tally.invalid, tally.missing) == (3, 1, ())


def test_a_task_with_invalid_attempts_only_is_in_the_bound_only() -> None:
    rows = rows_of("steady", [2, 2], 2)
    for row in rows[:2]:
        row.update(counts=False, resolved=False, outcome="engine_error")
    tally = _tally(rows)
    assert FIRST not in tally.counts
    assert tally.counts_with_invalid[FIRST] == TaskCount(0, 2)


def test_the_first_attempt_that_counts_stands_for_its_sample() -> None:
    rows = rows_of("steady", [0, 0], 1)
    rows[0].update(counts=False, outcome="engine_error")
    rows.append(graded_row("steady", FIRST, "original-1", resolved=False, attempt=2))
    rows.append(graded_row("steady", FIRST, "original-1", resolved=True, attempt=3))
    tally = _tally(rows, samples=1)
    assert tally.counts[FIRST] == TaskCount(0, 1)
    assert tally.invalid == 0


def test_without_an_attempt_that_counts_the_last_one_tells_why() -> None:
    results = SweepBuilder({"steady": [0]}, samples=1).build()
    rows = [
        graded_row("steady", FIRST, "original-1", resolved=False, counts=False, attempt=number, outcome=outcome)
        for number, outcome in ((1, "engine_error"), (3, "disk_full"), (2, "interrupted"))
    ]
    samples = collect_samples(replace(results, graded=graded_table(rows)))
    assert samples.chosen["outcome"].to_pylist() == ["disk_full"]
    assert samples.tallies["steady", "original"].invalid == 1


def test_flagged_attempts_are_counted_and_can_be_taken_as_failed() -> None:
    rows = rows_of("steady", [2, 2], 2)
    rows[0].update(integrity="flagged")
    tally = _tally(rows)
    assert tally.flagged == 1
    assert tally.counts[FIRST] == TaskCount(2, 2)
    assert tally.counts_without_flagged[FIRST] == TaskCount(1, 2)


def test_an_attempt_of_invalid_integrity_never_resolves() -> None:
    rows = rows_of("steady", [2, 2], 2)
    rows[0].update(integrity="invalid")
    assert _tally(rows).counts[FIRST] == TaskCount(1, 2)


@pytest.mark.parametrize(
    "row",
    [
        graded_row("stranger", FIRST, "original-1", resolved=True),
        graded_row("steady", "other-task", "original-1", resolved=True),
        graded_row("steady", FIRST, "original-9", resolved=True),
        graded_row("steady", FIRST, "terse-1", resolved=True),
    ],
)
def test_rows_of_no_sample_of_the_sweep_are_left_out_and_counted(row: dict[str, Any]) -> None:
    results = SweepBuilder({"steady": [1]}, samples=2, rows=[row]).build()
    samples = collect_samples(results)
    assert samples.stray == 1
    assert samples.tallies["steady", "original"].counts[FIRST] == TaskCount(1, 2)


def test_an_empty_table_is_all_missing() -> None:
    tally = _tally([])
    assert (tally.graded, len(tally.missing), dict(tally.counts)) == (0, 4, {})
