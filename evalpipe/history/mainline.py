"""Walks the first-parent mainline, oldest first, in two streaming git processes whatever the history's length.

One process gives every mainline commit with the files that it changed against its first parent. The other,
started at the first merge, gives all commits in topological order; the two run in step, so that the commits
which a merge brought are known without asking git about each merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import IO, Final, NamedTuple

from evalpipe.history.objects import checked_id
from evalpipe.history.repository import Repository

_CHUNK: Final = 1 << 20
_MAINLINE_FIELDS: Final = ("%H", "%T", "%P", "%an", "%at", "%ct", "%B")
_COMMIT_FIELDS: Final = ("%H", "%P", "%an", "%at", "%B")


class FileChange(NamedTuple):
    """One file that differs; modes and ids are zero on the side where the file is not."""

    path: bytes
    old_mode: int
    new_mode: int
    old_oid: bytes
    new_oid: bytes


class BranchCommit(NamedTuple):
    """A commit that reached the mainline through a merge; times are seconds since the epoch."""

    commit: str
    parents: tuple[str, ...]
    author: str
    author_time: int
    message: str


class MainlineCommit(NamedTuple):
    """A commit of the first-parent line, with what it changed against its first parent (or against nothing).

    `brought` are the commits that came with a merge, oldest first: reachable from it and not from its first
    parent.
    """

    commit: str
    tree: str
    parent_tree: str | None
    parents: tuple[str, ...]
    author: str
    author_time: int
    commit_time: int
    message: str
    files: tuple[FileChange, ...]
    brought: tuple[BranchCommit, ...]


def walk_mainline(repository: Repository, tip: str) -> Iterator[MainlineCommit]:
    """Every commit of the first-parent line that ends at `tip` (a full commit id), oldest first.

    Memory holds one commit and the branch commits that no merge has brought yet. Raises CommitMissing.
    """
    repository.tree_id(tip)
    arguments = ("--first-parent", "--diff-merges=first-parent", "--raw", "--no-renames", "--no-abbrev")
    with ExitStack() as open_streams:
        mainline = open_streams.enter_context(_log(repository, tip, _MAINLINE_FIELDS, *arguments))
        branches: _BranchCommits | None = None
        parent_tree: str | None = None
        for commit in _mainline_commits(_tokens(mainline)):
            brought: tuple[BranchCommit, ...] = ()
            if branches is None and len(commit.parents) > 1:
                before = f"^{commit.parents[0]}"
                log = _log(repository, tip, _COMMIT_FIELDS, "--topo-order", before)
                branches = _BranchCommits(open_streams.enter_context(log))
            if branches is not None:
                brought = branches.brought_by(commit)
            yield commit._replace(parent_tree=parent_tree, brought=brought)
            parent_tree = commit.tree


def _log(repository: Repository, tip: str, fields: Sequence[str], *arguments: str) -> AbstractContextManager[IO[bytes]]:
    form = "--format=" + "".join(f"{field}%x00" for field in fields)
    options = ("-z", "--reverse", "--no-color", "--encoding=UTF-8", "--no-show-signature", "--no-notes", form)
    return repository.command.stream("log", *options, *arguments, checked_id(tip), "--")


def _tokens(stream: IO[bytes]) -> Iterator[bytes]:
    """The NUL-terminated fields of a stream."""
    rest = b""
    while chunk := stream.read(_CHUNK):
        *complete, rest = (rest + chunk).split(b"\0")
        yield from complete


def _mainline_commits(tokens: Iterator[bytes]) -> Iterator[MainlineCommit]:
    head = next(tokens, None)
    while head is not None:
        tree, parents, author, author_time, commit_time, message = (next(tokens) for _ in range(6))
        # The commit's own terminator, which stands before the files too.
        next(tokens)
        files = []
        token = next(tokens, None)
        while token is not None and token.lstrip(b"\n").startswith(b":"):
            old_mode, new_mode, old_oid, new_oid, _status = token.lstrip(b"\n:").split(b" ")
            files.append(FileChange(next(tokens), int(old_mode, 8), int(new_mode, 8), old_oid, new_oid))
            token = next(tokens, None)
        yield MainlineCommit(
            commit=_ascii(head),
            tree=_ascii(tree),
            parent_tree=None,
            parents=tuple(_ascii(parents).split()),
            author=_text(author),
            author_time=int(author_time),
            commit_time=int(commit_time),
            message=_text(message),
            files=tuple(files),
            brought=(),
        )
        head = token


class _BranchCommits:
    """Hands out the commits that each merge brought, from a stream of all commits, parents before children."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._commits = enumerate(_branch_commits(_tokens(stream)))
        # By id, with the order of arrival: the commits read so far that are on the mainline by no merge yet.
        self._waiting: dict[str, tuple[int, BranchCommit]] = {}

    def brought_by(self, mainline: MainlineCommit) -> tuple[BranchCommit, ...]:
        """What this mainline commit brought; to be asked for every one from the first merge on, in order."""
        for number, commit in self._commits:
            if commit.commit == mainline.commit:
                break
            self._waiting[commit.commit] = (number, commit)
        found: list[tuple[int, BranchCommit]] = []
        ahead = list(mainline.parents[1:])
        while ahead:
            reached = self._waiting.pop(ahead.pop(), None)
            if reached is not None:
                found.append(reached)
                ahead += reached[1].parents
        return tuple(commit for _number, commit in sorted(found))


def _branch_commits(tokens: Iterator[bytes]) -> Iterator[BranchCommit]:
    for commit in tokens:
        parents, author, author_time, message = (next(tokens) for _ in range(4))
        next(tokens)
        yield BranchCommit(
            _ascii(commit), tuple(_ascii(parents).split()), _text(author), int(author_time), _text(message)
        )


def _ascii(data: bytes) -> str:
    return data.decode("ascii")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
