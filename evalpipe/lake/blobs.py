"""Blobs by their SHA-256: patches, transcripts and logs that are too large or too raw for a table."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from evalpipe.lake.files import write_atomically


class BlobError(Exception):
    """A blob is missing or does not have the content that its name promises."""


@dataclass(frozen=True, slots=True)
class BlobStore:
    """Content-addressed files below `root`, named by the hex SHA-256 of their bytes."""

    root: Path

    def path(self, digest: str) -> Path:
        return self.root / digest[:2] / digest

    def put(self, data: bytes) -> str:
        """Store `data` and return its digest; the same bytes are stored once."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if not path.exists():
            write_atomically(path, data)
        return digest

    def get(self, digest: str) -> bytes:
        """Return the bytes of `digest`. Raises BlobError when they are missing or were changed."""
        path = self.path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise BlobError(f"blob {digest} is missing from {self.root}: restore it from a backup") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise BlobError(f"blob {path} was changed after it was written: restore it from a backup")
        return data
