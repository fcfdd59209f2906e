"""A lake in a real object store, seen by two machines: two copies of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalpipe.lake import (
    BlobError,
    Lake,
    LakeFaultKind,
    StoreError,
    StoreFault,
    TableNames,
    blob_files,
    inspect_blob,
    missing_blobs,
    table_files,
    working_copy,
)
from evalpipe_tests.lake.rows import verdict
from evalpipe_tests.object_stores import StoreServer

KEY = "ab" * 32
PLACE = ("ab", KEY)


def row(detail: str) -> list[dict[str, Any]]:
    return [verdict(KEY, detail=detail)]


def details(lake: Lake) -> list[str]:
    return [one["detail"] for one in lake.rows("verdicts", *PLACE)]


@pytest.fixture
def here(tmp_path: Path, url: str) -> Lake:
    return Lake(tmp_path / "here", url)


@pytest.fixture
def there(tmp_path: Path, url: str) -> Lake:
    return Lake(tmp_path / "there", url)


@pytest.fixture
def own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreServer]:
    """A server that the test may end, with a bucket `lake`."""
    server = StoreServer(tmp_path / "s3")
    server.start()
    server.make_bucket("lake")
    monkeypatch.setattr(working_copy, "FRESH_S", 0.0)
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    yield server
    server.kill()


def test_what_one_machine_writes_another_reads(here: Lake, there: Lake) -> None:
    assert there.rows("verdicts", *PLACE) == []
    assert not there.has_any("verdicts")
    here.write("verdicts", row("first"), *PLACE)
    digest = here.blobs.put(b"patch \xff")
    here.write_document(b"{}", "manifests", "small", "agent", "original", "one.json")
    assert details(there) == ["first"]
    assert there.has("verdicts", *PLACE)
    assert there.has_any("verdicts", "ab")
    assert there.read("verdicts").num_rows == 1
    assert there.folders("verdicts") == ["ab"]
    assert [chunk.num_rows for chunk in there.chunks("verdicts", *PLACE)] == [1]
    assert there.blobs.get(digest) == b"patch \xff"
    (document,) = there.documents("manifests", "small", "agent", "original")
    assert (document.name, document.read_bytes()) == ("one.json", b"{}")


def test_what_is_replaced_or_removed_on_one_machine_is_so_on_another(here: Lake, there: Lake) -> None:
    here.write("verdicts", row("first"), *PLACE)
    assert details(there) == ["first"]
    here.write("verdicts", row("second"), *PLACE)
    assert details(there) == ["second"]
    there.write("verdicts", row("third"), *PLACE)
    assert details(here) == ["third"]
    there.remove("verdicts", "ab")
    assert details(here) == []
    assert not here.path("verdicts", *PLACE).exists()


def test_what_others_wrote_into_the_folder_is_added_once(here: Lake, there: Lake, s3_server: StoreServer) -> None:
    folder = here.root / "calls" / "small" / "1"
    folder.mkdir(parents=True)
    (folder / "calls.jsonl").write_bytes(b"{}\n")
    (folder / ".half.tmp").touch()
    here.folder.add(folder)
    before = s3_server.requests()
    here.folder.add(folder)
    assert s3_server.requests() == before
    copy = there.root / "calls" / "small" / "1"
    there.folder.look(copy)
    assert [(path.name, path.read_bytes()) for path in copy.iterdir()] == [("calls.jsonl", b"{}\n")]


def test_objects_are_the_files_that_every_other_program_reads(here: Lake, url: str, s3_server: StoreServer) -> None:
    path = here.write("verdicts", row("first"), *PLACE)
    bucket = s3_server.folder / "buckets" / url.split("/")[2]
    assert (bucket / "team" / "verdicts" / "ab" / f"{KEY}.parquet").read_bytes() == path.read_bytes()


def test_what_a_pass_has_so_far_stays_on_its_machine(here: Lake, there: Lake) -> None:
    here.write("suite_runs", [], "candidate", "first", "before")
    assert here.has("suite_runs", "candidate", "first", "before")
    assert not there.has("suite_runs", "candidate", "first", "before")
    here.remove("suite_runs", "candidate")
    assert not here.has("suite_runs", "candidate", "first", "before")


@pytest.mark.slow
def test_a_store_that_ends_in_the_middle_loses_nothing_that_was_written(
    own_server: StoreServer, tmp_path: Path
) -> None:
    here, there = (Lake(tmp_path / name, "s3://lake") for name in ("here", "there"))
    with here.locked("verdicts", *PLACE):
        here.write("verdicts", row("begun"), *PLACE)
        own_server.kill()
        digest = here.blobs.put(b"paid for")
        here.write("verdicts", row("ended"), *PLACE)
    waiting = {path.name for path in here.folder.waiting()}
    assert waiting == {digest, f"{KEY}.parquet"}
    with pytest.raises(StoreError, match="s3://lake cannot be reached") as raised, here.locked("verdicts", *PLACE):
        pass
    assert raised.value.fault is StoreFault.UNREACHABLE
    own_server.start()
    assert details(there) == ["begun"]
    # Another process of the same machine comes first to it.
    again = Lake(tmp_path / "here", "s3://lake")
    assert details(again) == ["ended"]
    assert again.folder.waiting() == []
    assert details(there) == ["ended"]
    assert there.blobs.get(digest) == b"paid for"


@pytest.mark.slow
def test_a_file_that_waits_never_replaces_what_another_machine_wrote(own_server: StoreServer, tmp_path: Path) -> None:
    here, there = (Lake(tmp_path / name, "s3://lake") for name in ("here", "there"))
    here.write("verdicts", row("first"), *PLACE)
    own_server.kill()
    here.write("verdicts", row("paid for here"), *PLACE)
    own_server.start()
    there.write("verdicts", row("paid for there"), *PLACE)
    assert details(here) == ["paid for here"]
    assert here.folder.waiting() == [here.path("verdicts", *PLACE)]
    assert details(there) == ["paid for there"]
    here.path("verdicts", *PLACE).unlink()
    assert details(here) == ["paid for there"]
    assert here.folder.waiting() == []


def test_a_put_whose_answer_was_lost_is_no_conflict(here: Lake, there: Lake, url: str) -> None:
    path = here.write("verdicts", row("first"), *PLACE)
    second = there.write("verdicts", row("second"), *PLACE)
    path.write_bytes(second.read_bytes())
    index = here.folder._index  # type: ignore[attr-defined]
    index.let_wait(f"verdicts/ab/{KEY}.parquet")
    assert details(here) == ["second"]
    assert here.folder.waiting() == []


def test_a_lake_that_was_on_disk_moves_into_a_store(tmp_path: Path, url: str, there: Lake) -> None:
    plain = Lake(tmp_path / "here")
    plain.write("verdicts", row("first"), *PLACE)
    digest = plain.blobs.put(b"patch")
    moved = Lake(tmp_path / "here", url)
    assert details(moved) == ["first"]
    assert moved.push() == 2
    assert moved.push() == 0
    assert details(there) == ["first"]
    assert there.blobs.get(digest) == b"patch"


def test_a_damaged_object_and_a_lost_one_are_found(here: Lake, there: Lake, url: str, s3_server: StoreServer) -> None:
    good, bad, lost = (here.blobs.put(data) for data in (b"good", b"bad", b"lost"))
    objects = s3_server.folder / "buckets" / url.split("/")[2] / "team" / "blobs"
    (objects / bad[:2] / bad).write_bytes(b"baD")
    (objects / lost[:2] / lost).unlink()
    for lake in (here, there):
        kinds = {path.name: fault.kind if (fault := inspect_blob(lake, path)) else None for path in blob_files(lake)}
        assert kinds == {good: None, bad: LakeFaultKind.CHANGED_BLOB}
        names = TableNames(blobs={good, bad, lost})
        assert [fault.path.name for fault in missing_blobs(lake, names)] == [lost]
    with pytest.raises(StoreError, match=f"{bad} was changed after it was written: restore it from a backup"):
        there.blobs.get(bad)
    with pytest.raises(BlobError, match="is missing"):
        there.blobs.get(lost)


def test_a_blob_that_another_machine_used_meanwhile_stays(here: Lake, there: Lake) -> None:
    path = here.blobs.path(here.blobs.put(b"once"))
    (before,) = there.folder.files(there.blobs.root).values()
    assert before.modified > dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)
    there.folder.remove(there.blobs.path(path.name), lambda found: found == before)
    assert list(here.folder.files(here.blobs.root)) == [path]
    there.folder.remove(there.blobs.path(path.name), lambda found: found != before)
    assert list(here.folder.files(here.blobs.root)) == []


@pytest.mark.slow
def test_reading_costs_one_request_for_a_thousand_partitions_once_they_are_here(
    here: Lake, there: Lake, s3_server: StoreServer
) -> None:
    for number in range(110):
        here.write("verdicts", [verdict(f"{number:064x}")], "ab", f"{number:064x}")
    assert there.read("verdicts").num_rows == 110
    before = s3_server.requests()
    assert there.read("verdicts").num_rows == 110
    assert s3_server.requests() - before <= 1
    here.write("verdicts", [verdict("0" * 64, detail="new")], "ab", "0" * 64)
    before = s3_server.requests()
    assert "new" in there.read("verdicts")["detail"].to_pylist()
    assert s3_server.requests() - before <= 2


def test_tables_are_listed_whole(here: Lake, there: Lake) -> None:
    here.write("verdicts", row("first"), *PLACE)
    assert table_files(there) == [("verdicts", there.path("verdicts", *PLACE))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "place", "fault", "text"),
    [
        ({}, "s3://no-such-bucket/team", StoreFault.NO_BUCKET, "there is no bucket no-such-bucket: make it"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, None, StoreFault.DENIED, "check the credentials in the environment"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, None, StoreFault.UNREACHABLE, "cannot be reached"),
    ],
)
def test_what_is_wrong_with_a_store_is_said_before_anything_is_done(
    variables: dict[str, str],
    place: str | None,
    fault: StoreFault,
    text: str,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    lake = Lake(tmp_path / "here", place or url)
    with pytest.raises(StoreError, match=text) as raised:
        lake.read("verdicts")
    assert raised.value.fault is fault
    with pytest.raises(StoreError, match=text), lake.locked("verdicts", *PLACE):
        pass
