"""Tables keep what they are given, refuse what they do not declare, and name the file that is broken."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalpipe.lake import SCHEMAS, Lake, LakeError
from evalpipe.lake.files import write_atomically
from evalpipe_tests.lake.rows import rows, verdict


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.mark.parametrize("table", SCHEMAS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_declared_table_gives_back_what_was_written(table: str, data: st.DataObject) -> None:
    written = data.draw(st.lists(rows(SCHEMAS[table]), max_size=3))
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        lake.write(table, written, "part")
        assert lake.rows(table, "part") == written
        assert lake.read(table).schema.equals(SCHEMAS[table])


def test_a_row_may_leave_optional_columns_out(lake: Lake) -> None:
    row = {column.name: _some(column.type) for column in SCHEMAS["task_images"] if not column.nullable}
    lake.write("task_images", [row], "demo")
    assert lake.rows("task_images", "demo") == [{**dict.fromkeys(SCHEMAS["task_images"].names), **row}]


def test_an_absent_partition_has_no_rows(lake: Lake) -> None:
    assert lake.rows("verdicts", "aa", "key") == []
    assert not lake.has("verdicts", "aa", "key")
    assert len(lake.read("verdicts")) == 0
    assert lake.read("verdicts").schema.equals(SCHEMAS["verdicts"])
    assert not lake.root.exists()


def test_partitions_below_a_folder_are_seen_without_reading_them(lake: Lake) -> None:
    assert not lake.has_any("verdicts")
    with lake.locked("verdicts", "aa", "key"):
        assert not lake.has_any("verdicts", "aa")
    lake.write("verdicts", [verdict("a")], "aa", "key")
    assert lake.has_any("verdicts")
    assert lake.has_any("verdicts", "aa")
    assert not lake.has_any("verdicts", "bb")


def test_writing_a_partition_again_replaces_it(lake: Lake) -> None:
    lake.write("verdicts", [verdict("a"), verdict("b")], "aa")
    lake.write("verdicts", [verdict("c")], "aa")
    assert [row["verdict_key"] for row in lake.rows("verdicts", "aa")] == ["c"]


def test_many_partitions_are_one_dataset_in_the_order_of_their_names(lake: Lake) -> None:
    for folder, name in (("b", "2"), ("a", "1"), ("b", "10"), ("c.d", "x.y")):
        lake.write("verdicts", [verdict(f"{folder}/{name}/{n}") for n in range(2)], folder, name)
    keys = lake.read("verdicts").column("verdict_key").to_pylist()
    assert keys == [f"{part}/{n}" for part in ("a/1", "b/10", "b/2", "c.d/x.y") for n in range(2)]
    assert lake.read("verdicts", "b").column("verdict_key").to_pylist() == keys[2:6]
    assert len(lake.read("verdicts", "none")) == 0


def test_a_partition_and_one_below_it_do_not_meet(lake: Lake) -> None:
    lake.write("verdicts", [verdict("upper")], "a")
    lake.write("verdicts", [verdict("lower")], "a", "b")
    assert lake.rows("verdicts", "a")[0]["verdict_key"] == "upper"
    assert lake.read("verdicts").num_rows == 2


def test_leftovers_of_a_killed_write_and_locks_are_not_data(lake: Lake) -> None:
    path = lake.write("verdicts", [verdict("a")], "aa", "key")
    path.with_name(f".{path.name}.4711.0badcafe.tmp").write_bytes(b"PAR1 half a fi")
    path.with_name(".key.parquet").write_bytes(b"half")
    with lake.locked("verdicts", "aa", "key"):
        assert lake.read("verdicts").num_rows == 1
    assert len(lake.rows("verdicts", "aa", "key")) == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"verdikt": "x"}, "a row for verdicts has unknown columns ['verdikt']"),
        ({"verdict": None}, "a row for verdicts has nothing in the columns ['verdict']"),
        ({"resolved": "yes"}, "the column resolved of verdicts cannot hold its values"),
        ({"fail_to_pass_total": 2**63}, "the column fail_to_pass_total of verdicts cannot hold its values"),
        ({"fail_to_pass_total": "many"}, "the column fail_to_pass_total of verdicts cannot hold its values"),
        ({"detail": b"bytes\xff"}, "the column detail of verdicts cannot hold its values"),
        ({"detail": "\udcff"}, "the column detail of verdicts cannot hold its values"),
        ({"graded_at": "today"}, "the column graded_at of verdicts cannot hold its values"),
        ({"unmet_tests": 3}, "the column unmet_tests of verdicts cannot hold its values"),
    ],
)
def test_rows_that_do_not_fit_the_schema_are_refused_and_change_nothing(
    lake: Lake, change: dict[str, Any], fault: str
) -> None:
    lake.write("verdicts", [verdict("old")], "aa")
    with pytest.raises(LakeError, match=re.escape(fault)):
        lake.write("verdicts", [verdict("new"), verdict("bad") | change], "aa")
    assert [row["verdict_key"] for row in lake.rows("verdicts", "aa")] == ["old"]


def test_a_missing_required_column_is_refused(lake: Lake) -> None:
    row = verdict("a")
    del row["verdict"]
    with pytest.raises(LakeError, match=r"nothing in the columns \['verdict'\]"):
        lake.write("verdicts", [row], "aa")


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "flipped", "folder"])
def test_a_damaged_file_is_named(lake: Lake, damage: str) -> None:
    lake.write("verdicts", [verdict("good")], "aa", "good")
    path = lake.write("verdicts", [verdict("a", detail="x" * 1000)], "aa", "bad")
    whole = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        flipped = whole[:-100] + bytes(byte ^ 0xFF for byte in whole[-100:-8]) + whole[-8:]
        path.write_bytes({"cut": whole[:-20], "empty": b"", "text": b"not Parquet", "flipped": flipped}[damage])
    expected = f"{re.escape(str(path))} is not a readable verdicts file .*restore it, or delete it"
    with pytest.raises(LakeError, match=expected):
        lake.rows("verdicts", "aa", "bad")
    with pytest.raises(LakeError, match=expected):
        lake.read("verdicts")


def test_a_flipped_bit_is_noticed_or_harmless(lake: Lake) -> None:
    written = [verdict(str(number), detail="x" * 20) for number in range(5)]
    path = lake.write("verdicts", written, "aa")
    whole = path.read_bytes()
    noticed = 0
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            assert lake.rows("verdicts", "aa") == written
        except LakeError:
            noticed += 1
    assert noticed > 20


def _some(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return []
    return {pa.string(): "x", pa.float64(): 1.5, pa.timestamp("us", tz="UTC"): verdict("")["graded_at"]}[kind]


def _file_of(lake: Lake, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_atomically(lake.path("verdicts", "aa"), sink.getvalue().to_pybytes())


def _whole() -> pa.Table:
    return pa.Table.from_pylist([verdict("a")], schema=SCHEMAS["verdicts"])


def test_a_file_without_a_required_column_is_no_table_of_nulls(lake: Lake) -> None:
    _file_of(lake, _whole().drop_columns(["resolved"]))
    for read in (lambda: lake.rows("verdicts", "aa"), lambda: lake.read("verdicts")):
        with pytest.raises(LakeError, match=r"aa\.parquet is not a readable verdicts file .*: resolved\)"):
            read()


def test_a_file_with_an_unknown_column_is_refused(lake: Lake) -> None:
    _file_of(lake, _whole().append_column("newer", pa.array([1])))
    with pytest.raises(LakeError, match="not those declared: newer"):
        lake.rows("verdicts", "aa")


def test_a_file_with_another_type_is_refused(lake: Lake) -> None:
    table = _whole()
    place = table.schema.get_field_index("resolved")
    _file_of(lake, table.set_column(place, "resolved", pa.array(["yes"])))
    with pytest.raises(LakeError, match="not those declared: resolved"):
        lake.rows("verdicts", "aa")


def test_an_old_file_without_a_column_that_may_be_null_stays_readable(lake: Lake, tmp_path: Path) -> None:
    row = {column.name: _some(column.type) for column in SCHEMAS["task_images"] if not column.nullable}
    old = pa.Table.from_pylist([row], schema=SCHEMAS["task_images"]).drop_columns(["image_digest"])
    sink = pa.BufferOutputStream()
    pq.write_table(old, sink)
    write_atomically(lake.path("task_images", "demo"), sink.getvalue().to_pybytes())
    assert lake.rows("task_images", "demo") == [{**dict.fromkeys(SCHEMAS["task_images"].names), **row}]
    assert lake.read("task_images").schema.equals(SCHEMAS["task_images"])


@pytest.mark.parametrize(
    "part", ["", ".", "..", ".hidden", "a/b", "a b", "é", "a\n", "a\x00", "x" * 121, "a:b", "../../etc"]
)
def test_a_partition_is_named_by_slugs_only(lake: Lake, part: str) -> None:
    for parts in ((part,), (part, "x"), ("x", part)):
        for use in (lake.path, lake.rows, lake.has):
            with pytest.raises(ValueError, match="cannot name a partition of verdicts"):
                use("verdicts", *parts)
        with pytest.raises(ValueError, match="cannot name a partition of verdicts"):
            lake.write("verdicts", [], *parts)
        with pytest.raises(ValueError, match="cannot name"), lake.locked("verdicts", *parts):
            pass
    with pytest.raises(ValueError, match="cannot name a partition of verdicts"):
        lake.read("verdicts", part)


def test_a_partition_needs_a_name_and_a_table_that_is_declared(lake: Lake) -> None:
    with pytest.raises(ValueError, match="a partition of verdicts needs a name"):
        lake.path("verdicts")
    with pytest.raises(KeyError, match="the lake has no table 'verdict'"):
        lake.path("verdict", "x")
    assert lake.path("verdicts", "x" * 120).name == "x" * 120 + ".parquet"


def test_names_that_differ_after_a_dot_are_two_partitions_with_two_locks(lake: Lake) -> None:
    lake.write("verdicts", [verdict("1")], "a.1")
    lake.write("verdicts", [verdict("2")], "a.2")
    assert lake.rows("verdicts", "a.1")[0]["verdict_key"] == "1"
    with lake.locked("verdicts", "a.1"), lake.locked("verdicts", "a.2"):
        pass
