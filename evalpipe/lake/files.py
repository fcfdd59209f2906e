"""Files that are whole or absent: every write of the lake goes through here."""

import os
import secrets
from pathlib import Path


class DiskFullError(OSError):
    """The disk refused a write; what was there before is untouched."""


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader, or a crash at any moment, sees the old file or the new one.

    The file and its folder are flushed before the call returns, so a result that was reported is on disk.
    Raises DiskFullError when there is no room, and leaves no half file behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno in (28, 122):  # ENOSPC, EDQUOT
            raise DiskFullError(
                error.errno, f"no room to write {path}: free some space on that disk and run the same again"
            ) from error
        raise
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
