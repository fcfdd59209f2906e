"""How long the definitions take to load and the pages of the UI to open, in a workspace that is large.

    python -m benchmarks.ui

1. Definitions of 50 agents and 1,000 tasks, beside those of an empty workspace: a process of its own for each.
2. 10 agents, 200 tasks and 8 samples (16,000 partitions of attempts, all made, and the grades of one agent): seconds
   from `evalpipe ui` until it answers, and until each page says what is asked of it, in a headless Chromium (Debian's
   package) with nothing in its cache the first time.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from evalpipe.config.init import write_workspace
from evalpipe.lake import write_atomically
from evalpipe.pipeline.driver import initialise_instance
from evalpipe.pipeline.jobs import dagster_name
from evalpipe.tasks import freeze
from evalpipe_tests.pipeline.workspaces import TinyWorkspace
from evalpipe_tests.reports.browser import Browser
from evalpipe_tests.tasks.records import with_patches
from evalpipe_tests.ui.dagster_ui import serving
from evalpipe_tests.ui.pages import Page, open_page, partition_page

_LOAD = """
import time
started = time.monotonic()
import dagster
imported = time.monotonic()
from evalpipe.definitions import defs
defs.get_repository_def()
print(imported - started, time.monotonic() - imported)
"""
_CANCEL = "mutation($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }"
_AGENT = 'adapter: command\ncommand: ["true"]\nmodel: none\nmodel_version: "1"\nscaffold: none\nscaffold_version: "1"\n'


def make_workspace(root: Path, agents: int, tasks: int, samples: int) -> TinyWorkspace:
    """A workspace with one sweep, `q`, of so many agents, tasks and samples; nothing is run in it."""
    write_workspace(root)
    for example in root.glob("data/*/*.yaml"):
        example.unlink()
    tiny = TinyWorkspace(root.resolve(), {"EVALPIPE_SANDBOX": "process"})
    if not agents:
        return tiny
    records = [with_patches(task_id=f"shop-{number}-0123456789", number=number) for number in range(1, tasks + 1)]
    freeze(tiny.workspace.task_sets_dir / "q", records, None, provisional=False, write=write_atomically)
    names = [f"agent-{number:02}" for number in range(1, agents + 1)]
    for name in names:
        tiny.write(f"data/agents/{name}.yaml", _AGENT)
    sweep = f"task_set: q\nagents: [{', '.join(names)}]\nsamples: {samples}\ndecision: Which one?\n"
    tiny.write("data/sweeps/q.yaml", sweep)
    return tiny


def load_seconds(tiny: TinyWorkspace) -> tuple[float, float]:
    """Seconds to import Dagster, and after that to import evalpipe and to load the definitions."""
    environment = {**tiny.environment(), "EVALPIPE_WORKSPACE": str(tiny.root)}
    command = [sys.executable, "-c", _LOAD]
    done = subprocess.run(command, cwd=tiny.root, env=environment, check=True, capture_output=True, text=True)
    imported, loaded = map(float, done.stdout.split())
    return imported, loaded


def fill(tiny: TinyWorkspace, assets: Sequence[Sequence[str]], keys: Sequence[str]) -> None:
    """Tell Dagster that every partition of the assets was made, as the assets would."""
    initialise_instance(tiny.workspace)
    with dg.DagsterInstance.get() as instance:
        for asset in assets:
            for key in keys:
                event = dg.AssetMaterialization(list(asset), partition=key, metadata={"seconds": 1.0})
                instance.report_runless_asset_event(event)


def measure_pages(tiny: TinyWorkspace, agents: Sequence[str], keys: Sequence[str], profile: Path) -> None:
    """Open the pages of a large workspace, each three times, and print how long they took."""
    grades = ["q", agents[0], "graded_results"]
    group = f"sweep_q__{dagster_name(agents[0])}"
    pages = [
        Page("lineage of all", "/asset-groups", [dagster_name(agents[-1]), "sweep_q_report"]),
        Page("graph of an agent", f"/locations/evalpipe/asset-groups/{group}/lineage", ["agent_runs", "100% filled"]),
        Page("catalog", "/assets", [f"q / {agents[0]} / agent_runs", f"{len(keys):,} partitions"]),
        Page("partitions of an asset", f"/assets/{'/'.join(grades)}?view=partitions", [f"Materialized ({len(keys)})"]),
        Page("one partition", partition_page(grades, keys[0]), ["Latest materialization", "seconds"]),
    ]
    with serving(tiny) as ui, Browser(profile) as browser:
        print(f"evalpipe ui answers after {ui.seconds_to_answer:.1f} s", flush=True)
        for page in pages:
            _measure(browser, ui.url, page)
        started = time.monotonic()
        backfill = ui.backfill([["q", agent, "agent_runs"] for agent in agents], keys)
        print(f"a backfill of {len(agents) * len(keys):,} is taken in {time.monotonic() - started:.1f} s", flush=True)
        _measure(browser, ui.url, Page("backfill", f"/runs/b/{backfill}", [f"q / {agents[-1]} / agent_runs"]))
        ui.ask(_CANCEL, {"id": backfill})


def _measure(browser: Browser, url: str, page: Page) -> None:
    seconds = [open_page(browser, url, page) for _ in range(3)]
    print(f"{page.picture}: {', '.join(f'{one:.1f}' for one in seconds)} s", flush=True)


def main() -> None:
    """Measure the loading of definitions and the opening of pages, and print a line for each."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for agents, tasks in ((0, 0), (10, 200), (50, 1000)):
            imported, loaded = load_seconds(make_workspace(folder / f"load-{agents}", agents, tasks, 8))
            print(f"{agents} agents, {tasks} tasks: Dagster {imported:.1f} s, evalpipe and definitions {loaded:.1f} s")
        tiny = make_workspace(folder / "pages", 10, 200, 8)
        names = tiny.workspace.load_sweep("q").agents
        keys = [f"original-{one}|shop-{task}-0123456789" for one in range(1, 9) for task in range(1, 201)]
        started = time.monotonic()
        made = [*(["q", name, "agent_runs"] for name in names), ["q", names[0], "graded_results"]]
        fill(tiny, made, keys)
        print(f"{len(made) * len(keys):,} events are logged in {time.monotonic() - started:.0f} s", flush=True)
        measure_pages(tiny, names, keys, folder / "profile")


if __name__ == "__main__":
    main()
