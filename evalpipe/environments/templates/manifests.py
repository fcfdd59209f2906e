"""Finds manifests and lock files in a tree, for the templates of every language but Python."""

import posixpath
from collections.abc import Collection, Iterable, Iterator

from evalpipe.history.objects import folders_above


def files_named(paths: Iterable[bytes], *names: bytes) -> list[bytes]:
    """The paths whose last part is one of `names`, sorted."""
    return sorted(path for path in paths if posixpath.basename(path) in names)


def folder_of(path: bytes) -> bytes:
    """The folder of a file from the top of the tree; empty for the top itself."""
    return posixpath.dirname(path)


def nearest(path: bytes, folders: Collection[bytes]) -> bytes | None:
    """The innermost of `folders` that holds `path`; None when none does."""
    above: Iterator[bytes] = iter([*folders_above(path), b""])
    return next((folder for folder in above if folder in folders), None)


def outermost(folders: Collection[bytes]) -> list[bytes]:
    """The folders that lie in none of the others: the top alone where it is one of them; sorted."""
    return sorted(one for one in folders if not one or not folders_and_top(one).intersection(folders))


def folders_and_top(folder: bytes) -> set[bytes]:
    """The folders above a folder, the top among them."""
    return {*folders_above(folder), b""}


def joined(folder: bytes, relative: bytes) -> bytes | None:
    """The folder that a manifest in `folder` means by `relative`; None when that lies outside the tree."""
    path = posixpath.normpath(posixpath.join(folder, relative))
    if path.startswith((b"../", b"/")) or path == b"..":
        return None
    return b"" if path == b"." else path
