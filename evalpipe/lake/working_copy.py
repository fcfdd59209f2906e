"""A lake in an object store, of which this machine has a copy.

Files are written and read in the local folder, as those of a lake without a store. What is written is noted as waiting
before it is there, and waits until the store has taken it: a run whose store does not answer keeps what it paid for.
Before files are read, one listing of their folder tells what other machines have put there since.
"""

import io
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from evalpipe.lake.copy_index import CopyIndex, KnownFile
from evalpipe.lake.files import write_for_now, writing_atomically
from evalpipe.lake.folder import KeptFile, LakeFolder
from evalpipe.lake.leases import Lease
from evalpipe.lake.object_store import ObjectStore, StoredObject, StoreError, StoreFault

FRESH_S = 30.0
"""So long a listing is believed: what another machine writes meanwhile is seen later. Attempts do not go by it."""

_NOT_ASKED_S = 30.0
"""So long a store that did not answer is not asked to take a file: each time costs seconds of retries."""

_log = logging.getLogger(__name__)


class WorkingCopy(LakeFolder):
    """The copy below `root` of what `store` has. The folders `local` have no object in the store."""

    def __init__(self, root: Path, store: ObjectStore, local: Iterable[str] = ()) -> None:
        super().__init__(root)
        self.store = store
        self._local = frozenset(local)
        self._index = CopyIndex(root / ".store")
        self._looked: dict[str, float] = {}
        self._looking = threading.Lock()
        self._held: dict[str, Lease] = {}
        self._failed_at = -_NOT_ASKED_S

    @property
    def place(self) -> str:
        """The URL of the store."""
        return self.store.url

    @contextmanager
    def writing(self, path: Path) -> Iterator[BinaryIO]:
        """Open a file to write. It is put into the store at the end, or waits for that; see `LakeFolder.writing`."""
        key = self._key(path)
        if self._is_local(key):
            with writing_atomically(path) as file:
                yield file
            return
        with self._index.turn(key):
            waited = self._index.let_wait(key)
            with writing_atomically(path) as file:
                yield file
            lease = self._held.get(key)
            # Another machine may have written since.
            self._try_to_put(key, careful=waited or (lease is not None and lease.is_lost))

    def touch(self, path: Path) -> None:
        """Put a file into the store again: the age of its object is what others go by."""
        key = self._key(path)
        with self._index.turn(key):
            self._index.let_wait(key)
            path.touch()
            self._try_to_put(key, careful=False)

    def look(self, folder: Path) -> None:
        """Make what lies below `folder` what the store has there, unless that was done just now. Raises StoreError."""
        key = self._key(folder)
        if self._is_local(key):
            return
        with self._looking:
            parts = key.split("/")
            above = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
            now = time.monotonic()
            if any(now - self._looked.get(one, -FRESH_S) < FRESH_S for one in above):
                return
            self.put_waiting()
            begun = time.time()
            found = self.store.below(key)
            known = self._index.below(key)
            stale = {name: one for name, one in found.items() if self._is_stale(name, one, known.get(name), begun)}
            self._fetch(stale, known)
            for name in known.keys() - found.keys():
                self._drop(name, known[name], begun)
            self._looked[key] = time.monotonic()

    def refresh(self, path: Path) -> None:
        """Make one file what the store has by now, by one request. Raises StoreError."""
        key = self._key(path)
        with self._index.turn(key):
            known = self._index.known(key)
            if known is not None and known.waits:
                self._put_carefully(key, known)
                return
        begun = time.time()
        found = self.store.state(key)
        if found is None:
            if known is not None:
                self._drop(key, known, begun)
        elif self._is_stale(key, found, known, begun):
            self._fetch({key: found}, {} if known is None else {key: known})

    def folders(self, folder: Path) -> list[str]:
        """The folders right in `folder`, here and in the store. Raises StoreError."""
        return sorted({*super().folders(folder), *self.store.folders(self._key(folder))})

    def get(self, paths: Iterable[Path]) -> None:
        """Fetch those of `paths` that are not here; what the store has not either stays absent. Raises StoreError."""
        missing = [self._key(path) for path in paths if not _has_content(path)]
        for key, data in self.store.read(missing):
            with self._index.turn(key):
                if not _has_content(self._path(key)):
                    write_for_now(self._path(key), data)

    def add(self, folder: Path) -> None:
        """Put those files below `folder` into the store that were never put there."""
        known = self._index.below(self._key(folder))
        for path in sorted(super().files(folder)):
            key = self._key(path)
            if key not in known:
                with self._index.turn(key):
                    self._index.let_wait(key)
                    self._try_to_put(key, careful=True)

    @contextmanager
    def hold(self, path: Path) -> Iterator[None]:
        """Hold a file against every machine that uses this store. Raises StoreError before it is held, not after."""
        key = self._key(path)
        if self._is_local(key):
            yield
            return
        with Lease(self.store, key, self._index.machine) as lease:
            self.refresh(path)
            self._held[key] = lease
            try:
                yield
            finally:
                del self._held[key]

    def files(self, folder: Path) -> Mapping[Path, KeptFile]:
        """Every file below `folder` that the store has, or that waits here. Raises StoreError."""
        key = self._key(folder)
        if self._is_local(key):
            return super().files(folder)
        stored = self.store.below(key)
        kept = {self._path(name): KeptFile(one.size, one.modified) for name, one in stored.items()}
        waiting = set(self.waiting())
        return kept | {path: one for path, one in super().files(folder).items() if path in waiting}

    def pieces(self, path: Path) -> BinaryIO:
        """Open a file to read, from here where it waits, else from the store: a copy here says nothing of that."""
        key = self._key(path)
        known = self._index.known(key)
        if known is not None and known.waits:
            return path.open("rb")
        for _, data in self.store.read([key]):
            return io.BytesIO(data)
        raise FileNotFoundError(path)

    def remove(self, path: Path, unless: Callable[[KeptFile], bool] = lambda _: False) -> None:
        """Remove a file here and in the store, unless it is by now what `unless` looks for. Raises StoreError."""
        key = self._key(path)
        if self._is_local(key):
            super().remove(path, unless)
            return
        with self._index.turn(key):
            found = self.store.state(key)
            if found is not None and unless(KeptFile(found.size, found.modified)):
                return
            self.store.remove([key])
            path.unlink(missing_ok=True)
            self._index.forget(key)

    def check(self) -> None:
        """Put, read, list and remove an object. Raises StoreError for what the store does not do."""
        key = f".checks/{self._index.machine.split()[-1]}"
        self.store.remove([key])
        if not self.store.put_new(key, b"evalpipe doctor") or self.store.put_new(key, b"again"):
            text = f"{self.place} does not make an object only where there is none, which two machines go by"
            raise StoreError(StoreFault.NOT_EXCLUSIVE, text)
        self.store.put(key, b"evalpipe doctor")
        if dict(self.store.read(self.store.below(".checks"))).get(key) != b"evalpipe doctor":
            raise StoreError(StoreFault.DAMAGED, f"{self.place} does not give back what was put there")
        self.store.remove([key])

    def waiting(self) -> list[Path]:
        """Files that the store does not have yet."""
        return [self._path(key) for key in self._index.waiting()]

    def put_all(self, folders: Iterable[str]) -> int:
        """Put what lies below these folders, and was never in the store, there; returns how many files.

        Raises StoreError.
        """
        for name in folders:
            known = self._index.below(name)
            for path in super().files(self.root / name):
                if self._key(path) not in known:
                    self._index.let_wait(self._key(path))
        waited = len(self._index.waiting())
        return waited - len(self.put_waiting())

    def put_waiting(self) -> list[Path]:
        """Put what waits into the store; returns what still waits, because both it and its object were changed.

        Raises StoreError.
        """
        for key in self._index.waiting():
            with self._index.turn(key):
                known = self._index.known(key)
                if known is not None and known.waits:
                    self._put_carefully(key, known)
        return self.waiting()

    def _try_to_put(self, key: str, *, careful: bool) -> None:
        """Put a file that waits, and let it wait when that fails: work that was paid for goes on to its end."""
        if time.monotonic() - self._failed_at < _NOT_ASKED_S:
            return
        try:
            known = self._index.known(key)
            if careful and known is not None:
                self._put_carefully(key, known)
            else:
                self._index.is_object(key, self.store.put(key, self._path(key).read_bytes()))
        except StoreError as error:
            _log.warning("%s waits in %s, with what is written until it is put there: %s", key, self.root, error)
            self._failed_at = time.monotonic()

    def _put_carefully(self, key: str, known: KnownFile) -> None:
        """Put a file that waits, unless its object is another one than the file was made from."""
        if not self._path(key).exists():
            self._index.forget(key)
            return
        data = self._path(key).read_bytes()
        found = self.store.state(key)
        if found is not None and found.etag != known.etag:
            if dict(self.store.read([key])).get(key) != data:
                path = self._path(key)
                text = "%s was changed here and in %s: to take that one delete %s, to keep this one delete the object"
                _log.warning(text, key, self.place, path)
                return
            self._index.is_object(key, found.etag)
            return
        self._index.is_object(key, self.store.put(key, data))

    def _is_stale(self, key: str, found: StoredObject, known: KnownFile | None, begun: float) -> bool:
        """Whether the file is not what a listing, begun at that time, says of the store."""
        if known is None:
            return True
        path = self._path(key)
        # Of another size, or absent, it is what a power cut left of a fetched file.
        whole = path.exists() and path.stat().st_size == found.size
        return not known.waits and (not whole or (known.etag != found.etag and known.changed_at < begun))

    def _fetch(self, wanted: Mapping[str, StoredObject], known: Mapping[str, KnownFile]) -> None:
        for key, data in self.store.read(wanted):
            path = self._path(key)
            with self._index.turn(key):
                if self._index.known(key) != known.get(key):
                    continue  # written meanwhile
                if key not in known and path.exists() and path.read_bytes() != data:
                    self._index.let_wait(key)  # it was here before the lake was in a store
                    continue
                write_for_now(path, data)
                moment = wanted[key].modified.timestamp()
                os.utime(path, (moment, moment))
                self._index.is_object(key, wanted[key].etag)

    def _drop(self, key: str, known: KnownFile, begun: float) -> None:
        """Remove a file whose object is gone: another machine removed it."""
        with self._index.turn(key):
            if not known.waits and known.changed_at < begun and self._index.known(key) == known:
                self._path(key).unlink(missing_ok=True)
                self._index.forget(key)

    def _is_local(self, key: str) -> bool:
        return key.split("/")[0] in self._local

    def _key(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _path(self, key: str) -> Path:
        return self.root / key


def _has_content(path: Path) -> bool:
    """Whether a file is here; a power cut can leave an empty one of what was fetched."""
    return path.exists() and path.stat().st_size > 0
