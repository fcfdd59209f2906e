"""Tar streams in and out of a container engine: written to a temporary file, read without ever being
unpacked.

Names are bytes. They pass through `tarfile` as UTF-8 with surrogate escapes, which gives back the same bytes.
"""

import io
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import IO, Protocol

from evalpipe.sandbox.box import DIRECTORY, EXECUTABLE, REGULAR, SYMLINK, FileEntry, TreeLimits
from evalpipe.sandbox.errors import EngineUnavailable, OutputTooLarge, UnsafeOutput, host_faults
from evalpipe.sandbox.paths import as_bytes, as_text, entry_path, parents

# One time for all files that are put, so that runs are alike; after 1980, because zip files know no time
# before.
PUT_TIME = 946_684_800
_BLOCK = 512
# GNU, because it stores the bytes of a name as they are; PAX would have to declare them as UTF-8.
_FORMAT = tarfile.GNU_FORMAT
_ENCODING, _ERRORS = "utf-8", "surrogateescape"


class TarSpool:
    """Collects entries as a tar archive on disk, so that a large tree costs no memory."""

    def __init__(self, uid: int, gid: int) -> None:
        self._uid, self._gid = uid, gid
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._tar = tarfile.open(  # noqa: SIM115
            fileobj=self._file, mode="w", format=_FORMAT, encoding=_ENCODING, errors=_ERRORS
        )
        self._directories: set[bytes] = set()
        self._others: set[bytes] = set()
        self.replaces = False
        """Whether an entry stands in the place of an earlier one, which not every tar program takes."""

    def __enter__(self) -> "TarSpool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add_root(self, name: str) -> None:
        """Add an entry, under a name of the engine's own making, that hands the root directory to the
        user.
        """
        self._add(name, tarfile.DIRTYPE, 0o755, b"")

    def add(self, files: Iterable[FileEntry]) -> None:
        """Add entries, with an explicit entry for each directory on the way: an engine would make those as
        root.
        """
        for entry in files:
            path = entry_path(entry.path)
            for parent in parents(path):
                self._add_directory(parent)
            if entry.mode == DIRECTORY:
                self._add_directory(path)
                continue
            self.replaces = self.replaces or path in self._directories or path in self._others
            self._others.add(path)
            if path in self._directories:
                inside = path + b"/"
                self._directories = {d for d in self._directories if d != path and not d.startswith(inside)}
            name = as_text(path)
            if entry.mode == SYMLINK:
                self._add(name, tarfile.SYMTYPE, 0o777, b"", link=as_text(entry.data))
            elif entry.mode in (REGULAR, EXECUTABLE):
                self._add(name, tarfile.REGTYPE, entry.mode & 0o777, entry.data)
            else:
                raise ValueError(f"{path!r} has the mode {entry.mode:o}, which a box does not take")

    def has_directory(self, path: bytes) -> bool:
        """Whether the archive, read to its end, leaves a directory at this path."""
        return path in self._directories

    def finish(self) -> IO[bytes]:
        """The whole archive, from its start; nothing can be added afterwards."""
        self._tar.close()
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Drop the archive."""
        self._file.close()

    def _add_directory(self, path: bytes) -> None:
        if path not in self._directories:
            self.replaces = self.replaces or path in self._others
            self._directories.add(path)
            self._add(as_text(path), tarfile.DIRTYPE, 0o755, b"")

    def _add(self, name: str, kind: bytes, mode: int, data: bytes, link: str = "") -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.linkname, info.size = kind, mode, link, len(data)
        info.uid, info.gid, info.mtime = self._uid, self._gid, PUT_TIME
        with host_faults("keep the files of a box in the temporary directory"):
            self._tar.addfile(info, io.BytesIO(data))


class Readable(Protocol):
    """All that is asked of an archive's source."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at the end."""


class _EndWatch(io.RawIOBase):
    """Passes a tar stream on and remembers its last block, which tells a whole archive from a torn one."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._last = b""

    def read(self, size: int = 64 * _BLOCK, /) -> bytes:
        """Up to `size` bytes; none at the end."""
        chunk = self._source.read(size)
        self._last = (self._last + chunk)[-_BLOCK:]
        return chunk

    def require_end(self) -> None:
        """Read the rest. Raises EngineUnavailable unless it ends as an archive does."""
        while self.read():
            pass
        if self._last != bytes(_BLOCK):
            raise EngineUnavailable("the engine broke off in the middle of an archive; check that it still runs")


def tar_members(source: Readable) -> Iterator[tuple[tarfile.TarInfo, Callable[[], bytes] | None]]:
    """The members of a tar stream, each with a way to read it if it is a regular file, before the next one.

    Raises EngineUnavailable when the stream is torn.
    """
    watched = _EndWatch(source)
    with _torn_archives(), tarfile.open(fileobj=watched, mode="r|", encoding=_ENCODING, errors=_ERRORS) as tar:
        while (member := tar.next()) is not None:
            # An archive object remembers its members; those of a million files would be a burden.
            tar.members = []  # type: ignore[attr-defined]
            yield member, partial(_content, tar, member) if member.isreg() else None
    watched.require_end()


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    with _torn_archives():
        file = tar.extractfile(member)
        return b"" if file is None else file.read()


@contextmanager
def _torn_archives() -> Iterator[None]:
    try:
        yield
    except tarfile.TarError as error:
        raise EngineUnavailable(f"the engine sent a broken archive: {error}") from error


class TreeMeter:
    """Counts what is read of a tree against its limits, before the content is held in memory."""

    def __init__(self, limits: TreeLimits) -> None:
        self._limits = limits
        self._entries = 0
        self._bytes = 0

    def count_entry(self) -> None:
        """Count one entry of any kind. Raises OutputTooLarge."""
        self._entries += 1
        if self._entries > self._limits.entries:
            raise OutputTooLarge(f"the tree has more than {self._limits.entries} entries")

    def count_bytes(self, path: bytes, size: int) -> None:
        """Count the content of one file. Raises OutputTooLarge."""
        self._bytes += size
        if size > self._limits.file_bytes:
            raise OutputTooLarge(f"{path!r} has {size} bytes, more than {self._limits.file_bytes}")
        if self._bytes > self._limits.total_bytes:
            raise OutputTooLarge(f"the tree has more than {self._limits.total_bytes} bytes")


def tree_entries(
    source: Readable, limits: TreeLimits, read_hard_link: Callable[[bytes], FileEntry | None]
) -> Iterator[FileEntry]:
    """The files and links of a directory's tar stream; names start with the directory's own, which is
    dropped.

    A hard link's content was earlier in the stream, so it is asked for again with `read_hard_link(path)`,
    which gives None for what is neither file nor link. Raises OutputTooLarge, UnsafeOutput when what the stream is of
    is no directory, EngineUnavailable.
    """
    meter = TreeMeter(limits)
    for member, content in tar_members(source):
        if "/" not in member.name and not member.isdir():
            raise UnsafeOutput(f"{member.name!r} is not a directory")
        meter.count_entry()
        path = as_bytes(member.name).partition(b"/")[2]
        if member.issym():
            yield FileEntry(path, SYMLINK, as_bytes(member.linkname))
        elif member.islnk():
            linked = read_hard_link(path)
            if linked is not None:
                meter.count_bytes(path, len(linked.data))
                yield linked
        elif content is not None:
            meter.count_bytes(path, member.size)
            yield FileEntry(path, file_mode(member.mode), content())


def file_mode(mode: int) -> int:
    """The mode that git would store for a regular file with these permission bits."""
    return EXECUTABLE if mode & 0o100 else REGULAR
