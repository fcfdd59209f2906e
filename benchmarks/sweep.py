"""400 attempts of an agent that does nothing, through a backfill of Dagster's daemon beside the same called in Python.

    python -m benchmarks.sweep [process]

In Docker, as a team runs it, or in the process sandbox. Both ways open a box for each attempt, keep the ledger and run
as many boxes side by side as this machine has room for. The way through Dagster is timed from the request until the
last attempt is made, with all that a person waits for: until the daemon looks for backfills, and processes start.
The direct way is a process too, timed from its start.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from evalpipe_tests.pipeline.daemon import PARTITIONS
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, copy_of, make_workspace, repository_yaml
from evalpipe_tests.ui.dagster_ui import DagsterUi, serving

_SAMPLES = 200  # of each of the two tasks
_AGENT = "empty"
_SWEEP = (
    f"task_set: tiny\nagents: [{_AGENT}]\nsamples: {_SAMPLES}\ndecision: What does Dagster cost?\n"
    "limits:\n  timeout_s: 60\n  memory: 256m\n  cpus: 1\n"
)
_DIRECT = f"""
from concurrent.futures import ThreadPoolExecutor
from evalpipe.config import find_workspace
from evalpipe.stages.agent_programs import adapter_for
from evalpipe.stages.attempts import run_sample
from evalpipe.stages.bench import Workbench
from evalpipe.stages.probing import probe_images, probe_records
from evalpipe.stages.sweeps import open_agent_sweep, record_manifests, sample_keys

bench = Workbench(find_workspace())
sweep, agent = bench.workspace.load_sweep("idle"), bench.workspace.load_agent("{_AGENT}")
part = open_agent_sweep(bench, sweep, agent, "direct")
adapter = adapter_for(bench, agent, part.task_set)
record_manifests(bench, part, probe_records(probe_images(bench, part, {{}})))

def attempt(key):
    return run_sample(bench, part, adapter, key, "direct", {{}})[1]

with ThreadPoolExecutor(bench.boxes_at_once([part.limits()])) as pool:
    assert all(pool.map(attempt, sample_keys(sweep, part.task_set)))
"""


def make_idle(folder: Path, sandbox: str) -> TinyWorkspace:
    """A workspace with a calibrated set of two tasks, and the sweep `idle` of which nothing is run."""
    variables = {"EVALPIPE_SANDBOX": sandbox}
    if base := os.environ.get("EVALPIPE_BASE_IMAGE"):
        variables["EVALPIPE_BASE_IMAGE"] = base
    tiny = make_workspace(folder, variables)
    if sandbox == "docker":
        tiny.write("data/repos/shop.yaml", repository_yaml(["true"]))
    tiny.succeed("mine")
    tiny.succeed("validate", "--same-day")
    tiny.succeed("freeze", "tiny", "--provisional")
    tiny.succeed("run", "small", "--agent", _AGENT)
    tiny.write("data/sweeps/idle.yaml", _SWEEP)
    return tiny


def direct_seconds(tiny: TinyWorkspace) -> float:
    """Seconds of all attempts, called without Dagster."""
    environment = {**tiny.environment(), "EVALPIPE_WORKSPACE": str(tiny.root)}
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", _DIRECT], cwd=tiny.root, env=environment, check=True)
    return time.monotonic() - started


def dagster_seconds(tiny: TinyWorkspace) -> tuple[float, float, int]:
    """Seconds from the request of a backfill until its first and its last attempt was made, and its runs."""
    asset = ["idle", _AGENT, "agent_runs"]
    with serving(tiny) as ui:
        keys = _partitions(ui, asset)
        started = time.monotonic()
        backfill = ui.backfill([asset], keys)
        first = 0.0
        while (made := _made(ui, asset)) < len(keys):
            first = first or (time.monotonic() - started if made else 0.0)
            time.sleep(1)  # To ask takes of the same processors.
        seconds = time.monotonic() - started
        return first, seconds, len(ui.wait_for_backfill(backfill)["runs"])


def _partitions(ui: DagsterUi, asset: Sequence[str]) -> list[str]:
    query = "query($k: AssetKeyInput!) { assetNodeOrError(assetKey: $k) { ... on AssetNode { partitionKeys } } }"
    return list(ui.ask(query, {"k": {"path": asset}})["assetNodeOrError"]["partitionKeys"])


def _made(ui: DagsterUi, asset: Sequence[str]) -> int:
    return int(ui.ask(PARTITIONS, {"k": {"path": asset}})["assetNodeOrError"]["partitionStats"]["numMaterialized"])


def main() -> None:
    """Measure both ways on copies of one workspace, and print what Dagster costs."""
    sandbox = sys.argv[1] if len(sys.argv) > 1 else "docker"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        idle = make_idle(folder / "idle", sandbox)
        direct = direct_seconds(copy_of(idle, folder / "direct"))
        print(f"{2 * _SAMPLES} attempts in {sandbox}, called in Python: {direct:.1f} s", flush=True)
        first, through, runs = dagster_seconds(copy_of(idle, folder / "dagster"))
        print(f"through Dagster: {through:.1f} s in {runs} runs, the first attempt after {first:.1f} s")
        print(f"{through / direct:.2f} times as long")


if __name__ == "__main__":
    main()
