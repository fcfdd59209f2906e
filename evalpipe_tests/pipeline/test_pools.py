"""The pools of a workspace: sized by the machine, until somebody sets another number."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from ruamel.yaml import YAML

import evalpipe
from evalpipe.pipeline.pools import size_pools, steps_at_once


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def limits(instance: dg.DagsterInstance) -> dict[str, int]:
    return {limit.name: limit.limit for limit in instance.event_log_storage.get_pool_limits()}


@pytest.mark.parametrize(("processors", "steps"), [(1, 2), (2, 2), (25, 2), (26, 3), (64, 4)])
def test_more_steps_than_one_run_only_where_one_cannot_fill_the_machine(processors: int, steps: int) -> None:
    assert steps_at_once(processors) == steps


def test_each_agent_has_a_pool_and_a_larger_machine_larger_ones(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    size_pools(instance, ["claude", "codex"])
    assert limits(instance) == {"boxes": 4, "images": 1, "agent_claude": 4, "agent_codex": 4}


def test_what_somebody_has_set_stays(instance: dg.DagsterInstance) -> None:
    size_pools(instance, ["claude"])
    instance.event_log_storage.set_concurrency_slots("agent_claude", 1)
    size_pools(instance, ["claude", "codex"])
    found = limits(instance)
    assert found["agent_claude"] == 1
    assert found["agent_codex"] == found["boxes"]


@pytest.mark.parametrize("file", ["dagster.yaml", "evalpipe/config/template/dagster.yaml"])
def test_a_backfill_leaves_a_place_for_a_report(file: str) -> None:
    runs = YAML(typ="safe").load(Path(evalpipe.__file__).parents[1] / file)["concurrency"]["runs"]
    (backfill,) = runs["tag_concurrency_limits"]
    assert backfill["key"] == "dagster/backfill"
    assert 1 <= backfill["limit"] < runs["max_concurrent_runs"]
