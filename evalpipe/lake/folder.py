"""The local folder of a lake: where every file of it is written and read.

By itself it is the lake. With an object store behind it (`working_copy`) it is a copy of what was needed so far, and
keeps what the store does not have yet.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from evalpipe.lake.files import writing_atomically


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file of the lake: its size in bytes, and when it was last written or used, in UTC."""

    size: int
    modified: dt.datetime


class LakeFolder:
    """A lake on this machine's disk alone. Paths are those of files below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def place(self) -> str:
        """Where the lake is, for people."""
        return str(self.root)

    @contextmanager
    def writing(self, path: Path) -> Iterator[BinaryIO]:
        """Open a file of the lake to write; see `writing_atomically`. Raises DiskFullError."""
        with writing_atomically(path) as file:
            yield file

    def touch(self, path: Path) -> None:
        """Note that a file that is written already is in use from now on."""
        path.touch()

    def look(self, folder: Path) -> None:
        """Make what lies below `folder` what the lake has there by now."""

    def refresh(self, path: Path) -> None:
        """Make one file what the lake has by now."""

    def folders(self, folder: Path) -> list[str]:
        """The names of the folders right in `folder`, sorted."""
        return sorted(path.name for path in folder.glob("[!.]*") if path.is_dir())

    def get(self, paths: Iterable[Path]) -> None:
        """Make files that never change once they are written, as blobs, lie here where the lake has them."""

    def add(self, folder: Path) -> None:
        """Take files below `folder`, that others wrote there and that will not change, into the lake."""

    def hold(self, path: Path) -> AbstractContextManager[None]:
        """Hold a file against the other machines that use this lake, and make it what the lake has."""
        return nullcontext()

    def files(self, folder: Path) -> Mapping[Path, KeptFile]:
        """Every file of the lake below `folder`, but those of writes that did not end."""
        found = {}
        for path in folder.rglob("[!.]*"):
            if path.is_file():
                stat = path.stat()
                found[path] = KeptFile(stat.st_size, dt.datetime.fromtimestamp(stat.st_mtime, dt.UTC))
        return found

    def pieces(self, path: Path) -> AbstractContextManager[BinaryIO]:
        """Open a file of the lake to read. Raises FileNotFoundError."""
        return path.open("rb")

    def remove(self, path: Path, unless: Callable[[KeptFile], bool] = lambda _: False) -> None:
        """Remove a file, unless it is by now what `unless` looks for."""
        stat = path.stat()
        if not unless(KeptFile(stat.st_size, dt.datetime.fromtimestamp(stat.st_mtime, dt.UTC))):
            path.unlink()

    def put_all(self, folders: Iterable[str]) -> int:
        """Put what lies below these folders, and was never where the lake is, there; returns how many files."""
        return 0

    def put_waiting(self) -> list[Path]:
        """Put what is not where the lake is yet there; returns what stays."""
        return []

    def check(self) -> None:
        """Do once all that is ever asked of an object store."""

    def waiting(self) -> list[Path]:
        """Files that are not where the lake is yet."""
        return []
