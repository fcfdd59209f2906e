"""Tables of the lake: one Parquet file per partition, written whole, read back as one dataset."""

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from evalpipe.lake.blobs import BlobStore
from evalpipe.lake.files import write_atomically
from evalpipe.lake.schemas import SCHEMAS

Row = Mapping[str, Any]


class LakeError(Exception):
    """A file of the lake cannot be read as what it should be."""


@dataclass(frozen=True, slots=True)
class Lake:
    """The folder that the pipeline writes: `<root>/<table>/<part>/…/<part>.parquet`, blobs beside."""

    root: Path

    @property
    def blobs(self) -> BlobStore:
        return BlobStore(self.root / "blobs")

    def path(self, table: str, *parts: str) -> Path:
        """Return the file of the partition `parts` of `table`; parts are slugs, the last names the file."""
        for part in parts:
            if not part or part.startswith(".") or "/" in part:
                raise ValueError(f"{part!r} cannot name a partition of {table}")
        return self.root.joinpath(table, *parts[:-1], f"{parts[-1]}.parquet")

    def write(self, table: str, rows: Sequence[Row], *parts: str) -> Path:
        """Replace the partition `parts` of `table` by `rows`, atomically, in the declared schema."""
        path = self.path(table, *parts)
        arrow = pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMAS[table])
        arrow.validate(full=True)
        sink = pa.BufferOutputStream()
        pq.write_table(arrow, sink, compression="zstd")
        write_atomically(path, sink.getvalue().to_pybytes())
        return path

    def has(self, table: str, *parts: str) -> bool:
        return self.path(table, *parts).exists()

    def rows(self, table: str, *parts: str) -> list[dict[str, Any]]:
        """Return the rows of one partition as dicts; an absent partition has none.

        Raises LakeError when the file is not a Parquet file of the declared schema.
        """
        path = self.path(table, *parts)
        if not path.exists():
            return []
        found: list[dict[str, Any]] = self._read_file(table, path).to_pylist()
        return found

    def read(self, table: str, *prefix: str) -> pa.Table:
        """Return every partition of `table` below the folder `prefix` as one Arrow table."""
        folder = self.root.joinpath(table, *prefix)
        files = sorted(str(path) for path in folder.rglob("[!.]*.parquet"))
        if not files:
            return SCHEMAS[table].empty_table()
        try:
            return ds.dataset(files, schema=SCHEMAS[table], format="parquet").to_table()
        except (pa.ArrowInvalid, OSError):
            for file in files:
                self._read_file(table, Path(file))  # names the file that is broken
            raise

    def _read_file(self, table: str, path: Path) -> pa.Table:
        try:
            return pq.read_table(path, schema=SCHEMAS[table])
        except (pa.ArrowInvalid, OSError) as error:
            raise LakeError(
                f"{path} is not a readable {table} file ({error}): restore it, or delete it and run its stage again"
            ) from error

    @contextmanager
    def locked(self, table: str, *parts: str) -> Iterator[None]:
        """Hold the partition against every other process of this machine.

        The lock goes with its process, so a killed run never leaves one behind. It keeps two runs from
        paying for the same attempt.
        """
        path = self.path(table, *parts).with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
