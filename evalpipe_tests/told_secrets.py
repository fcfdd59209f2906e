"""Looks for a secret in all that a run has left: plain, encoded, and in whatever is compressed."""

from __future__ import annotations

import base64
import gzip
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pyarrow.parquet as pq


def files_that_tell(root: Path, secret: str) -> list[str]:
    """The files below `root` that hold `secret`, relative to it."""
    plain = secret.encode()
    forms = {plain, base64.b64encode(plain), base64.urlsafe_b64encode(plain), plain.hex().encode(), plain[::-1]}
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    return [
        str(path.relative_to(root))
        for path in files
        if any(form in content for content in _contents(path) for form in forms)
    ]


def _contents(path: Path) -> Iterator[bytes]:
    raw = path.read_bytes()
    yield raw
    if raw.startswith(b"\x1f\x8b"):
        yield gzip.decompress(raw)
    elif raw.startswith(b"PAR1"):
        yield repr(pq.read_table(path).to_pylist()).encode()
    elif raw.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(path)) as database:
            yield "\n".join(database.iterdump()).encode()
    elif path.parent.parent.name == "objects":  # of git
        with suppress(zlib.error):
            yield zlib.decompress(raw)
