"""Looking at every file of a lake: what is wrong is named, whatever it is, and what rows name is known."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from evalpipe.lake import (
    SCHEMAS,
    Lake,
    LakeFaultKind,
    TableNames,
    blob_files,
    inspect_blob,
    inspect_table,
    missing_blobs,
    table_files,
    unfinished_writes,
)
from evalpipe.lake.inspection import BLOB_COLUMNS
from evalpipe_tests.lake.rows import verdict

NOW = dt.datetime(2026, 10, 1, tzinfo=dt.UTC)
PLACE = ("s", "a", "c", "t", "original-1")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def attempt(patch: str | None) -> dict[str, Any]:
    """A row of `agent_runs`."""
    texts = ("sweep", "agent", "configuration", "task_id", "sample", "prompt_mode", "attempt_id", "outcome_detail")
    return {
        **dict.fromkeys(texts, "x"),
        "outcome": "finished",
        "attempt": 1,
        "started_at": NOW,
        "patch_sha256": patch,
        "patch_bytes": 0,
        "files_changed": 0,
        "image_digest": "sha256:0",
        "run_id": "r",
        "flags": [],
    }


def test_rows_name_their_blobs_and_every_other_digest(lake: Lake) -> None:
    patch = lake.blobs.put(b"patch")
    lake.write("agent_runs", [attempt(patch), attempt(None)], *PLACE)
    lake.write("verdicts", [verdict("ab" * 32)], "ab", "ab" * 32)
    names = TableNames()
    found = table_files(lake)
    assert [table for table, _ in found] == ["agent_runs", "verdicts"]
    assert [inspect_table(table, path, names) for table, path in found] == [None, None]
    assert names.blobs == {patch}
    assert names.anything == {patch, "ab" * 32}
    assert list(missing_blobs(lake, names)) == []


def test_every_column_with_a_digest_is_known_to_name_a_blob_or_not() -> None:
    """A new one is to be added where it belongs: what is not known to be a blob is not missed when it is gone."""
    found = {column for schema in SCHEMAS.values() for column in schema.names if column.endswith("sha256")}
    assert found - BLOB_COLUMNS == {"program_sha256"}
    assert found >= BLOB_COLUMNS


def test_a_digest_of_something_else_is_not_missed_as_a_blob(lake: Lake) -> None:
    image = {
        **dict.fromkeys(("adapter", "package", "version", "task_image", "image_digest"), "x"),
        "program_sha256": "cd" * 32,
        "packages": [],
        "build_seconds": 1.0,
        "built_at": NOW,
    }
    path = lake.write("agent_images", [image], "a", "b")
    names = TableNames()
    assert inspect_table("agent_images", path, names) is None
    assert (names.blobs, names.anything) == (set(), {"cd" * 32})


def test_a_blob_that_is_gone_is_named_by_the_rows(lake: Lake) -> None:
    patch = lake.blobs.put(b"patch")
    lake.write("agent_runs", [attempt(patch)], *PLACE)
    lake.blobs.path(patch).unlink()
    names = TableNames()
    for table, path in table_files(lake):
        inspect_table(table, path, names)
    (fault,) = missing_blobs(lake, names)
    assert (fault.kind, fault.path) == (LakeFaultKind.MISSING_BLOB, lake.blobs.path(patch))
    assert "restore it from a backup" in fault.text


@pytest.mark.parametrize("content", [b"", b"no Parquet", None])
def test_a_damaged_table_is_named(lake: Lake, content: bytes | None) -> None:
    path = lake.write("agent_runs", [attempt(None)], *PLACE)
    whole = path.read_bytes()
    middle = len(whole) // 3
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :] if content is None else content)
    fault = inspect_table("agent_runs", path, TableNames())
    assert fault is not None
    assert fault.kind is LakeFaultKind.UNREADABLE_TABLE
    assert str(path) in fault.text


def test_a_table_of_another_schema_is_named(lake: Lake) -> None:
    path = lake.write("verdicts", [verdict("ab" * 32)], "ab", "ab" * 32)
    fault = inspect_table("calibration", path, TableNames())
    assert fault is not None
    assert "columns" in fault.text


def test_a_changed_blob_and_a_stranger_among_them_are_named(lake: Lake) -> None:
    good, changed = (lake.blobs.path(lake.blobs.put(data)) for data in (b"good", b"changed"))
    changed.write_bytes(b"changeD")
    stranger = changed.with_name("notes.txt")
    stranger.touch()
    kinds = {path: fault.kind if (fault := inspect_blob(lake, path)) else None for path in blob_files(lake)}
    assert kinds == {good: None, changed: LakeFaultKind.CHANGED_BLOB, stranger: LakeFaultKind.STRAY_FILE}


def test_a_write_that_was_killed_is_no_blob_and_no_table(lake: Lake) -> None:
    path = lake.write("agent_runs", [attempt(None)], *PLACE)
    blob = lake.blobs.path(lake.blobs.put(b"x"))
    left = [one.with_name(f".{one.name}.1.ab.tmp") for one in (path, blob)]
    for one in left:
        one.touch()
    assert unfinished_writes(lake) == sorted(left)
    assert (len(table_files(lake)), blob_files(lake)) == (1, [blob])
