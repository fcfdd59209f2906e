"""Files of a tree as bytes, read from git objects: nothing is checked out, no attribute or filter is applied."""

from collections.abc import Iterator
from typing import NamedTuple

from evalpipe.history import ObjectReader, Tree

SUBMODULE_MODE = 0o160000


class TreeFile(NamedTuple):
    """One file of a tree: its path from the top, its git mode (100644, 100755 or 120000) and its bytes."""

    path: bytes
    mode: int
    data: bytes


def read_files(reader: ObjectReader, tree: Tree) -> Iterator[TreeFile]:
    """Yield every file of `tree`. A submodule has no content here and is left out.

    Files with the same content are read once; memory holds one file at a time.
    """
    paths: dict[str, list[tuple[bytes, int]]] = {}
    for path, entry in tree.items():
        if entry.mode != SUBMODULE_MODE:
            paths.setdefault(entry.oid, []).append((path, entry.mode))
    for oid, data in reader.read_blobs(paths):
        for path, mode in paths[oid]:
            yield TreeFile(path, mode, data)
