"""How many attempts use a provider at one time: half as many when it says that they are too many, then one more.

Each process learns by itself that they are too many; the most is one number for all processes of the machine.
"""

import fcntl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evalpipe.gateway.evidence import CallResult


class AdaptiveLimit:
    """A limit on what runs side by side, lowered on rate limits and raised slowly. Safe to use from any thread.

    The rule is the one of TCP's congestion control (additive increase, multiplicative decrease), with times in place
    of round trips: within `settle_s` seconds of a change, other rate limits are answers to what ran before it.
    """

    def __init__(
        self, ceiling: int, *, settle_s: float = 20, raise_s: float = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ceiling, self._limit, self._running = ceiling, ceiling, 0
        self._settle_s, self._raise_s, self._clock = settle_s, raise_s, clock
        self._changed = clock() - settle_s
        self._free = threading.Condition()

    @property
    def limit(self) -> int:
        """What may run side by side now."""
        with self._free:
            self._raise_when_quiet()
            return self._limit

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait for a place, and hold it."""
        with self._free:
            while self._raise_when_quiet() or self._running >= self._limit:
                # The limit also grows by time alone, which wakes nobody.
                self._free.wait(timeout=1)
            self._running += 1
        try:
            yield
        finally:
            with self._free:
                self._running -= 1
                self._free.notify()

    def report(self, result: CallResult) -> None:
        """A call has ended so."""
        if result is not CallResult.RATE_LIMITED:
            return
        with self._free:
            now = self._clock()
            if now - self._changed >= self._settle_s:
                self._limit, self._changed = max(1, self._limit // 2), now
            else:
                self._changed = max(self._changed, now - self._settle_s / 2)

    def _raise_when_quiet(self) -> bool:
        """Raise the limit by one for each quiet period; always False, to stand in a condition."""
        quiet = int((self._clock() - self._changed) // self._raise_s)
        if quiet > 0 and self._limit < self._ceiling:
            self._limit = min(self._ceiling, self._limit + quiet)
            self._changed += quiet * self._raise_s
        return False


_LOOK_AGAIN_S = 0.2


@contextmanager
def place_among_processes(folder: Path, places: int) -> Iterator[None]:
    """Wait for one of `places` that all processes of this machine share, and hold it; a killed process holds none.

    `folder` has a file for each place. Raises OSError when it cannot be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        for number in range(places):
            with (folder / str(number)).open("wb") as place:
                try:
                    fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
        time.sleep(_LOOK_AGAIN_S)
