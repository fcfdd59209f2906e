"""Blobs by their SHA-256: patches, transcripts and logs that are too large or too raw for a table."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from evalpipe.lake.folder import LakeFolder


class BlobError(Exception):
    """A blob is missing or does not have the content that its name promises."""


class BlobStore:
    """Content-addressed files below `root`, a part of the lake in `folder`, named by the hex SHA-256 of their bytes."""

    def __init__(self, root: Path, folder: LakeFolder | None = None) -> None:
        self.root = root
        self._folder = folder or LakeFolder(root)

    def path(self, digest: str) -> Path:
        """The file of a blob. Raises BlobError for what is no digest."""
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise BlobError(f"{digest!r} is not the SHA-256 of a blob")
        return self.root / digest[:2] / digest

    def put(self, data: bytes) -> str:
        """Store `data` and return its digest. The same bytes are stored once; a damaged copy is replaced.

        Raises DiskFullError.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        try:
            known = path.read_bytes() == data
        except FileNotFoundError:
            known = False
        if known:
            self._folder.touch(path)  # its age is what trimming goes by
        else:
            with self._folder.writing(path) as file:
                file.write(data)
        return digest

    def fetch(self, digests: Iterable[str]) -> None:
        """Have these blobs here, where the lake has them, by few requests. Raises StoreError."""
        self._folder.get([self.path(digest) for digest in digests])

    def get(self, digest: str) -> bytes:
        """Return the bytes of `digest`. Raises BlobError when they are missing or were changed, and StoreError."""
        path = self.path(digest)
        self._folder.get([path])
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise BlobError(f"blob {digest} is missing from {self.root}: restore it from a backup") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise BlobError(f"blob {path} was changed after it was written: restore it from a backup")
        return data
