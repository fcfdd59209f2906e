"""Leases on files of a lake in an object store: what keeps two machines from paying for the same attempt.

A lease is an object that its holder writes anew all the time. One that stays as it is for longer than a lease lasts is
abandoned, by the clock of whoever waits for it: no clocks are compared. It rests on one promise of the store, that of
several who make the same new object one alone succeeds.
"""

import json
import secrets
import threading
import time
from types import TracebackType
from typing import Self

from evalpipe.lake.object_store import ObjectStore, StoreError

LEASES = ".leases"
LEASE_S = 90.0
"""A lease that stays as it is for so long is abandoned. Its holder gives it up after half of that."""
_RENEWED_EVERY_S = 15.0
_ASKED_EVERY_S = 2.0


class Lease:
    """Holds `key` while its context is open; waits for another holder. `machine` names who asks.

    What the same machine left behind is taken over at once: it is to hold a lock of its own on the file. Raises
    StoreError when the store does not answer before the lease is held, and never after.
    """

    def __init__(self, store: ObjectStore, key: str, machine: str) -> None:
        self._store = store
        self._folder = f"{LEASES}/{key}"
        self._machine = machine
        self._number = 0
        self._followed: list[str] = []
        self._heard = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease of {key}", daemon=True)

    @property
    def is_lost(self) -> bool:
        """Whether the lease could not be renewed in time, so that another machine may hold it."""
        return time.monotonic() - self._heard > LEASE_S / 2

    def __enter__(self) -> Self:
        present: dict[str, str] = {}  # mostly it is so, and then it need not be asked
        since = time.monotonic()
        while not (self._is_free(present, since) and self._take(present)):
            time.sleep(_ASKED_EVERY_S * (secrets.randbelow(1000) + 1) / 1000)
            found = self._present()
            if found != present:
                present, since = found, time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if not self.is_lost:
            try:
                # Its own as the last, so that there is always one while others are asked for.
                self._store.remove([*self._followed, self._name])
            except StoreError:
                return  # it is abandoned then, and others wait for its end

    def _take(self, present: dict[str, str]) -> bool:
        """Make the next lease; whether nobody did anything since `present` was seen."""
        self._number = 1 + max((int(name.rpartition("/")[2]) for name in present), default=0)
        self._heard = time.monotonic()
        if not self._store.put_new(self._name, self._content()):
            return False
        others = {name: etag for name, etag in self._present().items() if name != self._name}
        if others == present:
            self._followed = sorted(present)
            return True
        self._store.remove([self._name])
        return False

    def _is_free(self, present: dict[str, str], since: float) -> bool:
        """Whether nobody holds the file, when the leases on it have been as they are since that time."""
        return time.monotonic() - since > LEASE_S or all(map(self._is_own, present))

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_EVERY_S):
            begun = time.monotonic()
            if self.is_lost:
                return  # for good: another machine may hold it by now
            try:
                self._store.put(self._name, self._content())
            except StoreError:
                continue
            self._heard = begun

    def _present(self) -> dict[str, str]:
        return {name: one.etag for name, one in self._store.below(self._folder).items()}

    def _is_own(self, name: str) -> bool:
        """Whether a lease is of this machine, which has ended what held it."""
        return any(json.loads(data)["machine"] == self._machine for _, data in self._store.read([name]))

    @property
    def _name(self) -> str:
        return f"{self._folder}/{self._number:09d}"

    def _content(self) -> bytes:
        # Another one each time, for an etag can be that of the content.
        return json.dumps({"machine": self._machine, "said": secrets.token_hex(8)}).encode()
