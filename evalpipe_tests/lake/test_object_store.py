"""What a lake asks of an object store, of real ones: S3 and Google Cloud Storage."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe.lake import Lake, StoreError, StoreFault, working_copy
from evalpipe.lake.object_store import ObjectStore
from evalpipe_tests.lake.rows import verdict
from evalpipe_tests.object_stores import Scheme, StoreServer


@pytest.fixture(scope="module", params=list(Scheme))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    found = StoreServer(tmp_path_factory.mktemp("store"), request.param)
    found.start()
    found.make_bucket("lake")
    yield found
    found.kill()


@pytest.fixture
def store(server: StoreServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """A folder of its own in the bucket."""
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    folder = "".join(letter for letter in request.node.name if letter.isalnum())
    return ObjectStore(f"{server.scheme}://lake/{folder}")


def test_objects_are_put_read_listed_and_removed(store: ObjectStore) -> None:
    begun = dt.datetime.now(dt.UTC)
    assert store.below("") == {}
    assert store.state("a/b") is None
    first = store.put("a/b", b"one")
    store.put("a/c/d", b"\xff" * 3_000_000)
    assert store.put("a/b", b"one") == first
    changed = store.put("a/b", b"other")
    assert changed != first
    found = store.below("a")
    assert {key: one.size for key, one in found.items()} == {"a/b": 5, "a/c/d": 3_000_000}
    assert found["a/b"] == store.state("a/b")
    assert found["a/b"].etag == changed
    assert abs(found["a/b"].modified - begun) < dt.timedelta(minutes=1)
    assert found["a/b"].modified.microsecond == 0
    assert store.below("") == found
    assert store.folders("a") == ["c"]
    assert store.folders("nothing") == []
    assert dict(store.read(["a/b", "a/c/d", "a/e"])) == {"a/b": b"other", "a/c/d": b"\xff" * 3_000_000}
    store.remove(["a/b", "a/e"])
    assert store.below("").keys() == {"a/c/d"}


def test_of_several_who_make_the_same_new_object_one_succeeds(store: ObjectStore) -> None:
    made: list[bool] = []
    threads = [
        threading.Thread(target=lambda number=number: made.append(store.put_new("one", b"%d" % number)))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 5 + [True]
    store.remove(["one"])
    assert store.put_new("one", b"again")


def test_a_bucket_that_is_not_there_is_named(store: ObjectStore) -> None:
    absent = ObjectStore(store.url.replace("://lake/", "://no-such-bucket/"))
    for ask in (lambda: absent.below("a"), lambda: absent.put("a", b""), lambda: absent.put_new("a", b"")):
        with pytest.raises(StoreError, match="there is no bucket no-such-bucket: make it") as raised:
            ask()
        assert raised.value.fault is StoreFault.NO_BUCKET


def test_a_lake_goes_from_one_machine_to_another_through_it(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_copy, "FRESH_S", 0.0)
    here, there = (Lake(tmp_path / name, store.url) for name in ("here", "there"))
    with here.locked("verdicts", "ab", "one"):
        here.write("verdicts", [verdict("one")], "ab", "one")
    digest = here.blobs.put(b"patch")
    with there.locked("verdicts", "ab", "one"):
        (row,) = there.rows("verdicts", "ab", "one")
        there.write("verdicts", [{**row, "detail": "changed"}], "ab", "one")
    assert here.read("verdicts")["detail"].to_pylist() == ["changed"]
    assert there.blobs.get(digest) == b"patch"
    here.folder.check()
    assert store.below(".leases") == store.below(".checks") == {}


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_package(*_: object, **__: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.filesystem", no_package)
    with pytest.raises(StoreError, match=r"pip install 'evalpipe\[gcs\]'") as raised:
        ObjectStore("gs://lake").below("")
    assert raised.value.fault is StoreFault.PACKAGE_MISSING
