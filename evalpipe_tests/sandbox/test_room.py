"""How many boxes a machine carries, and that no more of them run at once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.sandbox import Capacity, DockerSandbox, Interrupted, Limits, ProcessSandbox, Room
from evalpipe.sandbox.room import capacity_of_engine, memory_facts

GIB = 1024**3


def limits(cpus: float, memory: int = GIB) -> Limits:
    return Limits(1, memory_bytes=memory, cpus=cpus)


@pytest.mark.parametrize(
    ("cpus", "memory", "of_box", "expected"),
    [
        (8, 64 * GIB, limits(1), 8),
        (8, 64 * GIB, limits(0.5), 16),
        (8, 64 * GIB, limits(3), 2),
        (8, 5 * GIB, limits(1, 2 * GIB), 2),
        (1, 64 * GIB, limits(2), 1),
        (8, GIB, limits(1, 2 * GIB), 1),
    ],
)
def test_the_scarcer_of_processors_and_memory_decides(cpus: int, memory: int, of_box: Limits, expected: int) -> None:
    assert Capacity(cpus, memory).boxes(of_box) == expected


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.5, 1, 2, 9]), st.integers(1, 6)), min_size=1, max_size=12))
def test_never_more_runs_than_there_is_room_for(boxes: list[tuple[float, int]]) -> None:
    lock = threading.Lock()
    running: list[Limits] = []

    def run(numbered: tuple[int, tuple[float, int]]) -> None:
        number, box = numbered
        mine = limits(box[0], box[1] * GIB)
        # Rooms over one folder are to each other as processes are.
        with rooms[number % 2].taken(mine):
            with lock:
                running.append(mine)
                alone = len(running) == 1
                assert alone or sum(one.cpus for one in running) <= 4
                assert alone or sum(one.memory_bytes for one in running) <= 8 * GIB
            with lock:
                running.remove(mine)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(8) as pool:
        rooms = [Room(Path(folder), Capacity(4, 8 * GIB)) for _ in range(2)]
        assert list(pool.map(run, enumerate(boxes))) == [None] * len(boxes)
        assert [path.name for path in Path(folder).rglob("* *")] == []


_HOLDER = """
import sys, time
from pathlib import Path
from evalpipe.sandbox import Capacity, Limits, Room

cpus = float(sys.argv[2])
with Room(Path(sys.argv[1]), Capacity(4, 8 << 30)).taken(Limits(1, memory_bytes=6 << 30, cpus=cpus)):
    print("inside", flush=True)
    time.sleep(600)
"""


@contextmanager
def held_by_a_process(folder: Path, cpus: float) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a place of so many of 4 processors and 6 of 8 GiB."""
    command = [sys.executable, "-c", _HOLDER, str(folder), str(cpus)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "inside\n"
            yield process
        finally:
            process.kill()


def test_boxes_of_other_processes_count_and_a_killed_one_has_none(tmp_path: Path) -> None:
    entered = threading.Event()

    def enter(room: Room, needs: Limits) -> None:
        with room.taken(needs):
            entered.set()

    with held_by_a_process(tmp_path, cpus=3) as process:
        # What is free now that the other's boxes run is less than the two have together.
        room = Room(tmp_path, Capacity(4, 2 * GIB))
        assert room.capacity == Capacity(4, 8 * GIB)
        enter(room, limits(1))
        assert entered.is_set()
        entered.clear()
        waiting = threading.Thread(target=enter, args=(room, limits(2)))
        waiting.start()
        assert not entered.wait(0.5)
        os.kill(process.pid, signal.SIGKILL)
        assert entered.wait(10)
        waiting.join()
    assert Room(tmp_path, Capacity(4, 2 * GIB)).capacity == Capacity(4, 2 * GIB)


def test_a_large_box_is_not_passed_by_small_ones_for_ever(tmp_path: Path) -> None:
    rooms = [Room(tmp_path, Capacity(4, 8 * GIB)) for _ in range(2)]
    order: list[str] = []

    def enter(room: Room, name: str, cpus: float) -> None:
        with room.taken(limits(cpus)):
            order.append(name)

    with rooms[0].taken(limits(2)):
        large = threading.Thread(target=enter, args=(rooms[1], "large", 4))
        large.start()
        while not list(tmp_path.glob("waiting/*")):
            time.sleep(0.01)
        small = threading.Thread(target=enter, args=(rooms[0], "small", 1))
        small.start()
        while len(list(tmp_path.glob("waiting/*"))) < 2:
            time.sleep(0.01)
        assert order == []
    large.join(10)
    small.join(10)
    assert order == ["large", "small"]


def test_who_waits_is_sent_away_when_the_room_closes_and_later_ones_may_come(tmp_path: Path) -> None:
    room = Room(tmp_path, Capacity(1, GIB))
    with room.taken(limits(1)), ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(room.taken(limits(1)).__enter__) for _ in range(2)]
        with room.closed():
            for one in waiting:
                with pytest.raises(Interrupted):
                    one.result(10)
    with room.taken(limits(1)):
        assert len(list(tmp_path.glob("running/*"))) == 1


def test_a_place_is_given_back_after_a_failure(tmp_path: Path) -> None:
    room = Room(tmp_path, Capacity(1, GIB))
    for _ in range(2):
        with pytest.raises(KeyError), room.taken(limits(1)):
            raise KeyError


def test_an_engine_elsewhere_is_taken_at_its_word() -> None:
    assert capacity_of_engine({"NCPU": 16, "MemTotal": 3 * GIB, "Name": "elsewhere"}) == Capacity(16, 3 * GIB)


def test_of_an_engine_on_this_machine_only_free_memory_counts() -> None:
    here = memory_facts()
    found = capacity_of_engine({"NCPU": 2, "MemTotal": here["MemTotal"], "Name": socket.gethostname()})
    assert 0 < found.memory_bytes < here["MemTotal"]


def test_processes_have_the_machines_processors_and_free_memory(process_sandbox: ProcessSandbox) -> None:
    found, facts = process_sandbox.capacity(), process_sandbox.describe()
    assert found.cpus == facts.cpus
    assert 0 < found.memory_bytes < facts.memory_bytes


@pytest.mark.docker
def test_containers_have_the_engines_processors(docker_sandbox: DockerSandbox) -> None:
    found, facts = docker_sandbox.capacity(), docker_sandbox.describe()
    assert found.cpus == facts.cpus
    assert 0 < found.memory_bytes <= facts.memory_bytes
