"""What validation costs beside the bare test runs. Run by `make bench`; needs a Docker engine and its base image.

Twenty candidates of the demo's size, one pass of both sides each: by evalpipe's own job (trees, boxes, reports,
Parquet, events), and the same test commands by a loop of `docker run` at the same parallelism, which finds its trees on
the disk. They take turns in one run, so that a busy machine is busy for both.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from evalpipe.config import Workspace
from evalpipe.demo.build import build_demo_repository
from evalpipe.pipeline import jobs
from evalpipe.pipeline.driver import Driver
from evalpipe.pipeline.partitions import CANDIDATES, RANGE_END, RANGE_START
from evalpipe.runners import TestPlan
from evalpipe.sandbox import SYMLINK, FileEntry, Limits
from evalpipe.sandbox.container import ROOT
from evalpipe.stages.bench import Workbench, runner_for
from evalpipe.stages.images import images_of
from evalpipe.stages.validating import ValidationPass, validation_limits
from evalpipe.stages.validation_rows import summaries
from evalpipe.validation import ChangeUnderTest, RunName, Side, side_files

CANDIDATE_COUNT: Final = 20
ROUNDS: Final = 4
_TOP: Final = Path(__file__).parents[1]
_USER: Final = 1000


@dataclass(frozen=True, slots=True)
class BareRun:
    """One `docker run` of the loop: its folder on the disk, which is the box's root, and what is run there."""

    folder: Path
    plan: TestPlan
    image: str
    limits: Limits
    network: str

    def command(self) -> list[str]:
        return [
            *("docker", "run", "--rm", "--network", self.network, "--user", f"{_USER}:{_USER}", "--read-only"),
            *("--memory", str(self.limits.memory_bytes), "--cpus", str(self.limits.cpus)),
            *("--pids-limit", str(self.limits.pids), "--tmpfs", "/tmp:rw,exec,size=1g"),
            *("--volume", f"{self.folder}:{ROOT}", "--workdir", f"{ROOT}/repo"),
            *(part for key, value in self.plan.env.items() for part in ("--env", f"{key}={value}")),
            *(self.image, *self.plan.command),
        ]


class Spent(NamedTuple):
    """Seconds on the clock, and of processors: those of this process and of the programs that it started."""

    wall: float
    cpu: float

    def __add__(self, other: object) -> Spent:
        assert isinstance(other, Spent)
        return Spent(self.wall + other.wall, self.cpu + other.cpu)


def main() -> None:
    """Print what each round took, and how much longer evalpipe took over all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("data/state/bench"), help="where the workspace is made")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--candidates", type=int, default=CANDIDATE_COUNT)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=options.folder) as folder:
        _measure(Path(folder).resolve(), options.rounds, options.candidates)


def _measure(root: Path, rounds: int, count: int) -> None:
    driver = _prepared(root, count)
    bench = driver.bench
    candidates = [row for row in bench.lake.rows("candidate_commits", "demo") if row["reason"] == "kept"]
    at_once = bench.boxes_at_once([validation_limits(bench.workspace.load_repository("demo"))])
    _validate(driver, candidates)  # says which runs there are, and wakes all that sleeps
    print(
        f"{len(candidates)} candidates, two sides each, {at_once} boxes at once; seconds on the clock (of processors)"
    )
    print(f"{'round':>5}  {'evalpipe':>16}  {'docker run':>16}", flush=True)
    evalpipe, loop = Spent(0, 0), Spent(0, 0)
    for number in range(1, rounds + 1):
        bare = list(_bare_runs(bench, candidates, root / f"bare-{number}"))
        shutil.rmtree(bench.lake.root / "validation_runs")
        # By turns the one and the other comes first, so that a machine that gets busier is fair to both.
        if number % 2:
            one = _timed(partial(_validate, driver, candidates))
            other = _timed(partial(_loop, bare, at_once))
        else:
            other = _timed(partial(_loop, bare, at_once))
            one = _timed(partial(_validate, driver, candidates))
        _require_reports(bare)
        print(f"{number:>5}  {_shown(one):>16}  {_shown(other):>16}", flush=True)
        evalpipe, loop = evalpipe + one, loop + other
    times = f"evalpipe takes {evalpipe.wall / loop.wall:.2f} times as long"
    print(f"{'all':>5}  {_shown(evalpipe):>16}  {_shown(loop):>16}  {times}")


def _shown(spent: Spent) -> str:
    return f"{spent.wall:.1f} ({spent.cpu:.1f})"


def _prepared(root: Path, count: int) -> Driver:
    """A workspace of the demo that is mined and has its image, with so many candidates."""
    for name in ("workspace.yaml", "dagster.yaml"):
        shutil.copy(_TOP / name, root)
    (root / "data/repos").mkdir(parents=True)
    shutil.copy(_TOP / "data/repos/demo.yaml", root / "data/repos")
    shutil.copytree(_TOP / "data/demo", root / "data/demo")
    bench = Workbench(Workspace(root), sandbox_kind="docker")
    build_demo_repository(root / "data/demo", root / "data/lake/demo/repository")
    driver = Driver(bench)
    driver.mine([bench.workspace.load_repository("demo")])
    rows = [row for row in bench.lake.rows("candidate_commits", "demo") if row["reason"] == "kept"]
    more = [{**row, "candidate_id": f"{row['candidate_id']}-again"} for row in rows]
    rows = [*rows, *more][:count]
    bench.lake.write("candidate_commits", rows, "demo")
    driver.instance.add_dynamic_partitions(str(CANDIDATES.name), [row["candidate_id"] for row in rows])
    driver.run(jobs.BUILD_IMAGES, partition="demo")
    return driver


def _validate(driver: Driver, candidates: Sequence[dict[str, Any]]) -> None:
    order = driver.instance.get_dynamic_partitions(str(CANDIDATES.name))
    chosen = sorted((row["candidate_id"] for row in candidates), key=order.index)
    first = ValidationPass.FIRST
    tags = {RANGE_START: f"{chosen[0]}|{first}", RANGE_END: f"{chosen[-1]}|{first}"}
    driver.run(jobs.VALIDATE, tags=tags)


def _bare_runs(bench: Workbench, candidates: Sequence[dict[str, Any]], root: Path) -> Iterator[BareRun]:
    """The runs that validation has just made, laid out on the disk."""
    config = bench.workspace.load_repository("demo")
    runner, images = runner_for(config.runner), images_of(bench, "demo")
    for row in candidates:
        change = ChangeUnderTest(row["candidate_id"], row["parent"], row["commit"], tuple(row["test_files"]))
        for run in summaries(bench.lake.rows("validation_runs", row["candidate_id"], ValidationPass.FIRST)):
            files = side_files(bench.mirror("demo"), change, Side(run["side"]))
            plan = runner.plan(ROOT, {file.path: file.data for file in files if file.mode != SYMLINK})
            folder = root / f"{row['candidate_id']}-{run['suite_run']}"
            _lay(folder, files, plan)
            image = bench.builder.locate(images[row["candidate_id"]]["image_digest"])
            network = "host" if run["suite_run"] == RunName.WITH_NETWORK else "none"
            yield BareRun(folder, plan, image, validation_limits(config), network)


def _lay(folder: Path, files: Sequence[FileEntry], plan: TestPlan) -> None:
    entries = [(b"repo/" + file.path, file.data) for file in files if file.mode != SYMLINK]
    for path, data in (*entries, *plan.files.items()):
        target = folder / os.fsdecode(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    # Whoever runs this may be another user than that of the box.
    subprocess.run(["chmod", "-R", "a+rwX", str(folder)], check=True)


def _loop(runs: Sequence[BareRun], at_once: int) -> None:
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda run: subprocess.run(run.command(), check=False, capture_output=True), runs))


def _require_reports(runs: Sequence[BareRun]) -> None:
    missing = [run.folder.name for run in runs if not (run.folder / run.plan.report_path).exists()]
    if missing:
        raise RuntimeError(f"the loop's runs left no report: {missing}")


def _timed(work: Callable[[], None]) -> Spent:
    started, before = time.monotonic(), _cpu_seconds()
    work()
    return Spent(time.monotonic() - started, _cpu_seconds() - before)


def _cpu_seconds() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
