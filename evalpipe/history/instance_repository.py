"""The git directory that an agent is given: one branch, nothing of the future or of this machine.

It is packed anew from what a single commit reaches, and not made from a clone, because every way of deleting history
from a clone leaves holes (`threats.md`, B2.1).
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Final

from evalpipe.history.git_command import GitCommand

_DATE: Final = "2000-01-01T00:00:00+0000"
_NAME: Final = "evalpipe"
_EMAIL: Final = "evalpipe@example.invalid"
_SIGNATURES: Final = re.compile(rb"^(?:gpgsig(?:-sha256)?|mergetag) .*\n(?: .*\n)*", re.MULTILINE)
"""Headers of a commit that vouch for its content, or for that of a tag that it merged."""


def fixed_commit(command: GitCommand, tree: str, message: str, when: str, *parents: str) -> str:
    """The id of a commit of `tree` by evalpipe at `when`: the same arguments give the same commit everywhere."""
    author = command.with_environment(
        GIT_AUTHOR_NAME=_NAME,
        GIT_AUTHOR_EMAIL=_EMAIL,
        GIT_AUTHOR_DATE=when,
        GIT_COMMITTER_NAME=_NAME,
        GIT_COMMITTER_EMAIL=_EMAIL,
        GIT_COMMITTER_DATE=when,
    )
    named = [part for parent in parents for part in ("-p", parent)]
    return author.run("commit-tree", tree, *named, stdin=message.encode("utf-8")).decode("ascii").strip()


def single_commit(command: GitCommand, tree: str, message: str) -> str:
    """The id of a root commit of `tree`, which depends on tree and message only."""
    return fixed_commit(command, tree, message, _DATE)


def commit_with_tree(command: GitCommand, commit: str, tree: str) -> str:
    """The id of a commit that is `commit` with another tree: same parents, dates, people and message.

    It is `commit` itself when that has this tree. Signatures go, because they would not hold.
    """
    raw = command.run("cat-file", "commit", commit)
    headers, separator, message = raw.partition(b"\n\n")
    first, _, others = headers.partition(b"\n")
    if first == b"tree " + tree.encode("ascii"):
        return commit
    kept = _SIGNATURES.sub(b"", others + b"\n").rstrip(b"\n")
    content = b"tree %s\n%s%s%s" % (tree.encode("ascii"), kept, separator, message)
    # Literally: old histories hold commits that git would no longer write.
    written = command.run("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=content)
    return written.decode("ascii").strip()


def repository_files(command: GitCommand, object_format: str, commit: str, scratch: Path) -> dict[bytes, bytes]:
    """Contents by path below `.git/` of a self-contained repository of which `main`, its one branch, is at `commit`.

    It holds the objects that `commit` reaches and no other; how they are packed depends on the mirror. Laid beside
    the files of its tree, `git status` is clean. `scratch` is a folder on the disk of the git directory, because git
    renames a finished pack into it.
    """
    files = {
        b"HEAD": b"ref: refs/heads/main\n",
        b"config": _config(object_format),
        b"refs/heads/main": commit.encode("ascii") + b"\n",
    }
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        for name, content in _pack(command, commit, Path(folder)):
            files[b"objects/pack/" + name] = content
        index = Path(folder) / "index"
        # No file is there to compare with, so the index has no times in it, and git compares contents at
        # first use.
        command.with_environment(GIT_INDEX_FILE=str(index)).run("read-tree", commit)
        files[b"index"] = index.read_bytes()
    return files


def _pack(command: GitCommand, commit: str, folder: Path) -> list[tuple[bytes, bytes]]:
    command.run(
        "-c",
        "pack.writeReverseIndex=false",
        "pack-objects",
        "--quiet",
        "--revs",
        # What the mirror has compressed already is taken as it is: to do it again takes minutes for a long history.
        "--threads=1",
        str(folder / "pack"),
        stdin=commit.encode("ascii") + b"\n",
    )
    return [(path.name.encode("ascii"), path.read_bytes()) for path in sorted(folder.glob("pack-*"))]


def _config(object_format: str) -> bytes:
    extended = object_format != "sha1"
    lines = [
        "[core]",
        f"\trepositoryformatversion = {1 if extended else 0}",
        "\tfilemode = true",
        "\tbare = false",
    ]
    if extended:
        lines += ["[extensions]", f"\tobjectformat = {object_format}"]
    return "\n".join([*lines, ""]).encode("ascii")
