"""The tree of a base commit as templates and builders see it: paths and ids at once, contents when asked for."""

from collections.abc import Collection, Iterator
from functools import cached_property

from evalpipe.history import Repository, Tree
from evalpipe.sandbox import FileEntry
from evalpipe.tasks import read_files


class CommitTree:
    """A commit's tree, read from a mirror."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository = repository
        self.commit = commit

    @cached_property
    def _tree(self) -> Tree:
        return self._repository.read_tree(self.commit)

    @property
    def paths(self) -> Collection[bytes]:
        """Every file, from the top of the repository."""
        return self._tree.keys()

    def read(self, path: bytes) -> bytes:
        """The content of one of `paths`, of a link its target. Raises KeyError."""
        return self._repository.read_files(self._tree, [path])[path]

    def object_id(self, path: bytes) -> str | None:
        """Mode and id of the object at `path`, which stand for its content; None for nothing."""
        entry = self._tree.get(path)
        return None if entry is None else f"{entry.mode:o} {entry.oid}"

    def files(self) -> Iterator[FileEntry]:
        """Every file with its content; submodules, which have none here, are left out."""
        for file in read_files(self._repository, self._tree):
            yield FileEntry(file.path, file.mode, file.data)


class ChangeTree(CommitTree):
    """The tree of a change, next to that of its base."""

    def __init__(self, repository: Repository, commit: str, base: CommitTree) -> None:
        super().__init__(repository, commit)
        self._base = base

    @cached_property
    def altered(self) -> Collection[bytes]:
        """The files of it that its base does not have, or not with this content."""
        return [path for path in self.paths if self.object_id(path) != self._base.object_id(path)]
