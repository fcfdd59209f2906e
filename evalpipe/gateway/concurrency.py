"""How many attempts use a provider at one time: half as many when it says that they are too many, then one more.

The limit and the places are files of one folder, so that all processes of the machine which use it share both.
"""

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from evalpipe.gateway.evidence import CallResult

_LOOK_AGAIN_S = 0.2
_LIMIT, _TURN = "limit.json", "turn"


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit, and when it was last changed (seconds since the epoch)."""

    value: int
    changed: float


class ProviderPlaces:
    """The places of a provider, and a limit on them that rate limits lower and time raises. From any thread or process.

    The rule is the one of TCP's congestion control (additive increase, multiplicative decrease), with times in place
    of round trips: within `settle_s` seconds of a change, other rate limits are answers to what ran before it. Each
    `raise_s` seconds without one raise the limit by one, up to `ceiling`.
    """

    def __init__(
        self,
        folder: Path,
        ceiling: int,
        *,
        settle_s: float = 20,
        raise_s: float = 60,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`folder` holds the limit and a file for each place. Raises OSError when it cannot be used."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._ceiling = folder, ceiling
        self._settle_s, self._raise_s, self._clock = settle_s, raise_s, clock

    @property
    def limit(self) -> int:
        """What may run side by side now."""
        return self._read().value

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait for a place, and hold it; a killed process holds none."""
        with ExitStack() as held:
            while not self._take(held):
                time.sleep(_LOOK_AGAIN_S)
            yield

    def report(self, result: CallResult) -> None:
        """A call has ended so."""
        if result is not CallResult.RATE_LIMITED:
            return
        with self._turn():
            limit, now = self._read(), self._clock()
            if now - limit.changed >= self._settle_s:
                self._write(_Limit(max(1, limit.value // 2), now))
            else:
                self._write(_Limit(limit.value, max(limit.changed, now - self._settle_s / 2)))

    def _take(self, held: ExitStack) -> bool:
        """Hold a free place, unless as many are taken as the limit allows."""
        with self._turn():
            places = [self._lock(number) for number in range(self._ceiling)]
            free = [place for place in places if place is not None]
            mine = free[0] if len(places) - len(free) < self.limit else None
            for place in free:
                if place is not mine:
                    place.close()
            if mine is not None:
                held.enter_context(mine)
            return mine is not None

    def _lock(self, number: int) -> BinaryIO | None:
        """The file of a place, locked; None when another has it."""
        place = (self._folder / str(number)).open("wb")
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            place.close()
            return None
        return place

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Only one looks and takes at a time."""
        with (self._folder / _TURN).open("wb") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield

    def _read(self) -> _Limit:
        try:
            found = json.loads((self._folder / _LIMIT).read_bytes())
        except FileNotFoundError:
            return _Limit(self._ceiling, 0.0)
        now = self._clock()
        value, changed = min(found["limit"], self._ceiling), min(found["changed"], now)
        raised = min(int((now - changed) // self._raise_s), self._ceiling - value)
        return _Limit(value + raised, changed + raised * self._raise_s)

    def _write(self, limit: _Limit) -> None:
        draft = self._folder / f"{_LIMIT}.new"
        draft.write_text(json.dumps({"limit": limit.value, "changed": limit.changed}), encoding="ascii")
        draft.replace(self._folder / _LIMIT)  # At once: a killed process leaves no half of it.
