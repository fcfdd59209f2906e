"""Rows that wait on disk come back as they were, and chunk by chunk a table is the same as read at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evalpipe.lake import SCHEMAS, Lake, LakeError, Spool
from evalpipe_tests.lake.rows import verdict

TABLE = "verdicts"


def columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in SCHEMAS[TABLE].names}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_spooled_rows_are_written_as_one_table(lake: Lake) -> None:
    rows = [verdict(str(number)) for number in range(7)]
    with Spool(TABLE, lake.root) as spool:
        for start in (0, 3, 6):
            spool.add(columns(rows[start : start + 3]))
        assert list(lake.root.iterdir()) == []
        lake.write_tables(TABLE, spool.chunks(), "part")
    assert lake.rows(TABLE, "part") == rows


def test_nothing_spooled_is_a_table_without_rows(lake: Lake) -> None:
    with Spool(TABLE, lake.root) as spool:
        lake.write_tables(TABLE, spool.chunks(), "part")
    assert lake.has(TABLE, "part")
    assert lake.rows(TABLE, "part") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"more": [1]}, "not those declared: \\['more'\\]"),
        ({"verdict": [None]}, "verdict of verdicts has rows with nothing"),
        ({"resolved": ["yes"]}, "resolved of verdicts cannot hold"),
        ({"detail": ["a", "b"]}, None),
    ],
)
def test_spool_refuses_what_the_table_does_not_declare(lake: Lake, change: dict[str, Any], message: str | None) -> None:
    with Spool(TABLE, lake.root) as spool, pytest.raises((LakeError, pa.ArrowInvalid), match=message):
        spool.add({**columns([verdict("1")]), **change})


def test_chunks_are_the_table_in_pieces(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.lake.tables._ROWS_OF_CHUNK", 3)
    rows = [verdict(str(number)) for number in range(7)]
    lake.write(TABLE, rows, "part")
    chunks = list(lake.chunks(TABLE, "part"))
    assert [len(chunk) for chunk in chunks] == [3, 3, 1]
    assert pa.concat_tables(chunks).to_pylist() == rows
    columns = pa.concat_tables(lake.chunks(TABLE, "part", columns=["resolved", "verdict_key"]))
    assert columns.column_names == ["resolved", "verdict_key"]
    assert columns.column("verdict_key").to_pylist() == [row["verdict_key"] for row in rows]
    assert list(lake.chunks(TABLE, "absent")) == []


def test_chunks_of_a_broken_file_name_it(lake: Lake) -> None:
    path = lake.write(TABLE, [verdict("1")], "part")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LakeError, match=str(path)):
        list(lake.chunks(TABLE, "part"))


def test_failing_chunks_leave_the_table_as_it_was(lake: Lake) -> None:
    lake.write(TABLE, [verdict("1")], "part")
    good = next(lake.chunks(TABLE, "part"))

    def chunks() -> object:
        yield good
        raise LakeError("no")

    with pytest.raises(LakeError, match="no"):
        lake.write_tables(TABLE, chunks(), "part")  # type: ignore[arg-type]
    assert len(lake.rows(TABLE, "part")) == 1
    assert [path.name for path in (lake.root / TABLE).iterdir()] == ["part.parquet"]
