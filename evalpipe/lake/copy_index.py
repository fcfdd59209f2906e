"""What a working copy knows of its files: what the store has of each, and whether it has to be put there still.

It is an SQLite file beside them, for several processes of one machine use the copy at once.
"""

import fcntl
import hashlib
import os
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_SCHEMA = """
create table if not exists files (
    key text primary key,
    etag text,
    waits integer not null,
    changed_at real not null
) without rowid
"""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """`etag` is that of the object which the file was the last time, None for none; `changed_at` seconds of the epoch.

    A file that `waits` was written here and is not in the store yet, as far as is known.
    """

    etag: str | None
    waits: bool
    changed_at: float


class CopyIndex:
    """The index in `folder`, which is made when it is first written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened = threading.local()

    @property
    def machine(self) -> str:
        """Names this copy among those of other machines, always the same."""
        path = self._folder / "machine"
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            own = path.with_name(f"machine.{secrets.token_hex(4)}")
            own.write_text(secrets.token_hex(8), encoding="ascii")
            with suppress(FileExistsError):  # of two who come first, one
                path.hardlink_to(own)
            own.unlink()
        # The name of the host tells a copy that was moved to another one with all that is in it.
        return f"{socket.gethostname()} {path.read_text(encoding='ascii')}"

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        """Let one thread of one process at a time change a file, what is known of it, and its object."""
        folder = self._folder / "turns"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / hashlib.sha256(key.encode()).hexdigest()[:2]).open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def known(self, key: str) -> KnownFile | None:
        """What is known of one file."""
        with self._open() as database:
            row = database.execute("select etag, waits, changed_at from files where key = ?", (key,)).fetchone()
        return None if row is None else KnownFile(row[0], bool(row[1]), row[2])

    def below(self, folder: str) -> dict[str, KnownFile]:
        """What is known of every file below a folder."""
        query = "select key, etag, waits, changed_at from files where key > ? and key < ?"
        with self._open() as database:
            # "0" is the character after "/".
            rows = database.execute(query, (f"{folder}/", f"{folder}0")).fetchall()
        return {key: KnownFile(etag, bool(waits), changed) for key, etag, waits, changed in rows}

    def waiting(self) -> list[str]:
        """The files that wait, by name."""
        with self._open() as database:
            return [key for (key,) in database.execute("select key from files where waits order by key")]

    def let_wait(self, key: str) -> bool:
        """Note, before a file is written, that it waits; returns whether it did already."""
        query = "insert into files values (?, null, 1, ?) on conflict (key) do update set waits = 1"
        with self._open(durable=True) as database:
            row = database.execute("select waits from files where key = ?", (key,)).fetchone()
            database.execute(query, (key, time.time()))
        return bool(row and row[0])

    def is_object(self, key: str, etag: str) -> None:
        """Note that a file is what the store has under that etag."""
        query = "insert or replace into files values (?, ?, 0, ?)"
        with self._open() as database:
            database.execute(query, (key, etag, time.time()))

    def forget(self, key: str) -> None:
        """Note that there is no such file any more."""
        with self._open() as database:
            database.execute("delete from files where key = ?", (key,))

    @contextmanager
    def _open(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction. One that is not durable may be undone by a power cut, and by nothing else."""
        database = self._connection()
        database.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
        with database:
            yield database

    def _connection(self) -> sqlite3.Connection:
        """The one of this thread, and not of a process that this one was forked from."""
        if getattr(self._opened, "process", None) != os.getpid():
            self._folder.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self._folder / "files.sqlite", timeout=60)
            database.execute("pragma journal_mode = wal")
            with database:
                database.execute(_SCHEMA)
            self._opened.database, self._opened.process = database, os.getpid()
        found: sqlite3.Connection = self._opened.database
        return found
