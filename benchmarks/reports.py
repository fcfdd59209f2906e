"""Reads and aggregates 1,000,000 graded rows with their tests, beside plain pandas on the same files.

    python -m benchmarks.reports [ROWS_PER_TASK]

10 agents, 500 tasks and, unless told otherwise, 200 samples, in a file for each agent, as the lake keeps what was read
of a sweep. Each way runs in a process of its own: seconds and CPU seconds from the files to the scoreboard, and the
peak memory of the process with all that it imported.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from evalpipe.lake.schemas import GRADED_RESULTS
from evalpipe.reports.analysis import analyse
from evalpipe_tests.reports.big_sweep import big_sweep, graded_rows

_AGENTS, _TASKS = 10, 500


def evalpipe_way(folder: Path, samples: int) -> dict[str, float]:
    """pass@1 of each contender, with everything else that a report says."""
    from dataclasses import replace

    graded = pa.concat_tables([pq.read_table(path, schema=GRADED_RESULTS) for path in sorted(folder.glob("*.parquet"))])
    results = replace(big_sweep(_AGENTS, _TASKS, 1), samples_per_task=samples, graded=graded)
    return {row.agent.name: row.estimate.rate for row in analyse(results).agents if row.estimate}


def pandas_way(folder: Path, samples: int) -> dict[str, float]:
    """pass@1 of each agent as one would write it: read all, choose an attempt of each sample, mean of means."""
    frame = pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))])
    counted = frame[frame["counts"]].sort_values("attempt")
    chosen = counted.drop_duplicates(["agent", "prompt_mode", "task_id", "sample"])
    rates = chosen.groupby(["agent", "task_id"])["resolved"].mean().groupby("agent").mean()
    return {str(name): float(rate) for name, rate in rates.items()}


def _measured(way: Callable[[Path, int], dict[str, float]], folder: Path, samples: int, found: Any) -> None:
    started, before = time.monotonic(), time.process_time()
    rates = way(folder, samples)
    seconds, cpu_seconds = time.monotonic() - started, time.process_time() - before
    found.put((seconds, cpu_seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, rates))


def main() -> None:
    """Write the files, measure both ways, and print a line for each."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        names = [f"agent-{number}" for number in range(_AGENTS)]
        for seed, name in enumerate([*names, "reference", "empty"]):
            pq.write_table(graded_rows([name], _TASKS, samples, seed), folder / f"{name}.parquet")
        print(f"{_AGENTS * _TASKS * samples:,} rows of contenders, and the two controls")
        answers: list[dict[str, float]] = []
        for label, way in (("evalpipe, whole analysis", evalpipe_way), ("pandas, rates only", pandas_way)):
            queue: Any = context.Queue()
            process = context.Process(target=_measured, args=(way, folder, samples, queue))
            process.start()
            measured: tuple[float, float, float, dict[str, float]] = queue.get()
            seconds, cpu_seconds, mebibytes, rates = measured
            process.join()
            answers.append(rates)
            print(f"{label}: {seconds:.1f} s, {cpu_seconds:.1f} CPU s, {mebibytes:,.0f} MiB at most")
        same = all(abs(answers[0][name] - answers[1][name]) < 1e-12 for name in names)
        print("the same rates" if same else "DIFFERENT RATES")


if __name__ == "__main__":
    main()
