"""What validation costs beside the bare test runs. Run by `make bench`; needs a Docker engine and its base image.

Twenty candidates of the demo's size, one pass of both sides each: by evalpipe's own job (trees, boxes, reports,
Parquet, events), and the same test commands by a loop of `docker run` at the same parallelism, which finds its trees on
the disk. They take turns in one run, so that a busy machine is busy for both.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

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
ROUNDS: Final = 3
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


def main() -> None:
    """Print the seconds of each round, and how much longer evalpipe took over all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("data/state/bench"), help="where the workspace is made")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=options.folder) as folder:
        _measure(Path(folder).resolve(), options.rounds)


def _measure(root: Path, rounds: int) -> None:
    driver = _prepared(root)
    bench = driver.bench
    candidates = [row for row in bench.lake.rows("candidate_commits", "demo") if row["reason"] == "kept"]
    config = bench.workspace.load_repository("demo")
    at_once = bench.boxes_at_once([validation_limits(config)])
    print(f"{len(candidates)} candidates, two sides each, {at_once} boxes at once; seconds on the clock", flush=True)
    print(f"{'round':>5}  {'evalpipe':>9}  {'docker run':>10}", flush=True)
    totals = [0.0, 0.0]
    for number in range(1, rounds + 1):
        shutil.rmtree(bench.lake.root / "validation_runs", ignore_errors=True)
        validated = _timed(lambda: _validate(driver, candidates))
        bare = list(_bare_runs(bench, candidates, root / f"bare-{number}"))
        looped = _timed(lambda runs=bare: _loop(runs, at_once))
        _require_reports(bare)
        seconds = (validated, looped)
        print(f"{number:>5}  {seconds[0]:>9.1f}  {seconds[1]:>10.1f}", flush=True)
        totals = [total + one for total, one in zip(totals, seconds, strict=True)]
    print(
        f"{'all':>5}  {totals[0]:>9.1f}  {totals[1]:>10.1f}  evalpipe takes {totals[0] / totals[1]:.2f} times as long"
    )


def _prepared(root: Path) -> Driver:
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
    rows = [*rows, *more][:CANDIDATE_COUNT]
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
    (folder / "out").mkdir()
    # Whoever runs this may be another user than that of the box.
    subprocess.run(["chmod", "-R", "a+rwX", str(folder)], check=True)


def _loop(runs: Sequence[BareRun], at_once: int) -> None:
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda run: subprocess.run(run.command(), check=False, capture_output=True), runs))


def _require_reports(runs: Sequence[BareRun]) -> None:
    missing = [run.folder.name for run in runs if not (run.folder / run.plan.report_path).exists()]
    if missing:
        raise RuntimeError(f"the loop's runs left no report: {missing}")


def _timed(work: Any) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


if __name__ == "__main__":
    main()
