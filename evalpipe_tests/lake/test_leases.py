"""Leases in a real object store: one machine at a time, and none for ever."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from evalpipe.lake import Lake, leases
from evalpipe.lake.leases import Lease
from evalpipe.lake.object_store import ObjectStore

# Each takes a fraction of a second, and all of them together too long for `make check`.
pytestmark = pytest.mark.slow

KEY = "agent_runs/small/agent/one.parquet"


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """A store whose leases last 4 s, and are renewed all the time. It was asked before, which takes its time."""
    monkeypatch.setattr(leases, "LEASE_S", 4)
    monkeypatch.setattr(leases, "_RENEWED_EVERY_S", 0.1)
    monkeypatch.setattr(leases, "_ASKED_EVERY_S", 0.05)
    found = ObjectStore(url)
    found.below("")
    return found


def test_two_machines_never_hold_the_same_file_at_once(store: ObjectStore) -> None:
    inside, most, done = 0, 0, []

    def work(machine: str) -> None:
        nonlocal inside, most
        for _ in range(3):
            with Lease(store, KEY, machine):
                inside += 1
                most = max(most, inside)
                time.sleep(0.02)
                inside -= 1
                done.append(machine)

    threads = [threading.Thread(target=work, args=(f"machine {number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, len(done)) == (1, 9)
    assert store.below(leases.LEASES) == {}


@pytest.mark.slow
def test_a_lease_that_is_renewed_is_not_taken_however_long_it_lasts(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_S", 2)
    order = []

    def other() -> None:
        with Lease(store, KEY, "other"):
            order.append("other")

    with Lease(store, KEY, "first") as lease:
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(2.5)
        order.append("first")
        assert not lease.is_lost
    thread.join()
    assert order == ["first", "other"]


def test_a_lease_of_a_machine_that_died_is_taken_when_it_has_lasted(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_S", 0.5)
    store.put_new(f"{leases.LEASES}/{KEY}/000000007", b'{"machine": "dead"}')
    begun = time.monotonic()
    with Lease(store, KEY, "alive"):
        assert time.monotonic() - begun > 0.5
        assert f"{leases.LEASES}/{KEY}/000000008" in store.below(leases.LEASES)
    assert store.below(leases.LEASES) == {}


def test_what_the_same_machine_left_behind_is_taken_at_once(store: ObjectStore) -> None:
    store.put_new(f"{leases.LEASES}/{KEY}/000000001", b'{"machine": "this one"}')
    begun = time.monotonic()
    with Lease(store, KEY, "this one"):
        assert time.monotonic() - begun < 4


def test_a_holder_that_cannot_reach_the_store_knows_that_it_lost_its_lease(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_S", 1)
    with Lease(store, KEY, "cut off") as lease:
        monkeypatch.setattr(lease, "_store", ObjectStore("s3://no-such-bucket"))
        time.sleep(0.6)
        assert lease.is_lost
        with Lease(store, KEY, "another"):
            monkeypatch.setattr(lease, "_store", store)
            time.sleep(0.3)
            assert lease.is_lost
            assert list(store.below(f"{leases.LEASES}/{KEY}")) == [
                f"{leases.LEASES}/{KEY}/000000001",
                f"{leases.LEASES}/{KEY}/000000002",
            ]


def test_a_lake_holds_its_partitions_by_leases(store: ObjectStore, tmp_path: Path, url: str) -> None:
    here, there = (Lake(tmp_path / name, url) for name in ("here", "there"))
    order: list[str] = []

    def other() -> None:
        with there.locked("verdicts", "one"):
            order.append("there")

    with here.locked("verdicts", "one"):
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.3)
        order.append("here")
    thread.join()
    assert order == ["here", "there"]
