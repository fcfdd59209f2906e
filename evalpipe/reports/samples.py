"""From graded rows to one count per agent, prompt mode and task: which attempt stands for a sample, and
what is missing. No loop over rows, because a sweep may have a million of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evalpipe.reports.records import SweepResults
from evalpipe.stats.counts import TaskCount

_Numbers = NDArray[np.int64]


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
    graded, places = results.graded, _places(results)
    expected = places >= 0
    stray = int((~expected).sum())
    if stray:
        graded, places = graded.filter(pa.array(expected)), places[expected]
    chosen, places = _choose(graded, places)
    return Samples(chosen=chosen, stray=stray, tallies=_tallies(results, chosen, places))


def _places(results: SweepResults) -> _Numbers:
    """The number of the sample that each row is of, counted by agent, mode, task and sample; -1 for none."""
    keys = [key for mode in results.modes for key in sample_keys(mode, results.samples_per_task)]
    agents, tasks = [agent.name for agent in results.agents], [task.task_id for task in results.tasks]
    agent, task, key = (
        _positions(results.graded, column, names)
        for column, names in (("agent", agents), ("task_id", tasks), ("sample", keys))
    )
    mode, sample = key // results.samples_per_task, key % results.samples_per_task
    shape = (len(results.modes), len(tasks), results.samples_per_task)
    place = ((agent * shape[0] + mode) * shape[1] + task) * shape[2] + sample
    return np.where((agent < 0) | (task < 0) | (key < 0), -1, place)


def _positions(table: pa.Table, column: str, names: Sequence[str]) -> _Numbers:
    found = pc.index_in(table[column], value_set=pa.array(names, pa.string()))
    known: Any = pc.fill_null(found, pa.scalar(-1, pa.int32()))
    positions: _Numbers = known.to_numpy().astype(np.int64)
    return positions


def _choose(graded: pa.Table, places: _Numbers) -> tuple[pa.Table, _Numbers]:
    # Mostly each sample has one attempt; a million rows with their tests are then neither sorted nor copied.
    if not places.size or np.bincount(places).max() == 1:
        return graded, places
    # Counting attempts first, earliest of them on top; behind them the others, latest on top.
    counts, attempt = _flags(graded["counts"]), graded["attempt"].to_numpy()
    order = np.lexsort((np.where(counts, attempt, -attempt), ~counts, places))
    rows = np.sort(order[np.unique(places[order], return_index=True)[1]])
    return graded.take(rows), places[rows]


def _flags(column: Any) -> NDArray[np.bool_]:
    """A chunked array of booleans; Arrow's stubs know most of them by another name."""
    flags: NDArray[np.bool_] = column.to_numpy().astype(bool)
    return flags


def _tallies(results: SweepResults, chosen: pa.Table, places: _Numbers) -> dict[tuple[str, str], Tally]:
    integrity = chosen["integrity"]
    counted = _flags(chosen["counts"])
    solved = counted & _flags(chosen["resolved"]) & ~_flags(pc.equal(integrity, pa.scalar("invalid")))
    flagged = counted & _flags(pc.equal(integrity, pa.scalar("flagged")))
    shape = (len(results.agents), len(results.modes), len(results.tasks), results.samples_per_task)
    grids = []
    for of in (np.ones(len(places), bool), counted, solved, flagged, solved & ~flagged):
        grid = np.zeros(shape, bool)
        grid.reshape(-1)[places[of]] = True
        grids.append(grid)
    return {
        (agent.name, mode): _tally(results, mode, *(grid[row, column] for grid in grids))
        for row, agent in enumerate(results.agents)
        for column, mode in enumerate(results.modes)
    }


def _tally(results: SweepResults, mode: str, *grids: NDArray[np.bool_]) -> Tally:
    """Count grids of task by sample: there, counting, solved, flagged, solved without a flag."""
    there, counted, solved, flagged, solved_clean = (grid.sum(axis=1).tolist() for grid in grids)
    names = [task.task_id for task in results.tasks]
    keys = sample_keys(mode, results.samples_per_task)

    def counts(passes: Sequence[int], samples: Sequence[int]) -> dict[str, TaskCount]:
        return {
            name: TaskCount(passed, number)
            for name, passed, number in zip(names, passes, samples, strict=True)
            if number
        }

    return Tally(
        counts=counts(solved, counted),
        counts_with_invalid=counts(solved, there),
        counts_without_flagged=counts(solved_clean, counted),
        graded=sum(counted),
        invalid=sum(there) - sum(counted),
        flagged=sum(flagged),
        missing=tuple((names[task], keys[sample]) for task, sample in np.argwhere(~grids[0])),
    )
