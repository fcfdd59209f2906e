"""Many small files of a table read as one, and kept so for the next reader.

A sweep has a file for each sample, because paid work must be on disk when it ends; each takes over a millisecond to
read, so a report over many thousands of them would wait for a minute. What was read is therefore kept in one file
beside them, and only files that are new or were replaced are read again. The kept file is no result: it can be deleted
at any time.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evalpipe.lake.files import writing_atomically

# Behind a dot, where no reader of partitions looks.
_KEPT = ".together.parquet"
_LEAST_FILES = 100
# Which file a row is from, and what that file was: a file is only ever replaced as a whole, so this changes with it.
_FILE, _STATE = "from_file", "from_file_state"


def read_together(folder: Path, schema: pa.Schema, read: Callable[[Path], pa.Table]) -> pa.Table:
    """Return the rows of every Parquet file below `folder`, in the order of their paths; `read` reads one in `schema`.

    Raises what `read` raises.
    """
    present = dict(sorted(_files(folder, "")))
    if len(present) < _LEAST_FILES:
        return pa.concat_tables([schema.empty_table(), *(read(folder / name) for name in present)])
    wide = schema.append(pa.field(_FILE, pa.string())).append(pa.field(_STATE, pa.string()))
    kept = _kept(folder, wide)
    valid = kept.filter(_still_so(kept, present))
    known = set(valid[_FILE].unique().to_pylist())
    new = [_with_source(read(folder / name), name, state) for name, state in present.items() if name not in known]
    if not new and valid.num_rows == kept.num_rows:
        return kept.select(schema.names)
    found = pa.concat_tables([valid, *new])
    found = found.take(pc.sort_indices(found[_FILE]))
    _keep(folder, found)
    return found.select(schema.names)


def _files(folder: Path, below: str) -> Iterator[tuple[str, str]]:
    """Every partition below a folder: its path from there, and what tells it from another that takes its place."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.endswith(".parquet"):
            if not entry.name.startswith("."):
                now = entry.stat()
                yield f"{below}{entry.name}", f"{now.st_ino}:{now.st_size}:{now.st_mtime_ns}"
        elif entry.is_dir(follow_symlinks=False):
            yield from _files(folder / entry.name, f"{below}{entry.name}/")


def _kept(folder: Path, schema: pa.Schema) -> pa.Table:
    try:
        found = pq.ParquetFile(folder / _KEPT, page_checksum_verification=True).read()
    except (pa.ArrowException, OSError):
        return schema.empty_table()
    return found if found.schema.equals(schema) else schema.empty_table()


def _still_so(kept: pa.Table, present: dict[str, str]) -> pa.BooleanArray:
    places = pc.index_in(kept[_FILE], value_set=pa.array(list(present), pa.string()))
    now = pa.chunked_array([pa.array(list(present.values()), pa.string())]).take(places)
    # Null for a file that is gone, which `filter` drops.
    return pc.equal(now, kept[_STATE])


def _with_source(rows: pa.Table, name: str, state: str) -> pa.Table:
    for column, value in ((_FILE, name), (_STATE, state)):
        rows = rows.append_column(column, pa.array([value] * rows.num_rows, pa.string()))
    return rows


def _keep(folder: Path, rows: pa.Table) -> None:
    try:
        with writing_atomically(folder / _KEPT) as file:
            pq.write_table(rows, file, compression="zstd", write_page_checksum=True)
    except OSError:
        # A disk that is full, or a lake that may only be read, is no reason to refuse an answer that is there.
        return
