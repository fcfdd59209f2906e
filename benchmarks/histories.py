"""Makes histories to measure with: any number of mainline changes, the same bytes every time.

The mix follows what open repositories show: squashes and merges with a few commits each, a fifth of the changes
with source and tests, the rest documentation, tests or source alone, dependency bumps, releases. Files are a few
dozen lines, and there are a few thousand of them. `git fast-import` reads one stream; the result is repacked, as a
server's clone would be.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

_AREAS: Final = tuple(b"core movement display sound calendar tools".split())
_PACKAGES: Final = 10
_MODULES: Final = 40
_TESTS: Final = 25
_LINES: Final = 40
_MOST_LINES: Final = 70
_CHANGELOG_LINES: Final = 400
_FIRST_SECOND: Final = 1_000_000_000

_WORDS: Final = (
    *("clock", "hand", "spring", "wheel", "escapement", "pendulum", "chime", "bell", "dial", "gear", "lever", "cord"),
    *("weight", "case", "bezel", "crown", "mainspring", "barrel", "pinion", "arbor", "balance", "hairspring", "jewel"),
    *("pivot", "bridge", "plate", "cock", "ratchet", "click", "pawl", "strike", "repeater", "alarm", "minute", "hour"),
    *("second", "leap", "zone", "offset", "drift", "parse", "format", "round", "reset", "wind", "adjust", "repair"),
)

# Weight, kinds of files that one change touches.
_WORK: Final = (
    (12, ("source", "test")),
    (5, ("source", "source", "test", "test", "changelog")),
    (3, ("source", "source", "source", "source", "test", "test")),
    (28, ("source",)),
    (9, ("source", "source", "source", "source")),
    (11, ("test",)),
    (16, ("docs",)),
    (6, ("dependency",)),
    (6, ("workflow",)),
    (2, ("changelog",)),
)


def history(folder: Path, changes: int) -> Path:
    """The bare repository with so many mainline changes below `folder`, made if it is not there yet."""
    path = folder / f"{changes}.git"
    if path.exists():
        return path
    partial = folder / f"{changes}.partial.git"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(partial)], check=True)
    importing = ["git", f"--git-dir={partial}", "fast-import", "--quiet", "--depth=20"]
    with subprocess.Popen(importing, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        _Writer(process.stdin).write(changes)
        process.stdin.close()
    if process.returncode != 0:
        raise RuntimeError(f"git fast-import ended with {process.returncode}")
    packing = ["git", f"--git-dir={partial}", "-c", "pack.threads=1", "repack", "-a", "-d", "-q", "--window=10"]
    subprocess.run(packing, check=True)
    # As evalpipe's mirror has it, and as a team's clone has it after maintenance; the bare git reads it too.
    subprocess.run(["git", f"--git-dir={partial}", "commit-graph", "write", "--reachable"], check=True)
    partial.rename(path)
    return path


class _Writer:
    """Writes one history; contents are edited in place, so that a file changes as files do."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._random = random.Random(20_260_701)
        self._mark = 0
        self._second = _FIRST_SECOND
        self._files = {path: self._lines(_LINES) for path in _paths()}
        self._files[b"CHANGELOG.md"] = self._lines(_CHANGELOG_LINES)
        self._by_kind: dict[str, list[bytes]] = {}
        for path in self._files:
            self._by_kind.setdefault(_kind(path), []).append(path)

    def write(self, changes: int) -> None:
        """Write the stream: a first commit with every file, then the changes."""
        tip = self._commit(b"Start", list(self._files), None, None)
        for number in range(1, changes):
            tip = self._change(number, tip)
        self._out.write(b"reset refs/heads/main\nfrom :%d\n" % tip)

    def _change(self, number: int, tip: int) -> int:
        shape = self._random.random()
        if number % 250 == 0:
            self._files[b"pyproject.toml"][0] = b'version = "%d.%d.0"' % divmod(number, 1000)
            return self._commit(b"Release %d.%d.0\n" % divmod(number, 1000), [b"pyproject.toml"], tip, None)
        files = self._edited()
        if shape < 0.55:
            body = self._body() if shape < 0.35 else b""
            return self._commit(b"%s (#%d)\n%s" % (self._title(), number, body), files, tip, None)
        if shape < 0.70:
            return self._commit(self._title() + b"\n", files, tip, None)
        branch = tip
        parts = [files[start::3] for start in range(min(3, len(files)))]
        for part in [*parts, *([self._edited()[:1]] if shape < 0.8 else [])]:
            branch = self._commit(self._title() + b"\n", part, branch, None)
            files += part
        name = self._random.choice(_WORDS).encode()
        message = b"Merge pull request #%d from ada/%s\n\n%s\n" % (number, name, self._title())
        return self._commit(message, files, tip, branch)

    def _commit(self, message: bytes, files: list[bytes], parent: int | None, merged: int | None) -> int:
        self._mark += 1
        self._second += 900
        out = [
            b"commit refs/heads/import\nmark :%d" % self._mark,
            b"author Ada Clock <ada%d@example.org> %d +0100" % (self._mark % 97, self._second - 600),
            b"committer Merger <merger@example.org> %d +0000" % self._second,
            b"data %d\n%s" % (len(message), message),
        ]
        if parent is not None:
            out.append(b"from :%d" % parent)
        if merged is not None:
            out.append(b"merge :%d" % merged)
        for path in dict.fromkeys(files):
            content = b"\n".join(self._files[path]) + b"\n"
            out.append(b"M 100644 inline %s\ndata %d\n%s" % (path, len(content), content))
        self._out.write(b"\n".join(out) + b"\n")
        return self._mark

    def _edited(self) -> list[bytes]:
        weights, kinds = zip(*_WORK, strict=True)
        chosen = self._random.choices(kinds, weights)[0]
        paths = list(dict.fromkeys(self._random.choice(self._by_kind[kind]) for kind in chosen))
        for path in paths:
            lines = self._files[path]
            limit = _CHANGELOG_LINES if path == b"CHANGELOG.md" else _MOST_LINES
            place = 3 if path == b"CHANGELOG.md" else self._random.randrange(len(lines))
            lines[place : place + 1] = self._lines(self._random.randint(1, 3))
            del lines[limit:]
        return paths

    def _lines(self, count: int) -> list[bytes]:
        return [b"    " + self._title() for _line in range(count)]

    def _title(self) -> bytes:
        return " ".join(self._random.choices(_WORDS, k=self._random.randint(3, 7))).encode()

    def _body(self) -> bytes:
        lines = [b"* " + self._title() for _line in range(self._random.randint(1, 6))]
        if self._random.random() < 0.3:
            lines.append(b"\nFixes #%d" % self._random.randint(1, 9_999))
        return b"\n" + b"\n".join(lines) + b"\n"


def _paths() -> Iterator[bytes]:
    yield from (b"pyproject.toml", b"requirements.txt", b"README.md", b"CHANGELOG.md")
    yield from (b".github/workflows/%d.yml" % number for number in range(4))
    yield from (b"docs/guide/page%d.md" % number for number in range(120))
    for area in _AREAS:
        for package in range(_PACKAGES):
            yield from (b"src/%s/package%d/module%d.py" % (area, package, number) for number in range(_MODULES))
            yield from (b"tests/%s/package%d/test_module%d.py" % (area, package, number) for number in range(_TESTS))


def _kind(path: bytes) -> str:
    if path.endswith(b".py"):
        return "test" if path.startswith(b"tests/") else "source"
    if path == b"CHANGELOG.md":
        return "changelog"
    if path.startswith(b".github/"):
        return "workflow"
    return "dependency" if path == b"requirements.txt" else "docs"
