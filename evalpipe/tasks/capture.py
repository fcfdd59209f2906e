"""Takes an agent's work out of its box as one patch.

The agent's files arrive as bytes and become git objects of evalpipe's own. No git ever runs where the agent
could write, so its hooks, filters, attributes, excludes, index flags, commits and stashes mean nothing here.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from evalpipe.history import ScratchObjects, TreeEntry
from evalpipe.tasks.files import SUBMODULE_MODE, TreeFile

_WRITE_TOGETHER_BYTES = 16 * 1024 * 1024

CACHE_FOLDERS = frozenset({b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis"})
"""Folders that tools fill by themselves. Nothing in them is anybody's work."""


@dataclass(frozen=True, slots=True)
class CapturedPatch:
    """What an agent changed: a patch against the parent's tree (empty: nothing) and the number of its files."""

    patch: bytes
    files_changed: int


def capture_patch(scratch: ScratchObjects, parent: str, files: Iterable[TreeFile]) -> CapturedPatch:
    """Return what turns the tree of `parent` into `files`, the whole working tree as it was left.

    Ignored and untracked files count as work; git directories and the caches of `CACHE_FOLDERS` do not: what the
    parent has of them, and its submodules, is kept as it was. Raises TreeNotWritten when a name that was left
    behind is one that git holds unsafe.
    """
    base = scratch.read_tree(parent)
    submodules = tuple(path + b"/" for path, entry in base.items() if entry.mode == SUBMODULE_MODE)
    changes: dict[bytes, TreeEntry | None] = {
        path: None for path, entry in base.items() if entry.mode != SUBMODULE_MODE and not _is_no_work(path)
    }
    pending: list[bytes] = []
    pending_bytes = 0
    for file in files:
        if _is_no_work(file.path) or file.path.startswith(submodules):
            continue
        entry = TreeEntry(file.mode, _blob_id(file.data, scratch.object_format))
        if base.get(file.path) == entry:
            del changes[file.path]
            continue
        changes[file.path] = entry
        pending.append(file.data)
        pending_bytes += len(file.data)
        if pending_bytes > _WRITE_TOGETHER_BYTES:
            scratch.write_blobs(pending)
            pending, pending_bytes = [], 0
    scratch.write_blobs(pending)
    if not changes:
        return CapturedPatch(b"", 0)
    return CapturedPatch(scratch.diff(parent, scratch.write_tree(parent, changes)), len(changes))


def _is_no_work(path: bytes) -> bool:
    parts = path.split(b"/")
    return any(part.lower() == b".git" or part in CACHE_FOLDERS for part in parts)


def _blob_id(data: bytes, object_format: str) -> str:
    digest = hashlib.new(object_format, usedforsecurity=False)
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()
