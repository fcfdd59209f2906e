"""The git directory that an agent is given: one root commit, nothing of the future or of this machine.

It is built from a tree and not from a clone, because every way of deleting history from a clone leaves holes
(`threats.md`, B2.1).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from evalpipe.history.git_command import GitCommand

_DATE: Final = "2000-01-01T00:00:00+0000"
_NAME: Final = "evalpipe"
_EMAIL: Final = "evalpipe@example.invalid"


def single_commit_files(command: GitCommand, object_format: str, tree: str, message: str) -> dict[bytes, bytes]:
    """Contents by path below `.git/` of a self-contained repository: one commit of `tree` on `main`.

    Laid beside the files of the tree, `git status` is clean. The bytes depend on tree, message and git's
    version only.
    """
    author = command.with_environment(
        GIT_AUTHOR_NAME=_NAME,
        GIT_AUTHOR_EMAIL=_EMAIL,
        GIT_AUTHOR_DATE=_DATE,
        GIT_COMMITTER_NAME=_NAME,
        GIT_COMMITTER_EMAIL=_EMAIL,
        GIT_COMMITTER_DATE=_DATE,
    )
    commit = author.run("commit-tree", tree, stdin=message.encode("utf-8")).decode("ascii").strip()
    files = {
        b"HEAD": b"ref: refs/heads/main\n",
        b"config": _config(object_format),
        b"refs/heads/main": commit.encode("ascii") + b"\n",
    }
    with tempfile.TemporaryDirectory(prefix="evalpipe-commit-") as folder:
        for name, content in _pack(command, commit, Path(folder)):
            files[b"objects/pack/" + name] = content
        index = Path(folder) / "index"
        # No file is there to compare with, so the index has no times in it, and git compares contents at
        # first use.
        command.with_environment(GIT_INDEX_FILE=str(index)).run("read-tree", tree)
        files[b"index"] = index.read_bytes()
    return files


def _pack(command: GitCommand, commit: str, folder: Path) -> list[tuple[bytes, bytes]]:
    # Deltas, and what the mirror happened to have compressed before, would make the bytes depend on its past.
    command.run(
        "-c",
        "pack.writeReverseIndex=false",
        "pack-objects",
        "--quiet",
        "--revs",
        "--threads=1",
        "--window=0",
        "--no-reuse-delta",
        "--no-reuse-object",
        "--compression=6",
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
