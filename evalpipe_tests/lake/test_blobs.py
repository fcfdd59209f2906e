"""Blobs are stored once, by their content, and a change of that content never goes unseen."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.lake import BlobError, BlobStore


@given(st.binary(max_size=300))
def test_a_blob_comes_back_by_the_digest_of_its_bytes(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = BlobStore(Path(folder))
        digest = store.put(data)
        assert digest == hashlib.sha256(data).hexdigest()
        assert store.get(digest) == data


def test_the_same_bytes_are_written_once(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    digest = store.put(b"same")
    path = store.path(digest)
    os.utime(path, (0, 0))
    written = path.stat().st_ino
    assert store.put(b"same") == digest
    # The file stays; its time says that it is in use again.
    assert path.stat().st_ino == written
    assert path.stat().st_mtime > 0


@pytest.mark.parametrize("damaged", [b"", b"sam", b"Same", b"same\n"])
def test_a_changed_blob_is_refused_and_mended_by_the_next_put(tmp_path: Path, damaged: bytes) -> None:
    store = BlobStore(tmp_path)
    digest = store.put(b"same")
    store.path(digest).write_bytes(damaged)
    with pytest.raises(BlobError, match=f"blob {store.path(digest)} was changed .*backup"):
        store.get(digest)
    assert store.put(b"same") == digest
    assert store.get(digest) == b"same"


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"never stored").hexdigest()
    with pytest.raises(BlobError, match=f"blob {digest} is missing from {tmp_path}"):
        BlobStore(tmp_path).get(digest)


@pytest.mark.parametrize("digest", ["", "..", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_what_is_no_digest_names_no_file(tmp_path: Path, digest: str) -> None:
    with pytest.raises(BlobError, match="is not the SHA-256 of a blob"):
        BlobStore(tmp_path).get(digest)
