"""The files of a process box: written and read in its own directory, without ever following a link.

Writing comes before the command, reading after its end, so nobody races; what lies there is nevertheless
hostile.
"""

# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH101, PTH102, PTH108, PTH115, PTH118, PTH123, PTH211

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from evalpipe.sandbox.archive import PUT_TIME, TreeMeter, file_mode
from evalpipe.sandbox.box import DIRECTORY, EXECUTABLE, REGULAR, SYMLINK, FileEntry, TreeLimits
from evalpipe.sandbox.errors import OutputTooLarge, UnsafeOutput, host_faults
from evalpipe.sandbox.paths import as_text, entry_path, inner_path, parents

_Result = TypeVar("_Result")


class HostFiles:
    """Writes and reads below the directory `root`; see `Box`."""

    def __init__(self, root: bytes) -> None:
        self._root = root

    def put(self, files: Iterable[FileEntry]) -> None:
        """See `Box.put`."""
        for entry in files:
            path = entry_path(entry.path)
            with host_faults(f"write {as_text(path)!r}"):
                for parent in parents(path):
                    self._make_directory(self._absolute(parent))
                self._put_entry(self._absolute(path), entry)

    def read_file(self, path: str, max_bytes: int) -> bytes | None:
        """See `Box.read_file`."""
        inner = inner_path(path)
        with host_faults(f"read {path!r}"):
            if not self._way_is_clear(inner):
                return None
            info = _lstat(self._absolute(inner))
            if info is None:
                return None
            if not stat.S_ISREG(info.st_mode):
                raise UnsafeOutput(f"{path!r} is not a regular file")
            if info.st_size > max_bytes:
                raise OutputTooLarge(f"{path!r} has {info.st_size} bytes, more than {max_bytes}")
            return _read(self._absolute(inner))

    def read_tree(self, path: str, limits: TreeLimits) -> Iterator[FileEntry]:
        """See `Box.read_tree`."""
        inner = inner_path(path)
        with host_faults(f"read the tree {path!r}"):
            info = _lstat(self._absolute(inner)) if self._way_is_clear(inner) else None
            if info is None:
                return
            if not stat.S_ISDIR(info.st_mode):
                raise UnsafeOutput(f"{path!r} is not a directory")
            meter = TreeMeter(limits)
            meter.count_entry()
            directories = [b""]
            while directories:
                directory = directories.pop()
                for name in _permitted(self._absolute(inner, directory), os.listdir):
                    below = os.path.join(directory, name)
                    full = self._absolute(inner, below)
                    meter.count_entry()
                    mode = os.lstat(full).st_mode
                    if stat.S_ISDIR(mode):
                        directories.append(below)
                    elif stat.S_ISLNK(mode):
                        yield FileEntry(below, SYMLINK, os.readlink(full))
                    elif stat.S_ISREG(mode):
                        meter.count_bytes(below, os.lstat(full).st_size)
                        yield FileEntry(below, file_mode(mode), _read(full))

    def is_directory(self, path: bytes) -> bool:
        """Whether a real directory, behind no link, lies at a relative path."""
        steps = [*parents(path), path] if path else []
        infos = [_lstat(self._absolute(step)) for step in steps]
        return all(info is not None and stat.S_ISDIR(info.st_mode) for info in infos)

    def _absolute(self, *parts: bytes) -> bytes:
        return b"/".join((self._root, *(part for part in parts if part)))

    def _way_is_clear(self, inner: bytes) -> bool:
        """Whether all directories above a path exist, the root included, which a program may have
        replaced.
        """
        for parent in [b"", *parents(inner)]:
            info = _lstat(self._absolute(parent))
            if info is None:
                return False
            if not stat.S_ISDIR(info.st_mode):
                raise UnsafeOutput(f"{as_text(parent) or 'the root'!r} is not a directory")
        return True

    def _make_directory(self, full: bytes) -> None:
        info = _lstat(full)
        if info is not None and stat.S_ISDIR(info.st_mode):
            return
        if info is not None:
            os.unlink(full)
        os.mkdir(full)
        os.chmod(full, 0o755)

    def _put_entry(self, full: bytes, entry: FileEntry) -> None:
        if entry.mode == DIRECTORY:
            self._make_directory(full)
            return
        info = _lstat(full)
        if info is not None and stat.S_ISDIR(info.st_mode):
            shutil.rmtree(full)
        elif info is not None:
            os.unlink(full)
        if entry.mode == SYMLINK:
            os.symlink(entry.data, full)
        elif entry.mode in (REGULAR, EXECUTABLE):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(full, flags, 0o600), "wb") as file:
                os.fchmod(file.fileno(), entry.mode & 0o777)
                file.write(entry.data)
        else:
            raise ValueError(f"{entry.path!r} has the mode {entry.mode:o}, which a box does not take")
        os.utime(full, (PUT_TIME, PUT_TIME), follow_symlinks=False)


def _lstat(full: bytes) -> os.stat_result | None:
    try:
        return os.lstat(full)
    except FileNotFoundError:
        return None


def _read(full: bytes) -> bytes:
    def read(path: bytes) -> bytes:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read()

    return _permitted(full, read)


def _permitted(full: bytes, action: Callable[[bytes], _Result]) -> _Result:
    """Do something with a file or directory of the box that may forbid it to its own owner."""
    try:
        return action(full)
    except PermissionError:
        os.chmod(full, stat.S_IMODE(os.lstat(full).st_mode) | 0o700)
        return action(full)
