"""Keeps as many boxes side by side as a machine carries, by their processors and their memory."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import Any

from evalpipe.sandbox.box import Capacity, Limits

_MEMORY_FACTS = Path("/proc/meminfo")
# The kernel and an engine do not count to the byte alike.
_SAME_MEMORY = 0.02


class Room:
    """Lets boxes in while there is room for them; the others wait. Used from any thread."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self._changed = Condition()
        self._cpus = 0.0
        self._memory = 0
        self._boxes = 0

    @contextmanager
    def taken(self, limits: Limits) -> Iterator[None]:
        """Wait until a box with these limits fits beside those that run, and hold its place.

        A box that is too large for the whole machine runs alone.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._fits(limits))
            self._take(limits, 1)
        try:
            yield
        finally:
            with self._changed:
                self._take(limits, -1)
                self._changed.notify_all()

    def _fits(self, limits: Limits) -> bool:
        if not self._boxes:
            return True
        return (
            self._cpus + limits.cpus <= self.capacity.cpus
            and self._memory + limits.memory_bytes <= self.capacity.memory_bytes
        )

    def _take(self, limits: Limits, sign: int) -> None:
        self._boxes += sign
        self._cpus = self._cpus + sign * limits.cpus if self._boxes else 0.0
        self._memory += sign * limits.memory_bytes


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
