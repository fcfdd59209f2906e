"""What the decision about a kept change needs from file contents, read for many changes at once.

Two git processes serve a whole batch: one counts lines, one reads the changelogs and manifests that changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from evalpipe.history.dependencies import added_lines, dependencies_changed
from evalpipe.history.mainline import FileChange
from evalpipe.history.objects import GITLINK
from evalpipe.history.paths import FileKind, PathRules, is_changelog
from evalpipe.history.repository import Repository
from evalpipe.history.shapes import Change

_PAIR_OF_TREES: Final = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64})\n")


class Evidence(NamedTuple):
    """Lines added and removed over all text files, added changelog lines, and whether dependencies changed."""

    lines_added: int
    lines_removed: int
    changelog: str
    dependencies_changed: bool


def gather(repository: Repository, changes: Sequence[Change], rules: PathRules) -> list[Evidence]:
    """The evidence for each change, in order. Every change must have a parent."""
    if not changes:
        return []
    read = [_files_to_read(change, rules) for change in changes]
    wanted = {oid for files in read for file in files for oid in _sides(file) if oid is not None}
    contents = dict(repository.read_blobs(wanted))
    counts = _count_lines(repository, changes)
    evidence = []
    for (added, removed), files in zip(counts, read, strict=True):
        changelog: list[bytes] = []
        dependency = False
        for file in files:
            old, new = (b"" if oid is None else contents[oid] for oid in _sides(file))
            if is_changelog(file.path):
                changelog += added_lines(old, new)
            elif not dependency:
                dependency = dependencies_changed(file.path, old, new)
        evidence.append(Evidence(added, removed, b"\n".join(changelog).decode("utf-8", "replace"), dependency))
    return evidence


def _files_to_read(change: Change, rules: PathRules) -> list[FileChange]:
    return [
        file
        for file in change.files
        if GITLINK not in (file.old_mode, file.new_mode)
        and (is_changelog(file.path) or rules.kind_of(file.path) is FileKind.dependency)
    ]


def _sides(file: FileChange) -> tuple[str | None, str | None]:
    old = file.old_oid.decode("ascii") if file.old_mode else None
    new = file.new_oid.decode("ascii") if file.new_mode else None
    return old, new


def _count_lines(repository: Repository, changes: Sequence[Change]) -> Iterator[tuple[int, int]]:
    """(added, removed) for each change; binary files count nothing."""
    pairs = "".join(f"{change.parent_tree} {change.last.tree}\n" for change in changes)
    answer = repository.command.run(
        "diff-tree", "--stdin", "-r", "-z", "--numstat", "--no-renames", stdin=pairs.encode("ascii")
    )
    counts: list[list[int]] = []
    for token in answer.split(b"\0"):
        header = _PAIR_OF_TREES.match(token)
        if header:
            counts.append([0, 0])
            token = token[header.end() :]
        if token:
            added, removed, _path = token.split(b"\t", 2)
            counts[-1][0] += 0 if added == b"-" else int(added)
            counts[-1][1] += 0 if removed == b"-" else int(removed)
    for added_removed in counts:
        yield added_removed[0], added_removed[1]
