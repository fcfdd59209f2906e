"""A private place to make git objects in: it reads what a mirror has and never writes to it.

There is no work tree, ever, so nothing that an agent wrote is checked out on the host.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from evalpipe.history.diffs import diff_trees
from evalpipe.history.errors import PatchDoesNotApply, TreeNotWritten
from evalpipe.history.git_command import GitCommand
from evalpipe.history.instance_repository import commit_with_tree, repository_files, single_commit
from evalpipe.history.objects import ObjectReader, TreeEntry, checked_id, folders_above
from evalpipe.history.repository import Repository


class ScratchObjects(ObjectReader):
    """A temporary bare git directory that borrows the objects of a repository; gone when the context ends."""

    def __init__(self, repository: Repository) -> None:
        folder = repository.scratch_folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._directory = Path(tempfile.mkdtemp(prefix=f"evalpipe-scratch-{os.getpid()}-", dir=folder))
        git_dir = self._directory / "objects.git"
        GitCommand(None).run(
            "init",
            "--quiet",
            "--bare",
            "--template=",
            f"--object-format={repository.object_format}",
            str(git_dir),
        )
        objects = repository.command.run("rev-parse", "--path-format=absolute", "--git-path", "objects")
        (git_dir / "objects" / "info" / "alternates").write_bytes(objects)
        super().__init__(GitCommand(git_dir), repository.object_format)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        shutil.rmtree(self._directory)

    def write_blob(self, data: bytes) -> str:
        """Store one blob and return its id."""
        return self.write_blobs([data])[0]

    def write_blobs(self, datas: Iterable[bytes]) -> list[str]:
        """Store many blobs with one process and return their ids in the same order."""
        orders: list[bytes] = []
        count = 0
        for count, data in enumerate(datas, start=1):
            orders.append(b"blob\nmark :%d\ndata %d\n%s\nget-mark :%d\n" % (count, len(data), data, count))
        if count == 0:
            return []
        answer = self.command.run("fast-import", "--quiet", "--done", stdin=b"".join([*orders, b"done\n"]))
        return answer.decode("ascii").split()

    def write_tree(self, base: str | None, changes: Mapping[bytes, TreeEntry | None]) -> str:
        """The id of the tree that `base` (a commit or tree; None is the empty tree) becomes by these changes.

        None deletes a path (one that is not there is no fault). A file at `a` replaces everything below `a/`,
        and a file below `a/` replaces the file `a`. Raises CommitMissing, and TreeNotWritten when git holds a
        path unsafe (`.git`, `..`) or two of the new files exclude each other.
        """
        nothing = "0" * len(checked_id(base)) if base else "0" * (64 if self.object_format == "sha256" else 40)
        added = {path for path, entry in changes.items() if entry is not None}
        for path in added:
            if any(folder in added for folder in folders_above(path)):
                raise TreeNotWritten(f"{path!r} cannot be written: a folder above it is to be a file too")
        # Deletions first: then no order of the additions can meet what is about to go away.
        ordered = sorted(changes.items(), key=lambda change: change[1] is not None)
        lines = [
            b"0 %s\t%s\0" % (nothing.encode(), path)
            if entry is None
            else b"%o %s\t%s\0" % (entry.mode, checked_id(entry.oid).encode(), path)
            for path, entry in ordered
        ]
        with self._index(base) as command:
            if lines:
                result = command.attempt(
                    "update-index", "--add", "--replace", "-z", "--index-info", stdin=b"".join(lines)
                )
                # Git passes over an unsafe path with a mere remark.
                if result.status != 0 or result.stderr:
                    raise TreeNotWritten(f"git does not write this tree: {result.stderr.strip()}")
            return self._written(command)

    def apply_patch(self, base: str, patch: bytes) -> str:
        """The id of the tree that `base` (a commit or tree) becomes by a patch, whole or not at all.

        An empty patch gives the base tree. Raises PatchDoesNotApply with git's own message.
        """
        if not patch:
            return self.tree_id(base)
        with self._index(base) as command:
            result = command.attempt("apply", "--cached", "--whitespace=nowarn", "-p1", "-", stdin=patch)
            if result.status != 0:
                raise PatchDoesNotApply(result.stderr.strip())
            return self._written(command)

    def diff(self, old: str, new: str, paths: Iterable[bytes] | None = None) -> bytes:
        """The robust patch between two commits or trees; see `diffs.diff_trees`."""
        return diff_trees(self.command, old, new, paths)

    def single_commit(self, tree: str, message: str) -> str:
        """The id of a root commit of `tree` (a commit or tree) that depends on tree and message only."""
        return single_commit(self.command, self.tree_id(tree), message)

    def commit_with_tree(self, commit: str, tree: str) -> str:
        """The id of `commit` with another tree; see `instance_repository.commit_with_tree`."""
        return commit_with_tree(self.command, checked_id(commit), self.tree_id(tree))

    def repository_files(self, commit: str) -> dict[bytes, bytes]:
        """The files, relative to `.git/`, of a repository of `commit` and its ancestors alone.

        See `instance_repository.repository_files`.
        """
        return repository_files(self.command, self.object_format, checked_id(commit), self._directory)

    @contextmanager
    def _index(self, base: str | None) -> Iterator[GitCommand]:
        with tempfile.TemporaryDirectory(dir=self._directory) as folder:
            command = self.command.with_environment(GIT_INDEX_FILE=str(Path(folder) / "index"))
            if base is None:
                command.run("read-tree", "--empty")
            else:
                command.run("read-tree", self.tree_id(base))
            yield command

    def _written(self, command: GitCommand) -> str:
        result = command.attempt("write-tree")
        if result.status != 0:
            raise TreeNotWritten(f"git does not write this tree: {result.stderr.strip()}")
        return os.fsdecode(result.stdout).strip()


def remove_abandoned_scratch(folder: Path) -> None:
    """Remove what killed processes left in a scratch folder: directories of processes that no longer run."""
    for directory in folder.glob("evalpipe-scratch-*-*"):
        pid = directory.name.split("-")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(directory, ignore_errors=True)
