"""Keeps as many boxes side by side as a machine carries, by their processors and their memory.

The boxes of all processes that share a folder are counted together, as those of a workspace's runs are.
"""

import fcntl
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalpipe.sandbox.box import Capacity, Limits
from evalpipe.sandbox.errors import Interrupted, host_faults

_MEMORY_FACTS = Path("/proc/meminfo")
# The kernel and an engine do not count to the byte alike.
_SAME_MEMORY = 0.02
_LOOK_AGAIN_S = 0.2


@dataclass(frozen=True, slots=True)
class _Place:
    """What a box takes, and its turn: boxes that came before it have smaller numbers."""

    turn: int
    cpus: float
    memory_bytes: int

    @property
    def file_name(self) -> str:
        return f"{self.turn} {self.cpus} {self.memory_bytes}"


class Room:
    """Lets boxes in while there is room for them; the others wait for their turn. Used from any thread.

    Each box has a file in `folder` that its process holds locked, so that a killed process takes no room. `capacity` is
    what is free now; where boxes of other processes run, it is what was free before the first of them.

    Raises DiskFull and EngineFault when the folder cannot be used.
    """

    def __init__(self, folder: Path, capacity: Capacity) -> None:
        self._lock, self._known = folder / "lock", folder / "capacity"
        self._running, self._waiting = folder / "running", folder / "waiting"
        self._line = threading.Lock()
        self._somebody_left = threading.Event()
        self._closed = False
        with host_faults(f"count boxes in {folder}"):
            for needed in (self._running, self._waiting):
                needed.mkdir(parents=True, exist_ok=True)
            with self._locked():
                self.capacity = self._common_capacity(capacity)

    @contextmanager
    def taken(self, limits: Limits) -> Iterator[None]:
        """Wait until a box with these limits fits beside those that run, and hold its place.

        A box that is too large for the whole machine runs alone. Raises Interrupted when `closed` ends the wait.
        """
        with ExitStack() as stack:
            # One thread of a process at a time: so processes take turns, however many threads wait in each.
            with self._line:
                place = stack.enter_context(self._in_line(limits))
                while not self._lets_in(place):
                    self._somebody_left.wait(_LOOK_AGAIN_S)
                    self._somebody_left.clear()
            yield

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Send away the boxes of this process that wait for their turn, and those that come meanwhile."""
        self._closed = True
        try:
            yield
        finally:
            self._closed = False

    @contextmanager
    def _in_line(self, limits: Limits) -> Iterator[_Place]:
        with host_faults("take a place among the boxes"), self._locked():
            taken = [*_held(self._running), *_held(self._waiting)]
            place = _Place(max((one.turn for one in taken), default=0) + 1, limits.cpus, limits.memory_bytes)
            file = (self._waiting / place.file_name).open("wb")
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield place
        finally:
            for folder in (self._waiting, self._running):
                (folder / place.file_name).unlink(missing_ok=True)
            file.close()
            self._somebody_left.set()

    def _lets_in(self, place: _Place) -> bool:
        if self._closed:
            raise Interrupted("the run was stopped while a box waited for its place")
        with host_faults("look for a place among the boxes"), self._locked():
            is_next = all(one.turn >= place.turn for one in _held(self._waiting))
            if not (is_next and self._has_room_for(place, _held(self._running))):
                return False
            (self._waiting / place.file_name).rename(self._running / place.file_name)
            return True

    def _has_room_for(self, place: _Place, running: Sequence[_Place]) -> bool:
        boxes = [place, *running]
        return not running or (
            sum(one.cpus for one in boxes) <= self.capacity.cpus
            and sum(one.memory_bytes for one in boxes) <= self.capacity.memory_bytes
        )

    def _common_capacity(self, capacity: Capacity) -> Capacity:
        if _held(self._running) and self._known.exists():
            cpus, memory_bytes = self._known.read_text().split()
            return Capacity(float(cpus), int(memory_bytes))
        self._known.write_text(f"{capacity.cpus} {capacity.memory_bytes}")
        return capacity

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _held(folder: Path) -> list[_Place]:
    """The places of processes that live; what others left is removed."""
    found = []
    for path in folder.iterdir():
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        except FileNotFoundError:
            continue  # its box has just ended
        except BlockingIOError:
            turn, cpus, memory_bytes = path.name.split()
            found.append(_Place(int(turn), float(cpus), int(memory_bytes)))
    return found


def capacity_of_host(cpus: int, total_memory: int) -> Capacity:
    """The capacity of this machine: memory is what the kernel counts as free, where it says so."""
    return Capacity(cpus, memory_facts().get("MemAvailable", total_memory))


def capacity_of_engine(facts: dict[str, Any]) -> Capacity:
    """The capacity of an engine by its own facts (`GET /info`).

    An engine reports its whole memory only. When it is that of this machine, what is free of it is known too.
    """
    total = int(facts["MemTotal"])
    here = memory_facts()
    is_here = facts.get("Name") == socket.gethostname() and (
        abs(here.get("MemTotal", 0) - total) <= _SAME_MEMORY * total
    )
    return Capacity(int(facts["NCPU"]), here.get("MemAvailable", total) if is_here else total)


def memory_facts() -> dict[str, int]:
    """What the kernel says of this machine's memory, in bytes; empty where there is no /proc."""
    try:
        lines = _MEMORY_FACTS.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.split() for line in lines)
    return {name.rstrip(":"): int(value) * 1024 for name, value, *_ in pairs}
