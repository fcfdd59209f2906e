"""What the decision about a promising change needs from file contents, for many changes at once.

One git process compares, another reads what has to be seen whole (manifests, and Rust sources for the tests inside
them). Both start when the changes are handed in and work while the caller goes on; the answers are taken up later.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import IO, Final, NamedTuple

from evalpipe.history.dependencies import dependencies_changed, holds_more_than_dependencies
from evalpipe.history.errors import GitFailed
from evalpipe.history.generated import says_generated
from evalpipe.history.inline_tests import inline_tests_changed, may_hold_inline_tests
from evalpipe.history.mainline import FileChange
from evalpipe.history.objects import GITLINK
from evalpipe.history.paths import FileKind, PathRules, is_changelog
from evalpipe.history.repository import Repository
from evalpipe.history.shapes import Change

_CHUNK: Final = 1 << 18
# What is larger is no manifest or source that somebody wrote, and is not held in memory.
_LARGEST: Final = 16 << 20
_PLUS: Final = ord("+")
_FORMAT_BITS: Final = 0o170000

# One line around the edits: with none, git compares in another way than for `--numstat`, and finds other edits. In a
# hunk each line begins with a sign or a blank.
_COMPARE: Final = (
    "diff-tree",
    "--stdin",
    "-r",
    "-p",
    "--unified=1",
    "--inter-hunk-context=0",
    "--no-renames",
    "--full-index",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--diff-algorithm=myers",
    "--ignore-submodules=none",
    "--submodule=short",
)
_is_changelog: Final = lru_cache(1 << 14)(is_changelog)
_EDITED_LINE: Final = re.compile(rb"\n([-+].*)")


class Evidence(NamedTuple):
    """What the contents of a change's files say.

    Lines are counted over all text files, as `git diff --numstat` does; but a file that became a link, or the other way
    round, has all its lines removed and added. `inline_tests` are the source files in which
    test code changed, `generated` those that say that a tool wrote them. `patch_id` is equal for two changes that edit
    the same lines in the same source and test files, wherever in the files these stand; None when no such line was
    edited.
    """

    lines_added: int
    lines_removed: int
    changelog: str
    dependencies_changed: bool
    inline_tests: tuple[bytes, ...]
    generated: tuple[bytes, ...]
    patch_id: str | None


class EvidenceReader:
    """Reads the contents of changes, each of which must have a parent; `close` ends the git processes.

    Git is asked about the newest first, because packs store older objects as differences to newer ones.
    """

    def __init__(self, repository: Repository, rules: PathRules, changes: Sequence[Change]) -> None:
        self._kinds = rules.kinds
        self._open = ExitStack()
        newest_first = changes[::-1]
        self._files = [change.files for change in newest_first]
        if not changes:
            return
        commits = [change.last.commit.encode("ascii") for change in newest_first]
        pairs = "".join([f"{change.last.commit} {change.parent}\n" for change in newest_first])
        stream = repository.command.stream(*_COMPARE, stdin=pairs.encode("ascii"))
        self._patches = _patches_of(self._open.enter_context(stream), commits)
        whole = [file for files in self._files for file in files if self._is_read_whole(file, self._kinds[file.path])]
        oids = [oid for file in whole for oid in _blobs_of(file)]
        self._blobs = self._open.enter_context(repository.blob_stream(oids, largest=_LARGEST))

    def close(self) -> None:
        """End the git processes, if they still run."""
        self._open.close()

    def results(self) -> list[Evidence]:
        """The evidence for each change, in order; to be asked for once."""
        found = [self._evidence(files, next(self._patches)) for files in self._files]
        self.close()
        return found[::-1]

    @staticmethod
    def _is_read_whole(file: FileChange, kind: FileKind) -> bool:
        if kind is FileKind.dependency:
            worth_it = holds_more_than_dependencies(file.path)
        else:
            worth_it = kind is FileKind.source and may_hold_inline_tests(file.path)
        return worth_it and file.old_oid != file.new_oid and GITLINK not in (file.old_mode, file.new_mode)

    def _evidence(self, files: Sequence[FileChange], patch: bytes) -> Evidence:
        added = removed = 0
        changelog: list[bytes] = []
        inline_tests: list[bytes] = []
        generated: list[bytes] = []
        dependency = False
        edits: list[bytes] = []
        for file, hunks in zip(files, _hunks_of(patch, files), strict=True):
            path = file.path
            kind = self._kinds[path]
            added += hunks.count(b"\n+")
            removed += hunks.count(b"\n-")
            if kind is FileKind.source or kind is FileKind.test:
                lines = _EDITED_LINE.findall(hunks)
                if lines:
                    edits.append(path)
                    edits += lines
                if kind is FileKind.source and says_generated(hunks):
                    generated.append(path)
            elif _is_changelog(path):
                changelog += _more_in_new(_EDITED_LINE.findall(hunks))
            if self._is_read_whole(file, kind):
                old = next(self._blobs) if file.old_mode else b""
                new = next(self._blobs) if file.new_mode else b""
                if kind is FileKind.dependency:
                    dependency = dependency or dependencies_changed(path, old, new)
                elif inline_tests_changed(old, new):
                    inline_tests.append(path)
            elif kind is FileKind.dependency:
                dependency = dependency or file.old_oid != file.new_oid
        return Evidence(
            added,
            removed,
            b"\n".join(changelog).decode("utf-8", "replace"),
            dependency,
            tuple(inline_tests),
            tuple(generated),
            hashlib.blake2b(b"\n".join(edits), digest_size=8).hexdigest() if edits else None,
        )


def _blobs_of(file: FileChange) -> Iterator[bytes]:
    if file.old_mode:
        yield file.old_oid
    if file.new_mode:
        yield file.new_oid


def _patches_of(stream: IO[bytes], commits: Sequence[bytes]) -> Iterator[bytes]:
    """The patch of each of the commits that git was asked for; a line that names the commit stands before it."""
    block, begin = stream.read(_CHUNK), len(commits[0]) + 1 if commits else 0
    for following in commits[1:]:
        # No line of a patch is a bare commit id.
        end = block.find(b"\n%s\n" % following, begin - 1)
        while end < 0:
            searched = len(block) - begin
            chunk = stream.read(_CHUNK)
            if not chunk:
                raise GitFailed(f"git diff-tree ended before {following.decode()}")
            block, begin = block[begin:] + chunk, 0
            end = block.find(b"\n%s\n" % following, max(0, searched - len(following) - 2))
        yield block[begin : end + 1]
        begin = end + len(following) + 2
    rest = [block[begin:], *iter(lambda: stream.read(_CHUNK), b"")]
    yield b"".join(rest)


def _hunks_of(patch: bytes, files: Sequence[FileChange]) -> Iterator[bytes]:
    """The hunks of each file from the first header on; of two files when it changed its type."""
    parts = (b"\n" + patch).split(b"\ndiff --git ")
    place = 0
    for file in files:
        place += 1
        hunks = _without_header(parts[place])
        if file.old_mode and file.new_mode and (file.old_mode ^ file.new_mode) & _FORMAT_BITS:
            place += 1
            hunks += _without_header(parts[place])
        yield hunks


def _without_header(section: bytes) -> bytes:
    hunks = section.find(b"\n@@ ")
    return section[hunks:] if hunks >= 0 else b""


def _more_in_new(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Of edited lines those that the new side has more often than the old; a moved one is none."""
    removed = Counter(line[1:] for line in lines if line[0] != _PLUS)
    added = Counter(line[1:] for line in lines if line[0] == _PLUS)
    return (added - removed).elements()
