"""How many boxes a machine carries, and that no more of them run at once."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.sandbox import Capacity, DockerSandbox, Limits, ProcessSandbox, Room
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


@given(st.lists(st.tuples(st.sampled_from([0.5, 1, 2, 9]), st.integers(1, 6)), min_size=1, max_size=30))
def test_never_more_runs_than_there_is_room_for(boxes: list[tuple[float, int]]) -> None:
    room, lock = Room(Capacity(4, 8 * GIB)), threading.Lock()
    running: list[Limits] = []

    def run(box: tuple[float, int]) -> None:
        mine = limits(box[0], box[1] * GIB)
        with room.taken(mine):
            with lock:
                running.append(mine)
                alone = len(running) == 1
                assert alone or sum(one.cpus for one in running) <= 4
                assert alone or sum(one.memory_bytes for one in running) <= 8 * GIB
            with lock:
                running.remove(mine)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, boxes)) == [None] * len(boxes)


def test_a_place_is_given_back_after_a_failure() -> None:
    room = Room(Capacity(1, GIB))
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
