"""Trees of a base commit and of a change, in memory."""

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


class MemoryChange(MemoryTree):
    """See `ChangedTree`: `base` with the files of `changed` over it, and without those whose text is None."""

    def __init__(self, base: Mapping[str, str], changed: Mapping[str, str | None]) -> None:
        super().__init__({path: text for path, text in {**base, **changed}.items() if text is not None})
        self.altered = [path.encode() for path, text in changed.items() if text is not None]
