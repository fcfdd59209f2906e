"""Assets of each frozen task set: the set itself, and its calibration. And the op that freezes one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from evalpipe.config import RepositoryConfig
from evalpipe.grading import limits_of
from evalpipe.pipeline.batch import BatchResults, PartitionDone, PartitionFailed, end_batch, run_batch
from evalpipe.pipeline.columns import columns_of
from evalpipe.pipeline.history_assets import Bench, owners_of
from evalpipe.pipeline.partitions import task_partitions
from evalpipe.pipeline.pools import BOXES
from evalpipe.stages.bench import Workbench
from evalpipe.stages.calibrating import calibrate_task, calibration_rows, is_calibrated
from evalpipe.stages.freezing import FreezeOutcome, freeze_task_set
from evalpipe.tasks import LoadedTaskSet, Sampling, load_task_set

GROUP = "frozen_sets"
CALIBRATION_BATCH = 20
PREFIX = "task_sets"
CALIBRATED = "reference_resolved_and_empty_not"
LEFT_OUT = "left_out"
"""Metadata of a set that was frozen: the candidates that are not in it."""


@dataclass(frozen=True, slots=True)
class TaskSetAssets:
    """The assets of one frozen set, and the partitions that its sweeps share."""

    task_set: LoadedTaskSet
    tasks: dg.StaticPartitionsDefinition
    frozen: dg.AssetsDefinition
    calibration: dg.AssetsDefinition


class FreezeOptions(dg.Config):
    """Run configuration of the freeze job: the set's name, the repositories (none: all), whether same-day tasks are
    admitted, and the size and seed of a sample (none: every valid candidate)."""

    name: str
    repositories: list[str] = Field(default_factory=list)
    provisional: bool = False
    sample: int | None = None
    seed: int = 0


def task_set_key(name: str) -> dg.AssetKey:
    """Key of the asset of a frozen set."""
    return dg.AssetKey([PREFIX, name])


def task_set_assets(folder: Path, repositories: Mapping[str, RepositoryConfig]) -> TaskSetAssets:
    """The assets of the set in `folder`, after validated_tasks where there are `repositories` to mine.

    Who answers for the repository of a task answers for the set. Raises TaskSetError when the set is damaged.
    """
    loaded = load_task_set(folder)
    tasks = task_partitions(loaded)
    of_tasks = {task.repository for task in loaded.tasks.values()}
    owners = owners_of(config for name, config in repositories.items() if name in of_tasks)
    frozen = _frozen(loaded, owners, after_history=bool(repositories))
    return TaskSetAssets(loaded, tasks, frozen, _calibration(loaded, owners, frozen, tasks))


def _frozen(loaded: LoadedTaskSet, owners: Sequence[str], *, after_history: bool) -> dg.AssetsDefinition:
    name = loaded.record.name

    @dg.asset(
        key=task_set_key(name),
        group_name=GROUP,
        kinds={"json"},
        owners=owners,
        deps=[dg.AssetDep("validated_tasks", partition_mapping=dg.AllPartitionMapping())] if after_history else [],
        description=f"The frozen task set {name}: its tasks and patches, checked against their hashes.",
    )
    def frozen() -> dg.MaterializeResult[Any]:
        found = load_task_set(loaded.folder)
        return dg.MaterializeResult(metadata=_set_metadata(found), data_version=dg.DataVersion(found.record.revision))

    return frozen


def _calibration(
    loaded: LoadedTaskSet, owners: Sequence[str], frozen: dg.AssetsDefinition, tasks: dg.StaticPartitionsDefinition
) -> dg.AssetsDefinition:
    key = [PREFIX, loaded.record.name, "calibration"]

    @dg.asset(
        key=key,
        group_name=GROUP,
        kinds={"docker", "parquet"},
        owners=owners,
        partitions_def=tasks,
        deps=[frozen],
        backfill_policy=dg.BackfillPolicy.multi_run(CALIBRATION_BATCH),
        output_required=False,
        pool=BOXES,
        metadata=columns_of("calibration"),
        # Of the asset's own: Dagster skips a check beside an asset that has no output.
        check_specs=[
            dg.AssetCheckSpec(
                CALIBRATED,
                asset=key,
                blocking=True,
                description="The reference patch resolved three times of three, the empty patch never.",
            )
        ],
        description="Each task's reference patch and the empty patch, graded three times by the path of every attempt.",
    )
    def calibration(context: dg.AssetExecutionContext, bench: Bench) -> BatchResults:
        current = load_task_set(loaded.folder)

        def work(task_id: str, labels: dict[str, str]) -> PartitionDone:
            rows = calibrate_task(bench, current, task_id, labels)
            if not is_calibrated(rows):
                seen = ", ".join(f"{row['patch']} {row['repetition']}: {row['verdict']}" for row in rows)
                raise PartitionFailed(f"{task_id} does not calibrate ({seen})")
            seconds = sum(row["grading_seconds"] for row in rows)
            return PartitionDone(current.record.revision, {"seconds": dg.MetadataValue.float(seconds)})

        keys = context.partition_keys
        workers = bench.boxes_at_once(map(limits_of, current.tasks.values()))
        failed = run_batch(context, bench, keys, work, workers=workers)
        yield _calibration_check(bench, current)
        yield from end_batch(context, failed, len(keys))

    return calibration


def _calibration_check(bench: Workbench, task_set: LoadedTaskSet) -> dg.AssetCheckResult:
    """Of the tasks that were calibrated by now; a run may be of some, and attempts wait for their own task's."""
    rows = {task_id: calibration_rows(bench, task_set, task_id) for task_id in task_set.tasks}
    wrong = [task_id for task_id, found in rows.items() if found and not is_calibrated(found)]
    metadata = {
        "tasks": dg.MetadataValue.int(len(rows)),
        "calibrated": dg.MetadataValue.int(sum(map(bool, rows.values())) - len(wrong)),
        "wrong": dg.MetadataValue.json(wrong),
    }
    return dg.AssetCheckResult(check_name=CALIBRATED, passed=not wrong, metadata=metadata)


def freeze_job(repositories: Mapping[str, RepositoryConfig]) -> dg.JobDefinition:
    """The job that writes a frozen set, and tells Dagster's lineage of it."""

    @dg.op
    def write_task_set(context: dg.OpExecutionContext, config: FreezeOptions, bench: Bench) -> None:
        chosen = [repositories[name] for name in config.repositories or repositories]
        sampling = None if config.sample is None else Sampling(config.sample, config.seed)
        outcome = freeze_task_set(bench, config.name, chosen, sampling, provisional=config.provisional)
        loaded = load_task_set(bench.workspace.task_sets_dir / config.name)
        context.log_event(
            dg.AssetMaterialization(
                asset_key=task_set_key(config.name),
                metadata={**_set_metadata(loaded), LEFT_OUT: dg.MetadataValue.json(_left_out(outcome))},
                tags={"dagster/data_version": outcome.record.revision},
            )
        )

    @dg.job(
        name="freeze",
        description="Freeze the valid candidates, or a sample of them, as a task set.",
        executor_def=dg.in_process_executor,
    )
    def freeze() -> None:
        write_task_set()

    return freeze


def _left_out(outcome: FreezeOutcome) -> dict[str, Any]:
    """How many candidates are not in the set by reason, and those that a person can do something about."""
    named = [
        {"candidate": one.candidate_id, "reason": one.reason.value, "detail": one.detail} for one in outcome.named()
    ]
    return {"counts": outcome.counts(), "candidates": named}


def _set_metadata(task_set: LoadedTaskSet) -> dict[str, Any]:
    lines = ["| task | category | fail-to-pass | pass-to-pass | provisional |", "|---|---|---|---|---|"]
    lines += [
        f"| {task.task_id} | {task.category} | {len(task.fail_to_pass)} | {len(task.pass_to_pass)} "
        f"| {'yes' if task.provisional else 'no'} |"
        for task in task_set.tasks.values()
    ]
    return {
        "tasks": len(task_set.tasks),
        "revision": task_set.record.revision,
        "selection_rule": task_set.record.selection_rule,
        "provisional": task_set.record.provisional,
        "task_table": dg.MetadataValue.md("\n".join(lines)),
        "folder": dg.MetadataValue.path(str(task_set.folder)),
    }
