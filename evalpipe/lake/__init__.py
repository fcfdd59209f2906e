"""The lake: Parquet schemas, tables and blobs. The only folder that writes them."""

from evalpipe.lake.blobs import BlobError, BlobStore
from evalpipe.lake.files import DiskFullError, write_atomically
from evalpipe.lake.schemas import SCHEMAS
from evalpipe.lake.spool import Spool
from evalpipe.lake.tables import Lake, LakeError, Row, arrow_table

__all__ = [
    "SCHEMAS",
    "BlobError",
    "BlobStore",
    "DiskFullError",
    "Lake",
    "LakeError",
    "Row",
    "Spool",
    "arrow_table",
    "write_atomically",
]
