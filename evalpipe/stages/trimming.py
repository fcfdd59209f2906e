"""Housekeeping: finds what nothing needs any more, names it, and removes it when that is asked for.

Rows, manifests, and the blobs that a row names are never among it: what was paid for stays.
"""

import datetime as dt
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from operator import ne

from evalpipe.lake import LakeError, TableNames, inspect_table, table_files, unfinished_writes
from evalpipe.sandbox import SandboxError
from evalpipe.stages.bench import Workbench

LEAST_AGE = dt.timedelta(days=1)
"""Younger files may belong to work that is under way: a blob is written before the row that names it."""


class SpareKind(StrEnum):
    """Why something can go."""

    UNNAMED_BLOB = "unnamed_blob"
    UNFINISHED_WRITE = "unfinished_write"
    RUN_LOG = "run_log"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Spare:
    """One thing that can go: a file, a folder or an image by its name, its size in bytes and when it was last used."""

    kind: SpareKind
    name: str
    size: int
    last_used: dt.datetime
    remove: Callable[[], None] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Spares:
    """Everything that can go, and `notes` on what could not be looked at."""

    items: tuple[Spare, ...]
    notes: tuple[str, ...]


def find_spares(bench: Workbench, age: dt.timedelta) -> Spares:
    """What nothing needs and nothing has used for `age`; removes nothing.

    Blobs that no row names, writes that were killed, output of Dagster's runs, and environments that no row and no
    frozen set names. Raises LakeError for a table that cannot be read, since its rows might name any blob, and
    ValueError for an age below `LEAST_AGE`.
    """
    if age < LEAST_AGE:
        raise ValueError(f"what is younger than {LEAST_AGE.days} day may be in use")
    before = bench.clock() - age
    notes: list[str] = []
    found = [*_blobs(bench), *_writes(bench), *_run_logs(bench)]
    try:
        found += _environments(bench, before)
    except SandboxError as error:
        notes.append(f"images were not looked at: {error}")
    return Spares(tuple(spare for spare in found if spare.last_used < before), tuple(notes))


def _blobs(bench: Workbench) -> Iterator[Spare]:
    # First the files, then the rows: a blob that is written meanwhile is not looked at.
    folder = bench.lake.folder
    files = folder.files(bench.lake.blobs.root)
    names = TableNames()
    for table, path in table_files(bench.lake):
        fault = inspect_table(table, path, names)
        if fault is not None:
            raise LakeError(f"nothing is trimmed while a table cannot be read: {fault.text}")
    for path, kept in sorted(files.items()):
        if path.name not in names.anything:
            # The same bytes may have been put there again since they were found.
            remove = partial(folder.remove, path, partial(ne, kept))
            yield Spare(SpareKind.UNNAMED_BLOB, str(path), kept.size, kept.modified, remove)


def _writes(bench: Workbench) -> Iterator[Spare]:
    for path in unfinished_writes(bench.lake):
        stat = path.stat()
        yield Spare(SpareKind.UNFINISHED_WRITE, str(path), stat.st_size, _moment(stat.st_mtime), path.unlink)


def _run_logs(bench: Workbench) -> Iterator[Spare]:
    """What runs printed, as Dagster keeps it; their events, which the UI shows, stay."""
    for folder in sorted(bench.workspace.state_dir.glob("*/compute_logs")):
        files = [path for path in folder.rglob("*") if path.is_file()]
        if files:
            last = max(path.stat().st_mtime for path in files)
            size = sum(path.stat().st_size for path in files)
            yield Spare(SpareKind.RUN_LOG, str(folder), size, _moment(last), partial(shutil.rmtree, folder))


def _environments(bench: Workbench, before: dt.datetime) -> Iterator[Spare]:
    needed = bench.needed_images()
    if needed is None:
        return
    for one in bench.builder.spare(needed, before):
        yield Spare(SpareKind.ENVIRONMENT, one.name, one.size, one.last_used, one.remove)


def _moment(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
