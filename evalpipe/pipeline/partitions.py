"""Partitions: which pieces each stage is made of. Keys are slugs, so that no part of Dagster misreads one."""

import re
from collections.abc import Iterable

import dagster as dg

from evalpipe.config import SweepConfig
from evalpipe.stages.sweeps import sample_names
from evalpipe.stages.validating import ValidationPass
from evalpipe.tasks import LoadedTaskSet

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
