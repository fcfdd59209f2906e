"""Mines several repositories at once, each in a process of its own: Python does one thing at a time in each process.

What a process did is in the lake; the repository's own run then fetches nothing, finds nothing new and only tells of
it. A failure is not told here, because that run meets it again.
"""

import os
from collections.abc import Sequence
from multiprocessing import connection, get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path

from evalpipe.config import Workspace
from evalpipe.stages.bench import Workbench
from evalpipe.stages.mining import mine_repository


def mine_ahead(bench: Workbench, names: Sequence[str]) -> None:
    """Mine the repositories with these names, as many at once as there are processors; a single one is left alone."""
    if len(names) < 2:
        return
    context = get_context("spawn")
    root = str(bench.workspace.root)
    processes = {name: context.Process(target=_mine, args=(root, name)) for name in names}
    waiting = list(reversed(processes.values()))
    running: list[SpawnProcess] = []
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                running.append(waiting.pop())
                running[-1].start()
            ended = connection.wait([process.sentinel for process in running])
            for process in [process for process in running if process.sentinel in ended]:
                process.join()
                running.remove(process)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.join()
    bench.just_fetched |= {name for name, process in processes.items() if process.exitcode == 0}


def _mine(root: str, name: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    bench = Workbench(Workspace(Path(root)))
    mine_repository(bench, bench.workspace.load_repository(name))
