"""How fast evalpipe mines a long history, beside bare git and what else is used for it. Run by `make bench`.

For each size: a generated history is read by `git log`, by evalpipe for the first time, by evalpipe again after one
hundredth more changes came, by one `git diff --name-only` for each change, and by PyDriller. The last two would take an
hour, so they read a sample, and their seconds are scaled up to the whole; the output says so. All on one machine in one
run, each in a process of its own; CPU seconds are those of the process and of every git that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from benchmarks.histories import history

SIZES: Final = (10_000, 200_000)
DIFF_SAMPLE: Final = 200
PYDRILLER_SAMPLE: Final = 200

_BARE: Final = ("log", "--first-parent", "-m", "--raw", "-z")
_CONFIG: Final = "source: source.git\nmainline: main\nrunner:\n  name: pytest\n"


class Measured(NamedTuple):
    """Seconds on the clock, seconds of processors, and the largest memory of one process (its own, and any git's)."""

    label: str
    wall: float
    cpu: float
    memory_mib: float | None = None
    git_memory_mib: float | None = None
    note: str = ""


def main() -> None:
    """Print the table for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("data/state/bench"), help="where histories are kept")
    parser.add_argument("--changes", type=int, nargs="*", default=SIZES, help="mainline changes of each history")
    parser.add_argument("--mine", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mine:
        _mine(options.mine)
        return
    for changes in options.changes:
        path = history(options.folder, changes + changes // 100)
        with TemporaryDirectory(dir=options.folder) as folder:
            _report(changes, _measure(path, changes, Path(folder)))


def _measure(path: Path, changes: int, folder: Path) -> list[Measured]:
    newest = _git(path, "rev-parse", "main")
    before = _git(path, "rev-parse", f"main~{changes // 100}")
    _lay_workspace(folder, path)
    source = folder / "source.git"
    _git(source, "update-ref", "refs/heads/main", before)
    rows = [_timed("bare git log --first-parent -m --raw -z", lambda: _git(path, *_BARE, before, quiet=True))]
    rows.append(_evalpipe("evalpipe, first run", folder))
    _git(source, "update-ref", "refs/heads/main", newest)
    rows.append(_evalpipe(f"evalpipe, second run, {changes // 100} new", folder))
    rows.append(_timed("bare git again", lambda: _git(path, *_BARE, before, quiet=True)))
    rows.append(_one_diff_per_change(path, before, changes))
    rows.append(_pydriller(path, before, changes))
    return rows


def _lay_workspace(folder: Path, path: Path) -> None:
    """A workspace whose mirror is there already, by hard links: to fetch is no part of what is measured."""
    for name in ("source.git", "data/lake/repositories/bench.git"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _git(folder, "clone", "--quiet", "--bare", "--local", str(path), str(folder / name), in_folder=True)
        _git(folder / name, "commit-graph", "write", "--reachable")
    (folder / "data/repos").mkdir()
    (folder / "data/repos/bench.yaml").write_text(_CONFIG)
    (folder / "workspace.yaml").write_text("load_from: []\n")


def _evalpipe(label: str, folder: Path) -> Measured:
    command = [sys.executable, "-m", "benchmarks.mining", "--mine", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Measured(label, **json.loads(done.stdout))


def _mine(folder: Path) -> None:
    """The stage as the pipeline runs it, from the mirror to the rows in the lake; prints what it took as JSON."""
    from evalpipe.config import Workspace
    from evalpipe.stages.bench import Workbench
    from evalpipe.stages.mining import mine_repository

    bench = Workbench(Workspace(folder))
    config = bench.workspace.load_repository("bench")
    measured = _timed("", lambda: mine_repository(bench, config))
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    git = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    rows = sum(len(chunk) for chunk in bench.lake.chunks("candidate_commits", "bench", columns=["commit"]))
    kept = len(mine_repository(bench, config).kept)
    note = f"{rows} changes, {kept} kept"
    json.dump(
        {"wall": measured.wall, "cpu": measured.cpu, "memory_mib": own, "git_memory_mib": git, "note": note}, sys.stdout
    )


def _one_diff_per_change(path: Path, tip: str, changes: int) -> Measured:
    commits = _git(path, "rev-list", "--first-parent", tip).split()[:-1]
    sample = commits[:: max(1, len(commits) // DIFF_SAMPLE)][:DIFF_SAMPLE]

    def read() -> None:
        for commit in sample:
            _git(path, "diff", "--name-only", f"{commit}^1", commit)

    return _scaled("one git diff --name-only for each change", _timed("", read), len(sample), changes)


def _pydriller(path: Path, tip: str, changes: int) -> Measured:
    try:
        pydriller = import_module("pydriller")
    except ImportError:
        return Measured("PyDriller", 0.0, 0.0, note="not installed: pip install -e '.[bench]'")

    commits = _git(path, "rev-list", "--first-parent", tip).split()
    sample = commits[:: max(1, len(commits) // PYDRILLER_SAMPLE)][:PYDRILLER_SAMPLE]

    def read() -> None:
        for commit in sample:
            for found in pydriller.Repository(str(path), single=commit).traverse_commits():
                # Merge commits have none, by design.
                _paths = [file.new_path for file in found.modified_files]

    return _scaled("PyDriller, modified files", _timed("", read), len(sample), changes)


def _scaled(label: str, measured: Measured, sample: int, changes: int) -> Measured:
    factor = changes / sample
    note = f"{sample} changes read in {measured.wall:.1f} s, and scaled to {changes}"
    return Measured(label, measured.wall * factor, measured.cpu * factor, note=note)


def _timed(label: str, work: Callable[[], object]) -> Measured:
    cpu, wall = _cpu_seconds(), time.perf_counter()
    work()
    return Measured(label, time.perf_counter() - wall, _cpu_seconds() - cpu)


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


def _git(path: Path, *arguments: str, quiet: bool = False, in_folder: bool = False) -> str:
    where = ["-C", str(path)] if in_folder else [f"--git-dir={path}"]
    output = subprocess.DEVNULL if quiet else subprocess.PIPE
    done = subprocess.run(["git", *where, *arguments], check=True, stdout=output, text=True)
    return (done.stdout or "").strip()


def _report(changes: int, rows: Sequence[Measured]) -> None:
    bare = rows[0]
    print(f"\n{changes} mainline changes")
    print(f"{'':44}{'wall s':>10}{'x bare':>8}{'CPU s':>10}{'x bare':>8}{'MiB':>7}{'git MiB':>9}")
    for row in rows:
        memory = "".join(
            f"{value:>{width}.0f}" if value else " " * width
            for value, width in ((row.memory_mib, 7), (row.git_memory_mib, 9))
        )
        ratios = f"{row.wall:>10.2f}{row.wall / bare.wall:>8.2f}{row.cpu:>10.2f}{row.cpu / bare.cpu:>8.2f}"
        print(f"{row.label:44}{ratios}{memory}  {row.note}")


if __name__ == "__main__":
    main()
