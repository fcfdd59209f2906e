"""Files that are read together give the same rows as one by one, and only what changed is read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalpipe.lake import SCHEMAS, Lake, LakeError, table_files, tables
from evalpipe_tests.lake.rows import verdict


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the partitions that were read one by one, as they are read."""
    names: list[str] = []

    def read_file(table: str, path: Path) -> pa.Table:
        names.append(path.stem)
        return original(table, path)

    original = tables.read_file
    monkeypatch.setattr(tables, "read_file", read_file)
    return names


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    for number in range(120):
        _write(lake, number)
    return lake


def _write(lake: Lake, number: int, **changes: Any) -> Path:
    return lake.write("verdicts", [verdict(f"{number:03}") | changes], f"{number % 7}", f"{number:03}")


def _one_by_one(lake: Lake) -> pa.Table:
    return pa.concat_tables([tables.read_file("verdicts", path) for _, path in sorted(table_files(lake))])


def test_the_second_reader_reads_one_file(lake: Lake, read_files: list[str]) -> None:
    first = lake.read("verdicts")
    assert len(read_files) == 120
    assert lake.read("verdicts").equals(first)
    assert len(read_files) == 120
    assert first.equals(_one_by_one(lake))
    assert first.schema.equals(SCHEMAS["verdicts"])


def test_only_what_is_new_or_replaced_is_read_again_and_what_is_gone_is_gone(lake: Lake, read_files: list[str]) -> None:
    lake.read("verdicts")
    read_files.clear()
    _write(lake, 5, detail="of another grading")
    _write(lake, 700)
    lake.path("verdicts", "1", "008").unlink()
    found = lake.read("verdicts")
    assert sorted(read_files) == ["005", "700"]
    assert found.equals(_one_by_one(lake))
    assert "of another grading" in found["detail"].to_pylist()
    lake.remove("verdicts", "1")
    assert lake.read("verdicts").equals(_one_by_one(lake))


def test_a_replaced_file_of_the_same_size_is_read_again(lake: Lake, read_files: list[str]) -> None:
    _write(lake, 5, detail="aaaa")
    lake.read("verdicts")
    _write(lake, 5, detail="bbbb")
    details = lake.read("verdicts")["detail"].to_pylist()
    assert "bbbb" in details
    assert "aaaa" not in details


def test_few_files_are_read_one_by_one(tmp_path: Path, read_files: list[str]) -> None:
    lake = Lake(tmp_path / "lake")
    for number in range(3):
        _write(lake, number)
    for _ in range(2):
        assert len(lake.read("verdicts")) == 3
    assert len(read_files) == 6


def _kept(lake: Lake) -> Path:
    (path,) = lake.root.rglob(".together.parquet")
    return path


@pytest.mark.parametrize("damage", ["cut", "other schema", "gone"])
def test_what_is_kept_may_be_lost_or_damaged(lake: Lake, read_files: list[str], damage: str) -> None:
    found = lake.read("verdicts")
    path = _kept(lake)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:500])
    elif damage == "gone":
        path.unlink()
    else:
        pq.write_table(pq.read_table(path).drop_columns(["verdict"]), path)
    read_files.clear()
    assert lake.read("verdicts").equals(found)
    assert len(read_files) == 120


def test_what_is_kept_is_no_partition_of_its_own(lake: Lake) -> None:
    lake.read("verdicts")
    assert _kept(lake) not in [path for _, path in table_files(lake)]
    assert len(lake.read("verdicts")) == 120


def test_a_broken_file_is_named_as_ever(lake: Lake) -> None:
    lake.read("verdicts")
    path = lake.path("verdicts", "3", "003")
    path.write_bytes(b"no Parquet")
    with pytest.raises(LakeError, match=r"003\.parquet"):
        lake.read("verdicts")


def test_a_lake_without_room_is_read_all_the_same(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evalpipe.lake.together.writing_atomically", no_room)
    assert len(lake.read("verdicts")) == 120
    assert list(lake.root.rglob(".together.parquet")) == []
