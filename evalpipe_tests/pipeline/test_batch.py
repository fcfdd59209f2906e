"""Many partitions in one run: what failed stays missing, what was done has one event, and the engine may die."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from evalpipe.config import Workspace
from evalpipe.lake import DiskFullError
from evalpipe.pipeline.batch import BatchResults, PartitionDone, PartitionFailed, end_batch, run_batch
from evalpipe.sandbox import Box, Capacity, DiskFull, EngineUnavailable, Interrupted, Limits, SandboxFacts
from evalpipe.stages.bench import Workbench

KEYS = [f"k{number}" for number in range(8)]
Work = Callable[[str, dict[str, str]], PartitionDone]


class FakeSandbox:
    """Knows whether its engine is alive, and remembers whom it should kill."""

    name = "docker"

    def __init__(self) -> None:
        self.alive = True
        self.killed: list[dict[str, str]] = []
        self.on_kill: Callable[[], None] = lambda: None

    @contextmanager
    def open(self, environment: str, limits: Limits, labels: Mapping[str, str]) -> Iterator[Box]:
        raise NotImplementedError
        yield

    def kill(self, labels: Mapping[str, str]) -> int:
        self.killed.append(dict(labels))
        self.on_kill()
        return 0

    def reap(self, alive_owners: object) -> int:
        return 0

    def capacity(self) -> Capacity:
        return Capacity(2, 1024**3)

    def describe(self) -> SandboxFacts:
        if not self.alive:
            raise EngineUnavailable("no Docker engine answers: start it")
        return SandboxFacts("docker", "Docker 0", "none", 1, 1)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run of a batch ended, as the instance has stored it."""

    success: bool
    run_id: str
    materializations: list[dg.AssetMaterialization]
    failure: str | None
    failed: dict[str, str]
    observed: dict[str, str]

    @property
    def done(self) -> list[str]:
        return [str(one.partition) for one in self.materializations]

    @classmethod
    def read(cls, instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> "Ran":
        stored = [entry.get_dagster_event() for entry in instance.all_logs(result.run_id) if entry.is_dagster_event]
        made = [event.step_materialization_data.materialization for event in stored if event.is_step_materialization]
        failures = [event.step_failure_data.user_failure_data for event in stored if event.is_step_failure]
        data = failures[0] if failures else None
        reasons: Any = data.metadata["failed"].value if data else {}
        seen = [event.asset_observation_data.asset_observation for event in stored if event.is_asset_observation]
        observed = {str(one.partition): str(one.metadata["not_done_because"].value) for one in seen}
        return cls(result.success, result.run_id, made, data.description if data else None, dict(reasons), observed)


Run = Callable[..., Ran]


@pytest.fixture
def sandbox() -> FakeSandbox:
    return FakeSandbox()


@pytest.fixture
def run(sandbox: FakeSandbox, tmp_path: Path) -> Iterator[Run]:
    """Runs a batch of work over KEYS on an instance that lasts for the test."""
    bench = Workbench(Workspace(tmp_path))
    bench.__dict__["sandbox"] = sandbox
    with dg.DagsterInstance.ephemeral() as instance:

        def execute(work: Work, *, workers: int = 1) -> Ran:
            @dg.asset(
                partitions_def=dg.StaticPartitionsDefinition(KEYS),
                output_required=False,
                backfill_policy=dg.BackfillPolicy.single_run(),
            )
            def batch(context: dg.AssetExecutionContext) -> BatchResults:
                wanted = context.partition_keys
                yield from end_batch(context, run_batch(context, bench, wanted, work, workers=workers), len(wanted))

            job = dg.Definitions(assets=[batch], executor=dg.in_process_executor).resolve_job_def("__ASSET_JOB")
            tags = {"dagster/asset_partition_range_start": KEYS[0], "dagster/asset_partition_range_end": KEYS[-1]}
            return Ran.read(instance, job.execute_in_process(instance=instance, tags=tags, raise_on_error=False))

        yield execute


def test_every_finished_partition_has_one_event_with_its_version(run: Run) -> None:
    result = run(lambda key, labels: PartitionDone(f"v-{key}", {"n": dg.MetadataValue.int(1)}), workers=3)
    assert result.success
    assert sorted(result.done) == KEYS
    versions = {str(one.partition): (one.tags or {})["dagster/data_version"] for one in result.materializations}
    assert versions == {key: f"v-{key}" for key in KEYS}


def test_one_failure_stays_missing_with_its_reason_and_costs_no_other(
    run: Run,
) -> None:
    def work(key: str, labels: dict[str, str]) -> PartitionDone:
        if key == "k3":
            raise PartitionFailed("timeout: stopped after 9 s")
        if key == "k5":
            raise ValueError("a fault of ours")
        return PartitionDone("v")

    result = run(work, workers=2)
    assert not result.success
    assert sorted(result.done) == [key for key in KEYS if key not in ("k3", "k5")]
    assert result.failed == {"k3": "timeout: stopped after 9 s", "k5": "ValueError: a fault of ours"}
    assert result.observed == result.failed  # what the page of a partition shows


def test_the_work_gets_the_label_of_its_run(run: Run) -> None:
    seen: set[str] = set()

    def work(key: str, labels: dict[str, str]) -> PartitionDone:
        seen.add(labels["run"])
        return PartitionDone("v")

    result = run(work)
    assert seen == {result.run_id}


@pytest.mark.parametrize(
    "fault",
    [EngineUnavailable("gone"), DiskFull("the engine's disk is full"), DiskFullError(28, "no room to write x")],
    ids=lambda fault: type(fault).__name__,
)
def test_a_dead_engine_or_a_full_disk_ends_the_batch_before_another_begins(
    fault: Exception, run: Run, sandbox: FakeSandbox
) -> None:
    begun: list[str] = []

    def work(key: str, labels: dict[str, str]) -> PartitionDone:
        begun.append(key)
        if key == "k2":
            sandbox.alive = not isinstance(fault, EngineUnavailable)
            raise fault
        return PartitionDone("v")

    result = run(work)
    assert begun == ["k0", "k1", "k2"]
    assert result.done == ["k0", "k1"]
    failed = result.failed
    assert sorted(failed) == KEYS[2:]
    assert str(fault) in failed["k2"]
    assert all("not begun" in failed[key] for key in KEYS[3:])


def test_a_failure_of_another_name_ends_the_batch_too_when_the_engine_is_gone(run: Run, sandbox: FakeSandbox) -> None:
    begun: list[str] = []

    def work(key: str, labels: dict[str, str]) -> PartitionDone:
        begun.append(key)
        sandbox.alive = False
        raise PartitionFailed("engine_error: the box was lost")

    run(work)
    assert begun == ["k0"]


def test_an_interrupt_kills_the_boxes_until_no_worker_opens_another(run: Run, sandbox: FakeSandbox) -> None:
    """The first kill meets a worker between two boxes; the next one must come."""
    both_run, boxes_gone = threading.Event(), threading.Event()
    begun: list[str] = []

    def on_kill() -> None:
        if len(sandbox.killed) >= 2:
            boxes_gone.set()

    def work(key: str, labels: dict[str, str]) -> PartitionDone:
        begun.append(key)
        if key == "k0":
            assert both_run.wait(10)
            os.kill(os.getpid(), signal.SIGINT)
        both_run.set()
        assert boxes_gone.wait(10)
        raise Interrupted("killed from outside")

    sandbox.on_kill = on_kill
    assert not run(work, workers=2).success
    assert sorted(begun) == ["k0", "k1"]
    assert len(sandbox.killed) >= 2
    assert all(set(labels) == {"run"} for labels in sandbox.killed)


def test_a_failed_batch_names_each_reason_once(run: Run) -> None:
    def work(key: str, labels: dict[str, str]) -> PartitionDone:
        raise PartitionFailed(f"reason {int(key[1]) % 2}\nwith a long log below")

    assert run(work).failure == "batch: 8 of 8 partitions are not done: reason 0; reason 1"
