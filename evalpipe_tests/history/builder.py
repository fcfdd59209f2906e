"""Builds real git repositories for tests: every commit is spelled out, with exact bytes and fixed dates."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REGULAR, EXECUTABLE, LINK, SUBMODULE = 0o100644, 0o100755, 0o120000, 0o160000

File = bytes | tuple[int, bytes] | None
"""Content of a regular file, (mode, content), or None to delete; a submodule's content is its commit id."""

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "LC_ALL": "C",
}


def git(folder: Path, *arguments: str, stdin: bytes = b"", check: bool = True) -> bytes:
    """Standard output of a plain git process, independent of the code under test."""
    command = ["git", "-c", "safe.directory=*", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, env=_ENVIRONMENT, input=stdin, capture_output=True, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return done.stdout


@dataclass
class Builder:
    """A bare repository that grows commit by commit; dates advance by one hour with each."""

    path: Path
    object_format: str = "sha1"
    clock: int = 1_700_000_000
    branches: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        options = ("--quiet", "--bare", "--initial-branch=main", f"--object-format={self.object_format}")
        git(self.path.parent, "init", *options, str(self.path))

    def commit(
        self,
        files: Mapping[bytes, File],
        message: str | bytes = "change",
        *,
        parents: Sequence[str] | None = None,
        branch: str | None = "main",
        author: str = "Ada <ada@example.org>",
        author_date: int | None = None,
    ) -> str:
        """Commit `files` on top of the first parent (by default the branch's tip) and return the new id."""
        if parents is None:
            parents = [self.branches[branch]] if branch in self.branches else []
        self.clock += 3600
        text = message.encode() if isinstance(message, str) else message
        when = self.clock if author_date is None else author_date
        lines = [
            b"commit refs/heads/scratch-of-builder\nmark :1",
            b"author %s %d +0000" % (author.encode(), when),
            b"committer Merger <merger@example.org> %d +0000" % self.clock,
            b"data %d\n%s" % (len(text), text),
        ]
        lines += [b"%s %s" % (b"merge" if n else b"from", parent.encode()) for n, parent in enumerate(parents)]
        for path, file in files.items():
            quoted = b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'
            if file is None:
                lines.append(b"D " + quoted)
                continue
            mode, data = (REGULAR, file) if isinstance(file, bytes) else file
            if mode == SUBMODULE:
                lines.append(b"M %o %s %s" % (mode, data, quoted))
            else:
                lines.append(b"M %o inline %s\ndata %d\n%s" % (mode, quoted, len(data), data))
        lines += [
            b"",
            b"get-mark :1",
            b"reset refs/heads/scratch-of-builder",
            b"from " + b"0" * self._digits,
            b"",
        ]
        answer = git(self.path, "fast-import", "--quiet", "--force", stdin=b"\n".join(lines))
        commit = answer.decode().strip()
        if branch is not None:
            self.point(branch, commit)
        return commit

    def point(self, branch: str, commit: str) -> None:
        """Let a branch name this commit."""
        git(self.path, "update-ref", f"refs/heads/{branch}", commit)
        self.branches[branch] = commit

    def tree(self, commit: str) -> str:
        """Id of a commit's tree."""
        return git(self.path, "rev-parse", f"{commit}^{{tree}}").decode().strip()

    @property
    def _digits(self) -> int:
        return 64 if self.object_format == "sha256" else 40
