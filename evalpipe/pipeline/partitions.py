"""Partitions: which pieces each stage is made of. Keys are slugs, so that no part of Dagster misreads one."""

import re
from collections.abc import Collection, Iterable, Sequence

import dagster as dg

from evalpipe.config import SweepConfig
from evalpipe.stages.sweeps import SampleKey, sample_keys, sample_names
from evalpipe.stages.validating import ValidationPass
from evalpipe.tasks import LoadedTaskSet

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"

RUN_S = 5 * 3600
"""Seconds that the partitions of one run may take by their limits: dagster.yaml ends a run after six hours."""
_MOST_IN_A_RUN = 200
"""To start a run costs some seconds; beyond this many partitions that is nothing."""

_KEY = re.compile(r"[A-Za-z0-9_.-]{1,120}")

# Mining adds candidates and nothing deletes them: Dagster keeps the events of a deleted key, and would show them
# again for a new one of the same name.
CANDIDATES = dg.DynamicPartitionsDefinition(name="candidates")
CANDIDATE_PASSES = dg.MultiPartitionsDefinition(
    {"candidate": CANDIDATES, "pass": dg.StaticPartitionsDefinition([one.value for one in ValidationPass])}
)


def checked_keys(keys: Iterable[str]) -> list[str]:
    """`keys` as they are. Raises ValueError for one that is no slug."""
    found = list(keys)
    for key in found:
        # Dagster reads `...` as a range of partitions.
        if not _KEY.fullmatch(key) or "..." in key:
            raise ValueError(f"{key!r} cannot be a partition key: use 1 to 120 letters, digits, `_`, `-`, `.`")
    return found


def repositories_partitions(names: Iterable[str]) -> dg.StaticPartitionsDefinition:
    """One partition for each repository of the workspace."""
    return dg.StaticPartitionsDefinition(checked_keys(names))


def task_partitions(task_set: LoadedTaskSet) -> dg.StaticPartitionsDefinition:
    """One partition for each task of a frozen set. Static: an old set stays complete when a new one is frozen."""
    return dg.StaticPartitionsDefinition(checked_keys(task_set.tasks))


def sample_partitions(sweep: SweepConfig, tasks: dg.StaticPartitionsDefinition) -> dg.MultiPartitionsDefinition:
    """Task by sample of a sweep; a sample's key carries its prompt mode."""
    samples = dg.StaticPartitionsDefinition(checked_keys(sample_names(sweep)))
    return dg.MultiPartitionsDefinition({"sample": samples, "task": tasks})


def partitions_of_a_run(timeout_s: float) -> int:
    """How many partitions one run of a backfill takes, each of which may take `timeout_s`, one after the other."""
    return max(1, min(_MOST_IN_A_RUN, int(RUN_S // timeout_s)))


def keys_of_run(context: dg.AssetExecutionContext) -> Sequence[str]:
    """The partitions that a run of one asset is to do.

    The UI launches an asset that a job has by a backfill of the job, whose runs name a range and, beside it, the two
    dimensions of its first partition: Dagster itself takes such a run for one of that partition alone.
    """
    tags = context.run.tags
    partitions = context.assets_def.partitions_def
    keys: Sequence[str] = context.partition_keys
    if RANGE_START in tags and isinstance(partitions, dg.MultiPartitionsDefinition):
        of_run = dg.PartitionKeyRange(tags[RANGE_START], tags[RANGE_END])
        keys = partitions.get_partition_keys_in_range(of_run, context.instance)
    return keys


def samples_between(sweep: SweepConfig, task_set: LoadedTaskSet, keys: Collection[SampleKey]) -> dict[str, str]:
    """The tags of a run over the smallest block of samples and tasks that holds `keys`: a range is always a block."""
    wanted_samples, wanted_tasks = {key.sample for key in keys}, {key.task_id for key in keys}
    samples = [sample for sample in sample_names(sweep) if sample in wanted_samples]
    tasks = [task_id for task_id in task_set.tasks if task_id in wanted_tasks]
    return {RANGE_START: f"{samples[0]}|{tasks[0]}", RANGE_END: f"{samples[-1]}|{tasks[-1]}"}


def whole_sweep(sweep: SweepConfig, task_set: LoadedTaskSet) -> dict[str, str]:
    """The tags that make one run cover every task and sample of a sweep."""
    return samples_between(sweep, task_set, list(sample_keys(sweep, task_set)))
