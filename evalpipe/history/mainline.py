"""Walks the first-parent mainline, oldest first, in a handful of git processes whatever the history's length.

Two short ones list commits by id: the mainline, and everything in topological order. From these lists it is known
which commits came by a branch, and how many of them before each merge, so that what a merge brought is found without
asking git about each merge. Two long ones then run in step: one gives every mainline commit with the files that it
changed against its first parent, the other the commits of branches. Parsing is written for long histories: fields are
cut out of large blocks, and what few changes need stays bytes until it is asked for.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from typing import IO, Final, NamedTuple

from evalpipe.history.errors import GitFailed
from evalpipe.history.objects import checked_id
from evalpipe.history.repository import Repository

_CHUNK: Final = 1 << 18
# Packs store older trees as differences to newer ones, so git compares newest first a third faster; so many commits
# are turned round here.
_STRETCH: Final = 2048
_MAINLINE_FIELDS: Final = ("%H", "%T", "%P", "%an", "%at", "%ct", "%B")
# Seven fields, the log's own terminator, two fields for each file; then the next commit, or more files may come.
_RAW_COMMIT: Final = re.compile(
    rb"([0-9a-f]{40,64})\0([0-9a-f]{40,64})\0([0-9a-f ]*)\0([^\0]*)\0(-?\d*)\0(-?\d*)\0([^\0]*)\0\0\n?"
    rb"((?::[^\0]*\0[^\0]+\0)*)(?=[0-9a-f])"
)
_END: Final = b"0"
# The end of the year 9999, behind which no calendar goes on.
_LAST_SECOND: Final = 253_402_300_799
_COMMIT_FIELDS: Final = ("%H", "%P", "%an", "%at", "%B")


class FileChange(NamedTuple):
    """One file that differs; modes and ids are zero on the side where the file is not."""

    path: bytes
    old_mode: int
    new_mode: int
    old_oid: bytes
    new_oid: bytes


class BranchCommit(NamedTuple):
    """A commit that reached the mainline through a merge; times are as in `MainlineCommit`."""

    commit: str
    parents: tuple[str, ...]
    author: str
    author_time: int
    message: str


class MainlineCommit(NamedTuple):
    """A commit of the first-parent line, with what it changed against its first parent (or against nothing).

    Times are seconds since the epoch, at most the end of the year 9999; 0 stands for a date that git cannot read, such
    as one before 1970. `raw_files` is git's raw form of the differences: modes, ids and status, NUL, path, NUL for each
    file. `brought` are the commits that came with a merge, oldest first: reachable from it and not from its first
    parent.
    """

    commit: str
    tree: str
    parents: tuple[str, ...]
    author: str
    author_time: int
    commit_time: int
    message: str
    raw_files: bytes
    brought: tuple[BranchCommit, ...]


def walk_mainline(repository: Repository, tip: str, after: str | None = None) -> Iterator[MainlineCommit]:
    """The commits of the first-parent line that ends at `tip` (a full commit id), oldest first.

    With `after`, a commit of that line, only those behind it. Memory holds some thousand commits, the branch commits
    that no merge has brought yet, and for a moment the ids of all. Raises CommitMissing.
    """
    for commit_id in filter(None, (tip, after)):
        repository.tree_id(commit_id)
    revisions = [checked_id(tip)] if after is None else [checked_id(tip), f"^{checked_id(after)}"]
    with ExitStack() as open_streams:
        # Each is started before the one above it is read, so that they work side by side.
        with repository.command.stream("rev-list", "--topo-order", "--reverse", *revisions, "--") as in_order:
            line = repository.command.run("rev-list", "--first-parent", *revisions, "--").split()
            commits = _raw_commits(open_streams.enter_context(_compared(repository, line)))
            branches = _BranchCommits(repository, open_streams, in_order, line)
        del line
        while stretch := list(islice(commits, _STRETCH)):
            for commit, tree, above, author, author_time, commit_time, message, files in reversed(stretch):
                parents = tuple(above.decode("ascii").split())
                yield MainlineCommit(
                    commit.decode("ascii"),
                    tree.decode("ascii"),
                    parents,
                    author.decode("utf-8", "replace"),
                    seconds_of(author_time),
                    seconds_of(commit_time),
                    _message(message),
                    files,
                    branches.brought_by(parents),
                )


def mainline_authors(repository: Repository, tip: str, count: int) -> list[tuple[str, str]]:
    """(commit, author) of the last `count` mainline commits up to `tip`, oldest first."""
    which = ("--reverse", "--first-parent", f"--max-count={count}", checked_id(tip), "--")
    fields = repository.command.run("log", *_form(("%H", "%an")), *which).split(b"\0")
    return [(_ascii(commit), _text(author)) for commit, author in zip(fields[0::3], fields[1::3], strict=False)]


def raw_differences(repository: Repository, old: str, new: str) -> bytes:
    """The files that differ between two commits, by full id, in the form of `MainlineCommit.raw_files`."""
    how = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    return repository.command.run("diff-tree", *how, checked_id(old), checked_id(new), "--")


def _compared(repository: Repository, line: Sequence[bytes]) -> AbstractContextManager[IO[bytes]]:
    """Every commit of the line (newest first) with its files: the oldest stretch first, newest first in itself."""
    stretches = [line[max(0, end - _STRETCH) : end] for end in range(len(line), 0, -_STRETCH)]
    asked = b"".join([b"%s\n" % commit for stretch in stretches for commit in stretch])
    how = ("--stdin", "-r", "--root", "--always", "--diff-merges=first-parent", "--raw", "--no-renames", "--no-abbrev")
    return repository.command.stream("diff-tree", *_form(_MAINLINE_FIELDS), *how, stdin=asked)


def _form(fields: Sequence[str]) -> tuple[str, ...]:
    form = "--format=" + "".join(f"{field}%x00" for field in fields)
    return ("-z", "--no-color", "--encoding=UTF-8", "--no-show-signature", "--no-notes", form)


def _raw_commits(stream: IO[bytes]) -> Iterator[tuple[bytes, ...]]:
    """The fields of each commit of a raw log, the last of which is all its files."""
    rest, at_end = b"", False
    while not at_end:
        chunk = stream.read(_CHUNK)
        at_end = not chunk
        block = rest + (chunk or _END)
        start = 0
        while found := _RAW_COMMIT.match(block, start):
            yield found.groups()
            start = found.end()
        rest = block[start:]
    if rest != _END:
        raise GitFailed(f"git diff-tree said what is no commit: {rest[:200]!r}")


def seconds_of(date: bytes) -> int:
    """Seconds since the epoch as git gives them, within what `MainlineCommit` allows."""
    return min(max(int(date or 0), 0), _LAST_SECOND)


def parsed_files(raw: bytes) -> tuple[FileChange, ...]:
    """Every file of `MainlineCommit.raw_files`."""
    fields = raw.split(b"\0")
    return tuple([_file_change(meta, path) for meta, path in zip(fields[0::2], fields[1::2], strict=False)])


def plain_paths(raw: bytes) -> list[bytes] | None:
    """The paths alone when no file was deleted and none is a submodule; None when a closer look is needed."""
    if b" 000000 " in raw or b"160000 " in raw:
        return None
    return raw.split(b"\0")[1::2]


def _file_change(meta: bytes, path: bytes) -> FileChange:
    old_mode, new_mode, old_oid, new_oid, _status = meta[1:].split(b" ")
    return FileChange(path, _MODES[old_mode], _MODES[new_mode], old_oid, new_oid)


class _Modes(dict[bytes, int]):
    """File modes by their octal digits; there are a handful."""

    def __missing__(self, digits: bytes) -> int:
        self[digits] = mode = int(digits, 8)
        return mode


_MODES: Final = _Modes()


class _BranchCommits:
    """Hands out the commits that each merge brought; git starts when it is known that there are any."""

    def __init__(
        self, repository: Repository, open_streams: ExitStack, in_order: Iterable[bytes], line: Sequence[bytes]
    ) -> None:
        """`in_order` has all commits, oldest first, an id a line; `line` is the mainline, newest first."""
        # For each mainline commit, how many commits of branches stand before it in topological order.
        self._before = array("L")
        branch_commits: list[bytes] = []
        mainline = reversed(line)
        following = next(mainline, b"")
        for listed in in_order:
            commit = listed[:-1]
            if commit == following:
                self._before.append(len(branch_commits))
                following = next(mainline, b"")
            else:
                branch_commits.append(commit)
        self._commits: Iterator[tuple[str, Sequence[bytes]]] = iter(())
        if branch_commits:
            how = ("--stdin", "--no-walk=unsorted", *_form(_COMMIT_FIELDS))
            asked = b"".join([b"%s\n" % commit for commit in branch_commits])
            stream = open_streams.enter_context(repository.command.stream("log", *how, stdin=asked))
            self._commits = _fields_of_commits(stream)
        # By id, in order of arrival: the commits read so far that are on the mainline by no merge yet.
        self._waiting: dict[str, tuple[int, Sequence[bytes]]] = {}
        self._arrived = 0
        self._asked = 0

    def brought_by(self, parents: Sequence[str]) -> tuple[BranchCommit, ...]:
        """What the next mainline commit brought; to be asked for every one, in order."""
        before = self._before[self._asked]
        self._asked += 1
        if len(parents) < 2:
            return ()
        waiting = self._waiting
        for commit, fields in islice(self._commits, before - self._arrived):
            self._arrived += 1
            waiting[commit] = (self._arrived, fields)
        found: list[tuple[int, BranchCommit]] = []
        ahead = list(parents[1:])
        while ahead:
            commit = ahead.pop()
            reached = waiting.pop(commit, None)
            if reached is not None:
                order, (parents_there, author, author_time, message) = reached
                above = tuple(_ascii(parents_there).split())
                found.append(
                    (order, BranchCommit(commit, above, _text(author), seconds_of(author_time), _message(message)))
                )
                ahead += above
        found.sort()
        return tuple([commit for _order, commit in found])


def _fields_of_commits(stream: IO[bytes]) -> Iterator[tuple[str, Sequence[bytes]]]:
    """(id, other fields) of each commit of a log without files."""
    width = len(_COMMIT_FIELDS) + 1
    rest = b""
    while chunk := stream.read(_CHUNK):
        fields = (rest + chunk).split(b"\0")
        last = (len(fields) - 1) // width * width
        for start in range(0, last, width):
            yield fields[start].decode("ascii"), fields[start + 1 : start + width - 1]
        rest = b"\0".join(fields[last:])


def _message(data: bytes) -> str:
    """A message with line ends as git writes them; web pages and Windows write others."""
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _ascii(data: bytes) -> str:
    return data.decode("ascii")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
