"""Git objects as values: a tree as a mapping of exact byte paths, and blobs in bulk from one process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

from evalpipe.history.errors import CommitMissing, GitFailed, ObjectMissing
from evalpipe.history.git_command import GitCommand, incomplete

REGULAR_FILE: Final = 0o100644
EXECUTABLE_FILE: Final = 0o100755
SYMLINK: Final = 0o120000
GITLINK: Final = 0o160000

_OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree: its git mode (see the constants above) and the id of its blob or commit."""

    mode: int
    oid: str


Tree = dict[bytes, TreeEntry]


class ObjectReader:
    """Reads objects of one git directory and of whatever it borrows from."""

    def __init__(self, command: GitCommand, object_format: str) -> None:
        self.command = command
        self.object_format = object_format

    def tree_id(self, treeish: str) -> str:
        """The tree of a commit or tree, given by its full id; raises CommitMissing."""
        result = self.command.attempt("rev-parse", "--verify", "--quiet", f"{checked_id(treeish)}^{{tree}}")
        if result.status != 0:
            raise CommitMissing(
                f"{treeish} is neither a commit nor a tree of {self.command.git_dir}; "
                "update the mirror, or check whether the history was rewritten"
            )
        return result.stdout.decode("ascii").strip()

    def read_tree(self, treeish: str) -> Tree:
        """Every file of a commit or tree, given by its full id, in git's order; raises CommitMissing."""
        try:
            listing = self.command.run("ls-tree", "-r", "-z", "--full-tree", checked_id(treeish))
        except GitFailed as failure:
            self.tree_id(treeish)
            raise failure
        tree: Tree = {}
        for line in listing.split(b"\0")[:-1]:
            meta, _, path = line.partition(b"\t")
            mode, _kind, oid = meta.split(b" ")
            tree[path] = TreeEntry(int(mode, 8), oid.decode("ascii"))
        return tree

    def read_blobs(self, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """(id, content) for each id, in the order asked for, from one process; raises ObjectMissing."""
        wanted = "".join(f"{checked_id(oid)}\n" for oid in oids).encode("ascii")
        if not wanted:
            return
        with self.command.stream("cat-file", "--batch", "--buffer", stdin=wanted) as stdout:
            yield from ((oid.decode("ascii"), content) for oid, content in self._contents(stdout, largest=None))

    @contextmanager
    def blob_stream(self, oids: Sequence[bytes], largest: int) -> Iterator[Iterator[bytes]]:
        """Contents in the order asked for, one by one; those of more than `largest` bytes are empty.

        `oids` are full ids that git itself gave. Git starts at once and reads ahead. Raises ObjectMissing while the
        contents are taken.
        """
        if not oids:
            yield iter(())
            return
        with self.command.stream("cat-file", "--batch", "--buffer", stdin=b"\n".join(oids) + b"\n") as stdout:
            yield (content for _oid, content in self._contents(stdout, largest))

    def _contents(self, stdout: IO[bytes], largest: int | None) -> Iterator[tuple[bytes, bytes]]:
        while header := stdout.readline():
            oid, kind, *size = header.split()
            if kind != b"blob":
                if kind == b"missing":
                    raise incomplete(str(self.command.git_dir), oid.decode())
                raise ObjectMissing(f"{oid.decode()} is a {kind.decode()} in {self.command.git_dir}, and no blob")
            length = int(size[0])
            if largest is not None and length > largest:
                for start in range(0, length, largest):
                    stdout.read(min(largest, length - start))
                stdout.read(1)
                yield oid, b""
            else:
                yield oid, stdout.read(length + 1)[:-1]

    def read_files(self, tree: Mapping[bytes, TreeEntry], paths: Iterable[bytes]) -> dict[bytes, bytes]:
        """Content of several files of a tree by path (a symlink's content is its target); raises KeyError."""
        by_path = {path: tree[path].oid for path in paths}
        contents = dict(self.read_blobs(dict.fromkeys(by_path.values())))
        return {path: contents[oid] for path, oid in by_path.items()}


def checked_id(oid: str) -> str:
    """The id itself when it is a full object id; anything else (a branch, an option) raises CommitMissing."""
    if not _OBJECT_ID.fullmatch(oid):
        raise CommitMissing(f"{oid!r} is not a full object id (40 or 64 hexadecimal digits)")
    return oid


def folders_above(path: bytes) -> Iterator[bytes]:
    """The folders that contain a path, innermost first."""
    while b"/" in path:
        path = path[: path.rindex(b"/")]
        yield path
