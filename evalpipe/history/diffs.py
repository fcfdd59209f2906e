"""Diffs that survive: bytes, with flags under which every kind of change applies again to the very same tree.

Which flags and why was measured in `grading.md`, "patch classes". `git diff-tree` is used because it reads no
user interface settings; what has a default that could change between git versions is spelled out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from evalpipe.history.git_command import GitCommand
from evalpipe.history.objects import checked_id, folders_above

ROBUST_DIFF_FLAGS: Final = (
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--ignore-submodules=none",
    "--submodule=short",
)

# One argument may not exceed 128 KiB on Linux and all of them together, with the environment, 2 MiB or less.
_PATH_BYTES_PER_PROCESS: Final = 64 * 1024

_FILE_HEADER: Final = b"diff --git "


def diff_trees(command: GitCommand, old: str, new: str, paths: Iterable[bytes] | None = None) -> bytes:
    """The patch from one commit or tree to another, both by full id; with `paths`, of exactly these files.

    A path names a file: `a` does not stand for what is below `a/`. Paths that did not change are ignored.
    """
    ids = (checked_id(old), checked_id(new))
    flags = ("diff-tree", "-r", "-p", *ROBUST_DIFF_FLAGS, *ids, "--")
    if paths is None:
        return command.run(*flags)
    wanted = frozenset(paths)
    changed = list(changed_entries(command, *ids))
    parts: list[bytes] = []
    for chunk in _chunks([path for path, _status in changed if path in wanted]):
        patch = command.run(*flags, *(os.fsdecode(path) for path in chunk))
        parts.extend(_sections_of(patch, changed, frozenset(chunk)))
    return b"".join(parts)


def changed_entries(command: GitCommand, old: str, new: str) -> Iterator[tuple[bytes, bytes]]:
    """(path, status letter) of every file that differs, in git's order, without looking for renames."""
    raw = command.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", checked_id(old), checked_id(new), "--")
    fields = raw.split(b"\0")[:-1]
    yield from zip(fields[1::2], fields[0::2], strict=True)


def _chunks(paths: Sequence[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    room = _PATH_BYTES_PER_PROCESS
    for path in paths:
        if chunk and len(path) > room:
            yield chunk
            chunk, room = [], _PATH_BYTES_PER_PROCESS
        chunk.append(path)
        room -= len(path) + 1
    if chunk:
        yield chunk


def _sections_of(patch: bytes, changed: Sequence[tuple[bytes, bytes]], chunk: frozenset[bytes]) -> Iterator[bytes]:
    """The sections of `patch` that belong to a path of `chunk`.

    Git also answers with what lies below a path that was a file and became a folder. Content lines of a patch
    start with a sign or are base 85, so a line that starts with the header's words is a header.
    """
    starts = [0, *_header_offsets(patch), len(patch)] if patch else []
    sections = [patch[start:end] for start, end in pairwise(starts)]
    answered = [
        path
        for path, status in changed
        if path in chunk or any(folder in chunk for folder in folders_above(path))
        # A change of type is written as a deletion and a creation.
        for _section in range(2 if status == b"T" else 1)
    ]
    yield from (section for path, section in zip(answered, sections, strict=True) if path in chunk)


def _header_offsets(patch: bytes) -> Iterator[int]:
    position = patch.find(b"\n" + _FILE_HEADER)
    while position >= 0:
        yield position + 1
        position = patch.find(b"\n" + _FILE_HEADER, position + 1)
