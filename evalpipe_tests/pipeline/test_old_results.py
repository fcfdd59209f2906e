"""What becomes of results when their agent or their sweep is of yesterday: stale where one looks, never overwritten."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from evalpipe.pipeline.assembly import build_definitions
from evalpipe.pipeline.partitions import whole_sweep
from evalpipe.stages.bench import Workbench
from evalpipe.tasks import load_task_set
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace

pytestmark = pytest.mark.slow
Copied = Callable[[Walk], TinyWorkspace]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def statuses(tiny: TinyWorkspace, instance: dg.DagsterInstance, agent: str, stage: str) -> set[StaleStatus]:
    """What the UI says of an asset's partitions."""
    graph = build_definitions(tiny.workspace).resolve_asset_graph()
    key = dg.AssetKey(["small", agent, stage])
    partitions = graph.get(key).partitions_def
    assert partitions is not None
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    return {resolver.get_status(key, one) for one in partitions.get_partition_keys()}


def materialize(tiny: TinyWorkspace, instance: dg.DagsterInstance, stages: Sequence[str]) -> None:
    """Run jobs of the sweep over all of it; what is in the lake already opens no box."""
    definitions = build_definitions(tiny.workspace, Workbench(tiny.workspace, sandbox_kind="process"))
    sweep = tiny.workspace.load_sweep("small")
    tags = whole_sweep(sweep, load_task_set(tiny.workspace.task_sets_dir / "tiny"))
    for stage in stages:
        job = definitions.resolve_job_def(f"small__{stage}")
        assert job.execute_in_process(instance=instance, tags=tags).success


def test_a_changed_agent_file_makes_its_partitions_stale_and_no_others(
    copied: Copied, finished: Walk, instance: dg.DagsterInstance
) -> None:
    tiny = copied(finished)
    materialize(tiny, instance, ("agent_runs", "graded_results"))
    assert statuses(tiny, instance, "half", "agent_runs") == {StaleStatus.FRESH}
    file = tiny.root / "data/agents/half.yaml"
    file.write_text(file.read_text().replace('scaffold_version: "1"', 'scaffold_version: "2"'))
    assert statuses(tiny, instance, "half", "agent_runs") == {StaleStatus.STALE}
    assert statuses(tiny, instance, "empty", "agent_runs") == {StaleStatus.FRESH}


def rows_of(tiny: TinyWorkspace, sweep: str = "small") -> dict[Path, bytes]:
    """Every file of a sweep's attempts, grades and manifests."""
    folders = [tiny.lake / name / sweep for name in ("agent_runs", "graded_results", "manifests")]
    files = (path for folder in folders for path in folder.rglob("[!.]*") if path.suffix in (".parquet", ".json"))
    return {path: path.read_bytes() for path in files}


def change_half(tiny: TinyWorkspace) -> None:
    file = tiny.root / "data/agents/half.yaml"
    file.write_text(file.read_text().replace('scaffold_version: "1"', 'scaffold_version: "2"'))


def agent_status(tiny: TinyWorkspace, name: str = "half") -> dict[str, object]:
    (sweep,) = tiny.succeed("status", "--json").json()["sweeps"]
    return next(agent for agent in sweep["agents"] if agent["name"] == name)


def test_a_changed_agent_runs_beside_its_old_rows(copied: Copied, finished: Walk, instance: dg.DagsterInstance) -> None:
    tiny = copied(finished)
    materialize(tiny, instance, ("agent_runs",))
    before = rows_of(tiny)
    change_half(tiny)
    status = agent_status(tiny)
    assert (status["attempted"], status["due"]) == (0, 4)
    tiny.succeed("run", "small")
    tiny.succeed("grade", "small")
    after = rows_of(tiny)
    assert {path: after[path] for path in before} == before
    new = {path.relative_to(tiny.lake).parts[:3] for path in after.keys() - before.keys()}
    assert new == {(table, "small", "half") for table in ("agent_runs", "graded_results", "manifests")}
    versions = {
        json.loads(text)["agent"]["scaffold_version"].partition("+")[0]
        for path, text in after.items()
        if path.suffix == ".json" and "half" in path.parts
    }
    assert versions == {"1", "2"}
    materialize(tiny, instance, ("agent_runs",))
    assert statuses(tiny, instance, "half", "agent_runs") == {StaleStatus.FRESH}


def test_an_archived_sweep_is_compared_as_it_was_run(copied: Copied, finished: Walk) -> None:
    """A quarter later the agent's file says another version, and at last it is not there any more."""
    tiny = copied(finished)
    tiny.succeed("sweep", "new", "next", "--from", "small")
    following, old = tiny.root / "data/sweeps/next.yaml", tiny.root / "data/sweeps/small.yaml"
    text = following.read_text().replace("task_set: next", "task_set: tiny")
    following.write_text(text.replace("[reference, empty, half]", "[half]").replace("  - [half, empty]\n", ""))
    following.write_text(following.read_text().replace("comparisons:\n", ""))
    old.write_text(old.read_text() + "archived: true\n")
    change_half(tiny)
    tiny.succeed("run", "next")
    tiny.succeed("grade", "next")
    before = rows_of(tiny)
    found = tiny.succeed("compare", "small", "next", "--format", "json").json()
    assert found["sweeps"] == ["small", "next"]
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"], pair["difference"]) == ("half (small)", "half (next)", 0.0)
    assert len(found["tasks"]) == 2
    assert any("agent.scaffold_version" in line for line in pair["manifest_differences"])
    assert {sweep["name"] for sweep in tiny.succeed("status", "--json").json()["sweeps"]} == {"next"}

    following.write_text(following.read_text() + "archived: true\n")
    (tiny.root / "data/agents/half.yaml").unlink()
    assert tiny.succeed("compare", "small", "next", "--format", "json").json() == found
    assert rows_of(tiny) == before
    assert "half" not in tiny.call("doctor").out
    definitions = build_definitions(tiny.workspace).resolve_asset_graph()
    assert not any(key.path[0] in ("small", "next") for key in definitions.get_all_asset_keys())
