"""From graded rows to one count per agent, prompt mode and task: which attempt stands for a sample, and
what is missing. Aggregated in Arrow, because a sweep may have a million rows."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.reports.records import SweepResults
from evalpipe.stats.counts import TaskCount

_KEYS = ["agent", "prompt_mode", "task_id", "sample"]


@dataclass(frozen=True, slots=True)
class Tally:
    """The samples of one agent in one prompt mode.

    `counts` has the tasks with at least one sample that counts. `counts_with_invalid` takes invalid
    attempts as not resolved, `counts_without_flagged` takes flagged ones as not resolved.
    `missing` are (task, sample) never graded.
    """

    counts: Mapping[str, TaskCount]
    counts_with_invalid: Mapping[str, TaskCount]
    counts_without_flagged: Mapping[str, TaskCount]
    graded: int
    invalid: int
    flagged: int
    missing: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """`chosen` has one row of graded_results per sample of the sweep; `stray` rows belong to none."""

    chosen: pa.Table
    stray: int
    tallies: Mapping[tuple[str, str], Tally]


def sample_keys(mode: str, samples_per_task: int) -> list[str]:
    """Return the keys `<mode>-1` to `<mode>-k` that a sweep expects of each task."""
    return [f"{mode}-{number}" for number in range(1, samples_per_task + 1)]


def collect_samples(results: SweepResults) -> Samples:
    """Choose one attempt per sample and count; rows of no expected sample are left out and counted as stray.

    The first attempt that counts stands for its sample: a later one must not replace a failure. Where none
    counts, the last attempt shows why.
    """
    expected = _expected(results)
    stray = results.graded.num_rows - pc.sum(expected.cast(pa.int64()), min_count=0).as_py()
    chosen = _choose(results.graded.filter(expected) if stray else results.graded)
    return Samples(
        chosen=chosen,
        stray=stray,
        tallies=_tallies(results, chosen),
    )


def _expected(results: SweepResults) -> pa.BooleanArray:
    graded = results.graded
    keys = [key for mode in results.modes for key in sample_keys(mode, results.samples_per_task)]
    agents = pa.array([agent.name for agent in results.agents], pa.string())
    tasks = pa.array([task.task_id for task in results.tasks], pa.string())
    known_agent = pc.is_in(graded["agent"], value_set=agents)
    known_task = pc.is_in(graded["task_id"], value_set=tasks)
    known_sample = pc.is_in(graded["sample"], value_set=pa.array(keys, pa.string()))
    return pc.and_(pc.and_(known_agent, known_task), known_sample)


def _choose(graded: pa.Table) -> pa.Table:
    # Mostly each sample has one attempt; a million rows with their tests are then neither sorted nor copied.
    if graded.group_by(_KEYS).aggregate([]).num_rows == graded.num_rows:
        return graded
    # Counting attempts first, earliest of them on top; behind them the others, latest on top.
    narrow = graded.select([*_KEYS, "attempt"]).append_column("late", pc.invert(graded["counts"]))
    sign = pc.if_else(graded["counts"], pa.scalar(1), pa.scalar(-1))
    narrow = narrow.set_column(len(_KEYS), "attempt", pc.multiply(graded["attempt"], sign))
    narrow = narrow.append_column("row", pa.array(range(graded.num_rows), pa.int64()))
    ordered = narrow.sort_by([(key, "ascending") for key in (*_KEYS, "late", "attempt")])
    first = ordered.group_by(_KEYS, use_threads=False).aggregate([("row", "first")])
    return graded.take(first["row_first"])


def _tallies(results: SweepResults, chosen: pa.Table) -> dict[tuple[str, str], Tally]:
    integrity = chosen["integrity"]
    counts = chosen["counts"]
    solved = pc.and_(pc.and_(chosen["resolved"], counts), pc.not_equal(integrity, pa.scalar("invalid")))
    flagged = pc.and_(counts, pc.equal(integrity, pa.scalar("flagged")))
    table = chosen.select(["agent", "prompt_mode", "task_id"])
    for name, values in (
        ("counted", counts),
        ("solved", solved),
        ("flagged", flagged),
        ("solved_clean", pc.and_not(solved, flagged)),
    ):
        table = table.append_column(name, values.cast(pa.int64()))
    sums = table.group_by(["agent", "prompt_mode", "task_id"]).aggregate(
        [("counted", "sum"), ("solved", "sum"), ("flagged", "sum"), ("solved_clean", "sum"), ([], "count_all")]
    )
    by_key: dict[tuple[str, str], list[dict[str, int | str]]] = {}
    for row in sums.to_pylist():
        by_key.setdefault((row["agent"], row["prompt_mode"]), []).append(row)
    return {
        (agent.name, mode): _tally(results, chosen, agent.name, mode, by_key.get((agent.name, mode), []))
        for agent in results.agents
        for mode in results.modes
    }


def _tally(results: SweepResults, chosen: pa.Table, agent: str, mode: str, rows: list[dict[str, int | str]]) -> Tally:
    numbers = {
        str(row["task_id"]): {name: int(value) for name, value in row.items() if isinstance(value, int)} for row in rows
    }
    ordered = {task.task_id: numbers[task.task_id] for task in results.tasks if task.task_id in numbers}
    present = sum(row["count_all"] for row in ordered.values())
    graded = sum(row["counted_sum"] for row in ordered.values())
    counted = {task: row for task, row in ordered.items() if row["counted_sum"]}
    return Tally(
        counts={task: TaskCount(row["solved_sum"], row["counted_sum"]) for task, row in counted.items()},
        counts_with_invalid={task: TaskCount(row["solved_sum"], row["count_all"]) for task, row in ordered.items()},
        counts_without_flagged={
            task: TaskCount(row["solved_clean_sum"], row["counted_sum"]) for task, row in counted.items()
        },
        graded=graded,
        invalid=present - graded,
        flagged=sum(row["flagged_sum"] for row in ordered.values()),
        missing=_missing(results, chosen, agent, mode, present),
    )


def _missing(
    results: SweepResults, chosen: pa.Table, agent: str, mode: str, present: int
) -> tuple[tuple[str, str], ...]:
    keys = sample_keys(mode, results.samples_per_task)
    if present == len(keys) * len(results.tasks):
        return ()
    mine = chosen.filter((pc.field("agent") == agent) & (pc.field("prompt_mode") == mode))
    there = set(zip(mine["task_id"].to_pylist(), mine["sample"].to_pylist(), strict=True))
    return tuple((task.task_id, key) for task in results.tasks for key in keys if (task.task_id, key) not in there)
