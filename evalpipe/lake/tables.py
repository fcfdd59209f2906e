"""Tables of the lake: one Parquet file per partition, written whole, read back as one dataset."""

import fcntl
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evalpipe.lake.blobs import BlobStore
from evalpipe.lake.files import make_folder, naming_a_full_disk
from evalpipe.lake.folder import LakeFolder
from evalpipe.lake.object_store import ObjectStore
from evalpipe.lake.schemas import SCHEMAS
from evalpipe.lake.together import read_together
from evalpipe.lake.working_copy import WorkingCopy

Row = Mapping[str, Any]

_ROWS_OF_CHUNK = 2048

LOCAL_TABLES = frozenset({"suite_runs"})
"""What a pass has so far, until it is whole: it stays on the machine that runs it."""

OTHER_FOLDERS = ("blobs", "manifests", "reports", "calls")
"""What the lake has beside its tables."""

# With the years they have many partitions, of which a command reads those of one sweep or task set.
_READ_BY_FIRST_PART = frozenset({"agent_runs", "graded_results", "calibration", "probes"})

# A name with a dot in front is never read: it belongs to a write that did not end.
_PARTITION = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,119}")


class LakeError(Exception):
    """Rows, or a file of the lake, are not what their table declares."""


class Lake:
    """What the pipeline writes: `<root>/<table>/<part>/…/<part>.parquet`, blobs and some other folders beside.

    It lies in the folder `root`; with a `url` in the object store there, and `root` has a copy of it.
    """

    def __init__(self, root: Path, url: str | None = None) -> None:
        self.root = root
        self.folder = LakeFolder(root) if url is None else WorkingCopy(root, ObjectStore(url), LOCAL_TABLES)
        self.blobs = BlobStore(root / "blobs", self.folder)

    def path(self, table: str, *parts: str) -> Path:
        """The file of the partition `parts` of `table`; parts are slugs, the last names the file.

        Raises ValueError for parts that are no slugs, KeyError for a table that is not declared.
        """
        if not parts:
            raise ValueError(f"a partition of {table} needs a name")
        return self._folder(table, *parts[:-1]) / f"{_slug(table, parts[-1])}.parquet"

    def write(self, table: str, rows: Sequence[Row], *parts: str) -> Path:
        """Replace the partition `parts` of `table` by `rows`, atomically, in the declared schema.

        Raises LakeError when a row has a column too many, misses a required one or holds another type, and
        DiskFullError; the partition then stays as it was.
        """
        return self.write_tables(table, [arrow_table(table, rows)], *parts)

    def write_tables(self, table: str, chunks: Iterable[pa.Table], *parts: str) -> Path:
        """The same from Arrow tables of the declared schema, one after the other, so that memory holds one of them."""
        path = self.path(table, *parts)
        with (
            self.folder.writing(path) as file,
            pq.ParquetWriter(file, SCHEMAS[table], compression="zstd", write_page_checksum=True) as writer,
        ):
            for chunk in chunks:
                writer.write_table(chunk)
        return path

    def has(self, table: str, *parts: str) -> bool:
        """Whether a partition is there. Raises StoreError, as all that reads, when the store does not answer."""
        self._look(table, parts[:-1])
        return self.path(table, *parts).exists()

    def remove(self, table: str, *prefix: str) -> None:
        """Remove every partition of `table` below the folder `prefix`. Raises StoreError."""
        folder = self._folder(table, *prefix)
        for path in self.folder.files(folder):
            self.folder.remove(path)
        shutil.rmtree(folder, ignore_errors=True)

    def has_any(self, table: str, *prefix: str) -> bool:
        """Whether `table` has a partition below the folder `prefix`."""
        self._look(table, prefix)
        return any(True for _ in self._folder(table, *prefix).rglob("[!.]*.parquet"))

    def folders(self, table: str) -> list[str]:
        """The first parts of the partitions of `table` that have more than one, sorted. Raises StoreError."""
        return self.folder.folders(self._folder(table))

    def rows(self, table: str, *parts: str) -> list[dict[str, Any]]:
        """Return the rows of one partition as dicts; an absent partition has none.

        Raises LakeError when the file is not a Parquet file of the declared schema.
        """
        self._look(table, parts[:-1])
        path = self.path(table, *parts)
        if not path.exists():
            return []
        found: list[dict[str, Any]] = read_file(table, path).to_pylist()
        return found

    def chunks(self, table: str, *parts: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows of one partition in order as Arrow tables of some thousand rows each, of some columns or all.

        An absent partition has none. Raises LakeError as `rows` does.
        """
        self._look(table, parts[:-1])
        path = self.path(table, *parts)
        if not path.exists():
            return
        with _naming_file(table, path):
            file = pq.ParquetFile(path, page_checksum_verification=True)
            known = _as_declared(file.schema_arrow.empty_table(), SCHEMAS[table]).schema
            schema = known if columns is None else pa.schema([known.field(name) for name in columns])
            there = [name for name in schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(_ROWS_OF_CHUNK, columns=there, use_threads=False):
                yield _as_declared(pa.Table.from_batches([batch]), schema)

    def read(self, table: str, *prefix: str) -> pa.Table:
        """Return every partition of `table` below the folder `prefix` as one Arrow table.

        Raises LakeError that names the first file which is not a Parquet file of the declared schema.
        """
        self._look(table, prefix)
        return read_together(self._folder(table, *prefix), SCHEMAS[table], lambda file: read_file(table, file))

    @contextmanager
    def locked(self, table: str, *parts: str) -> Iterator[None]:
        """Hold the partition against every other process that uses this lake, and every other thread of this one.

        The lock goes with its process, so a killed run never leaves one behind; with its machine it goes after a
        minute or two. It keeps two runs from paying for the same attempt. Raises StoreError before it is held.
        """
        path = self.path(table, *parts)
        lock = path.with_name(f"{path.name.removesuffix('.parquet')}.lock")
        with naming_a_full_disk(lock):
            make_folder(lock.parent)
            file = lock.open("wb")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with self.folder.hold(path):
                yield

    def write_document(self, data: bytes, *parts: str) -> Path:
        """Write a file that is no table: `parts` are a folder of `OTHER_FOLDERS`, folders in it and a name.

        Raises DiskFullError.
        """
        path = self.root.joinpath(*parts)
        with self.folder.writing(path) as file:
            file.write(data)
        return path

    def documents(self, *parts: str) -> list[Path]:
        """The files right in a folder that has no table, sorted; `parts` as in `write_document`, without a name."""
        self.folder.look(self.root.joinpath(*parts))
        return sorted(self.root.joinpath(*parts).glob("[!.]*"))

    def push(self) -> int:
        """Put all that lies here and was never in the store there; returns how many files. Raises StoreError.

        So a lake that was on disk moves into a store. What the store has otherwise already waits.
        """
        return self.folder.put_all((*SCHEMAS.keys() - LOCAL_TABLES, *OTHER_FOLDERS))

    def _look(self, table: str, parts: Sequence[str]) -> None:
        self.folder.look(self._folder(table, *(parts[:1] if table in _READ_BY_FIRST_PART else ())))

    def _folder(self, table: str, *parts: str) -> Path:
        if table not in SCHEMAS:
            raise KeyError(f"the lake has no table {table!r}")
        return self.root.joinpath(table, *(_slug(table, part) for part in parts))


def _slug(table: str, part: str) -> str:
    if not _PARTITION.fullmatch(part):
        raise ValueError(f"{part!r} cannot name a partition of {table}: letters, digits and _.- only, at most 120")
    return part


def arrow_table(table: str, rows: Sequence[Row]) -> pa.Table:
    """The rows as an Arrow table of the declared schema. Raises LakeError as `Lake.write` does."""
    schema = SCHEMAS[table]
    names = set(schema.names)
    required = [column.name for column in schema if not column.nullable]
    for row in rows:
        # Arrow would drop the one and store a null for the other.
        unknown = row.keys() - names
        missing = [name for name in required if row.get(name) is None]
        if unknown or missing:
            fault = f"unknown columns {sorted(unknown)}" if unknown else f"nothing in the columns {missing}"
            raise LakeError(f"a row for {table} has {fault}")
    return arrow_table_of(table, {name: [row.get(name) for row in rows] for name in schema.names})


def arrow_table_of(table: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Columns of equal length as an Arrow table of the declared schema, of which there must be no other.

    Raises LakeError as `Lake.write` does.
    """
    schema = SCHEMAS[table]
    if columns.keys() != set(schema.names):
        raise LakeError(f"columns for {table} are not those declared: {sorted(columns.keys() ^ set(schema.names))}")
    arrays = []
    for column in schema:
        try:
            array = pa.array(columns[column.name], column.type, from_pandas=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise LakeError(f"the column {column.name} of {table} cannot hold its values: {error}") from error
        if array.null_count and not column.nullable:
            raise LakeError(f"the column {column.name} of {table} has rows with nothing in it")
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema)


def read_file(table: str, path: Path) -> pa.Table:
    """One partition with its checksums verified. Raises LakeError as `Lake.rows` does."""
    with _naming_file(table, path):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        return _as_declared(file.read(use_threads=False), SCHEMAS[table])


@contextmanager
def _naming_file(table: str, path: Path) -> Iterator[None]:
    """Turn what is wrong with a file into an error that names it and says what to do."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise LakeError(
            f"{path} is not a readable {table} file ({reason}): restore it, or delete it and run its stage again"
        ) from error


def _as_declared(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """`found` with the columns of `schema`. An optional column that the file does not have yet is null.

    Raises ValueError for every other difference: a reader that fills the gaps would turn results into nothing.
    """
    if found.schema.equals(schema):
        return found
    known = {column.name: column for column in found.schema}
    unlike = known.keys() - set(schema.names)
    unlike |= {column.name for column in schema if column.name in known and not known[column.name].equals(column)}
    unlike |= {column.name for column in schema if column.name not in known and not column.nullable}
    if unlike:
        raise ValueError(f"its columns are not those declared: {', '.join(sorted(unlike))}")
    columns = [
        found.column(column.name) if column.name in known else pa.nulls(len(found), column.type) for column in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
