"""Looks at every file of the lake: whether it is what it was when it was written, and whether anything names it."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.lake.object_store import StoreError, StoreFault
from evalpipe.lake.schemas import SCHEMAS
from evalpipe.lake.tables import OTHER_FOLDERS, Lake, LakeError, read_file

BLOB_COLUMNS = frozenset({"patch_sha256", "transcript_sha256", "trajectory_sha256"})
"""Columns that name blobs, in whichever table they are."""

_DIGEST = re.compile("[0-9a-f]{64}")
_PIECE = 1 << 20


class LakeFaultKind(StrEnum):
    """What can be wrong with a file of the lake."""

    UNREADABLE_TABLE = "unreadable_table"
    CHANGED_BLOB = "changed_blob"
    MISSING_BLOB = "missing_blob"
    STRAY_FILE = "stray_file"
    MANIFEST = "manifest"


@dataclass(frozen=True, slots=True)
class LakeFault:
    """One file that is wrong; the text names it and says what to do."""

    kind: LakeFaultKind
    path: Path
    text: str


@dataclass
class TableNames:
    """What the rows of the tables name: blobs that must be there, and everything that looks like the name of one."""

    blobs: set[str] = field(default_factory=set)
    anything: set[str] = field(default_factory=set)


def table_files(lake: Lake) -> list[tuple[str, Path]]:
    """Every partition of every table, as its table and its file. Raises StoreError."""
    for table in SCHEMAS:
        lake.folder.look(lake.root / table)
    return [(table, path) for table in SCHEMAS for path in sorted((lake.root / table).rglob("[!.]*.parquet"))]


def blob_files(lake: Lake) -> list[Path]:
    """Every file among the blobs but writes that did not end. Raises StoreError."""
    return sorted(lake.folder.files(lake.blobs.root))


def unfinished_writes(lake: Lake) -> list[Path]:
    """Files of writes that were killed in the middle; nothing reads them, and one may belong to a write that runs."""
    folders = (lake.root / name for name in (*SCHEMAS, *OTHER_FOLDERS))
    return sorted(path for folder in folders for path in folder.rglob(".*.tmp") if path.is_file())


def inspect_table(table: str, path: Path, names: TableNames) -> LakeFault | None:
    """Read a partition with all its checksums against its schema, and note what its rows name."""
    try:
        rows = read_file(table, path)
    except LakeError as error:
        return LakeFault(LakeFaultKind.UNREADABLE_TABLE, path, str(error))
    for column in rows.schema:
        digests = {text for text in _texts(rows, column) if _DIGEST.fullmatch(text)}
        names.anything |= digests
        if column.name in BLOB_COLUMNS:
            names.blobs |= digests
    return None


def _texts(rows: pa.Table, column: "pa.Field[pa.DataType]") -> set[str]:
    """The texts in a column of texts or of lists of them."""
    values = rows.column(column.name)
    if pa.types.is_string(column.type):
        return {str(text) for text in values.unique().to_pylist() if text is not None}
    if pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
        return {str(text) for text in pc.list_flatten(values).to_pylist() if text is not None}
    return set()


def inspect_blob(lake: Lake, path: Path) -> LakeFault | None:
    """Whether a file among the blobs holds what its name promises. Raises StoreError."""
    if not _DIGEST.fullmatch(path.name):
        return LakeFault(LakeFaultKind.STRAY_FILE, path, f"{path} is no blob: move it out of the lake")
    if _sha256(lake, path) == path.name:
        return None
    text = f"{path} was changed after it was written: restore it from a backup"
    return LakeFault(LakeFaultKind.CHANGED_BLOB, path, text)


def _sha256(lake: Lake, path: Path) -> str | None:
    """The digest of a file; None when the store knows itself that it is damaged."""
    digest = hashlib.sha256()
    try:
        with lake.folder.pieces(path) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except StoreError as error:
        if error.fault is not StoreFault.DAMAGED:
            raise
        return None
    return digest.hexdigest()


def missing_blobs(lake: Lake, names: TableNames) -> Iterator[LakeFault]:
    """The blobs that rows name and that are not there. Raises StoreError."""
    there = lake.folder.files(lake.blobs.root)
    for digest in sorted(names.blobs):
        path = lake.blobs.path(digest)
        if path not in there:
            text = f"{path} is missing, and rows name it: restore it from a backup"
            yield LakeFault(LakeFaultKind.MISSING_BLOB, path, text)
