"""The files of a container that has ended: looked at and streamed through the engine, never unpacked.

The engine follows links on the way to a path, inside the container, but so it might hand out another file
than the one that was asked for. Nothing runs any more, so looking first and reading then is safe.
"""

from collections.abc import Iterator

from evalpipe.sandbox.archive import file_mode, tar_members, tree_entries
from evalpipe.sandbox.box import SYMLINK, FileEntry, TreeLimits
from evalpipe.sandbox.engine import Engine, NothingThere
from evalpipe.sandbox.errors import OutputTooLarge, UnsafeOutput
from evalpipe.sandbox.paths import as_bytes, as_text, inner_path, parents


class ContainerFiles:
    """Reads below the directory `root` of one container; see `Box.read_file` and `Box.read_tree`."""

    def __init__(self, engine: Engine, container: str, root: str) -> None:
        self._engine, self._container, self._root = engine, container, as_bytes(root)

    def read_file(self, path: str, max_bytes: int) -> bytes | None:
        """See `Box.read_file`."""
        inner = inner_path(path)
        if not self._way_is_clear(inner):
            return None
        try:
            # Its stream says what it is: to ask first would be one more mount of the container's files.
            entry = self._entry(inner, max_bytes)
        except NothingThere:
            return None
        if entry is None and self._engine.stat(self._container, self._absolute(inner)) is None:
            return None
        if entry is None or entry.mode == SYMLINK:
            raise _not_a_file(inner)
        return entry.data

    def read_tree(self, path: str, limits: TreeLimits) -> Iterator[FileEntry]:
        """See `Box.read_tree`."""
        top = inner_path(path)
        if not self._way_is_clear(top):
            return

        def read_hard_link(below: bytes) -> FileEntry | None:
            entry = self._entry(_join(top, below), limits.file_bytes)
            return None if entry is None else FileEntry(below, entry.mode, entry.data)

        try:
            # As with a file, its stream says what it is.
            with self._engine.archive(self._container, self._absolute(top)) as source:
                yield from tree_entries(source, limits, read_hard_link)
        except NothingThere:
            return

    def _absolute(self, inner: bytes) -> bytes:
        return _join(self._root, inner)

    def _way_is_clear(self, inner: bytes) -> bool:
        """Whether all directories above a path exist. Raises UnsafeOutput when one is a link or a file."""
        for parent in parents(inner):
            stat = self._engine.stat(self._container, self._absolute(parent))
            if stat is None:
                return False
            if not stat.is_directory:
                raise UnsafeOutput(f"{as_text(parent)!r} is not a directory")
        return True

    def _entry(self, inner: bytes, max_bytes: int) -> FileEntry | None:
        """The file or link that is known to lie at a path; None when it is of another kind."""
        directory, _, name = inner.rpartition(b"/")
        # Older engines hand the name of a single file on as JSON, which loses bytes that are not UTF-8, and
        # then send nothing. The directory's own stream has the name as it is.
        alone = as_bytes(name.decode("utf-8", "replace")) == name
        with self._engine.archive(self._container, self._absolute(inner if alone else directory)) as source:
            for member, content in tar_members(source):
                if not alone and _below(member.name) != name:
                    continue
                if member.issym():
                    return FileEntry(inner, SYMLINK, as_bytes(member.linkname))
                if content is not None:
                    if member.size > max_bytes:
                        raise OutputTooLarge(f"{as_text(inner)!r} has {member.size} bytes, not {max_bytes}")
                    return FileEntry(inner, file_mode(member.mode), content())
                # The other name comes earlier in the same directory's stream, so this comes to an end.
                return self._entry(_join(directory, _below(member.linkname)), max_bytes) if member.islnk() else None
        return None


def _join(directory: bytes, below: bytes) -> bytes:
    return b"/".join(part for part in (directory, below) if part)


def _below(member_name: str) -> bytes:
    """A member's path below the directory whose stream it is in."""
    return as_bytes(member_name).partition(b"/")[2]


def _not_a_file(inner: bytes) -> UnsafeOutput:
    return UnsafeOutput(f"{as_text(inner)!r} is not a regular file")
