"""Files that are whole or absent: every write of the lake goes through here."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class DiskFullError(OSError):
    """The disk refused a write; what was there before is untouched."""


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path`, as `writing_atomically` says."""
    with writing_atomically(path) as file:
        file.write(data)


def write_for_now(path: Path, data: bytes) -> None:
    """Write `data` to `path`, so that a reader sees the old file or the new one; a power cut can take it away again.

    For what can be had again. Raises DiskFullError.
    """
    temporary = _temporary(path)
    with naming_a_full_disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def writing_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write that becomes `path` at the end: a reader, or a crash, sees the old file or the new one.

    The file and its folders are flushed before the context ends, so a result that was reported is on disk. A
    process that is killed in the middle can leave a file `.<name>.….tmp`, which nothing reads. Raises
    DiskFullError when there is no room, and leaves no half file behind.
    """
    temporary = _temporary(path)
    with naming_a_full_disk(path):
        make_folder(path.parent)
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _flush_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make `folder` and those above it, where they are missing, so that a power cut does not take them away."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush_folder(folder.parent)


@contextmanager
def naming_a_full_disk(path: Path) -> Iterator[None]:
    """Turn the errors of a full disk or quota, met while `path` is written, into DiskFullError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFullError(
                error.errno, f"no room to write {path}: free some space on that disk and run the same again"
            ) from error
        raise


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
