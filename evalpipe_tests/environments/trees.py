"""A tree of a base commit that is spelled out."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from evalpipe.sandbox import EXECUTABLE, REGULAR, FileEntry


@dataclass(frozen=True)
class TextTree:
    """Files by path; one that begins with `#!` is executable."""

    contents: Mapping[bytes, bytes]
    commit: str = "c" * 40

    @property
    def paths(self) -> Collection[bytes]:
        return self.contents.keys()

    def read(self, path: bytes) -> bytes:
        return self.contents[path]

    def object_id(self, path: bytes) -> str | None:
        return hashlib.sha256(self.contents[path]).hexdigest() if path in self.contents else None

    def files(self) -> Iterator[FileEntry]:
        for path, data in self.contents.items():
            yield FileEntry(path, EXECUTABLE if data.startswith(b"#!") else REGULAR, data)


NO_TREE = TextTree({})
