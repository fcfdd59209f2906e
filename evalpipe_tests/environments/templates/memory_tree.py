"""A tree of a base commit in memory."""

from collections.abc import Collection, Mapping


class MemoryTree:
    """See `ProjectTree`."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {path.encode(): text.encode() for path, text in files.items()}

    @property
    def paths(self) -> Collection[bytes]:
        return self._files.keys()

    def read(self, path: bytes) -> bytes:
        return self._files[path]
