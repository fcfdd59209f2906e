"""Rows that are not stored yet: they wait on disk until all of them are known, so that memory does not hold them."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from evalpipe.lake.files import make_folder, naming_a_full_disk
from evalpipe.lake.schemas import SCHEMAS
from evalpipe.lake.tables import arrow_table_of


class Spool:
    """Rows of one table in a nameless file below `folder`, which is gone when the context ends."""

    def __init__(self, table: str, folder: Path) -> None:
        make_folder(folder)
        self._table = table
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by __exit__)
        self._writer = pa.ipc.new_stream(self._file, SCHEMAS[table])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append rows by their columns. Raises LakeError for what the table does not declare, and DiskFullError."""
        chunk = arrow_table_of(self._table, columns)
        with naming_a_full_disk(self._folder):
            self._writer.write_table(chunk)

    def chunks(self) -> Iterator[pa.Table]:
        """All rows in order, in the pieces in which they were added; nothing can be added any more."""
        with naming_a_full_disk(self._folder):
            self._writer.close()
        self._file.seek(0)
        for batch in pa.ipc.open_stream(self._file):
            yield pa.Table.from_batches([batch])
