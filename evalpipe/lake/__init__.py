"""The lake: Parquet schemas, tables and blobs, on disk or in an object store. The only folder that writes them."""

from evalpipe.lake.blobs import BlobError, BlobStore
from evalpipe.lake.files import DiskFullError, write_atomically
from evalpipe.lake.inspection import (
    LakeFault,
    LakeFaultKind,
    TableNames,
    blob_files,
    inspect_blob,
    inspect_table,
    missing_blobs,
    table_files,
    unfinished_writes,
)
from evalpipe.lake.object_store import EXTRAS, StoreError, StoreFault
from evalpipe.lake.schemas import SCHEMAS
from evalpipe.lake.spool import Spool
from evalpipe.lake.tables import Lake, LakeError, Row, arrow_table

__all__ = [
    "EXTRAS",
    "SCHEMAS",
    "BlobError",
    "BlobStore",
    "DiskFullError",
    "Lake",
    "LakeError",
    "LakeFault",
    "LakeFaultKind",
    "Row",
    "Spool",
    "StoreError",
    "StoreFault",
    "TableNames",
    "arrow_table",
    "blob_files",
    "inspect_blob",
    "inspect_table",
    "missing_blobs",
    "table_files",
    "unfinished_writes",
    "write_atomically",
]
