"""Where an export stands: a journal beside the file, so that a stopped export goes on and a later one reads little.

Its first line is the state after the last export; every step of a running one adds a line. The file itself changes
only at the end. A line is flushed to disk before the next request, and a torn last line is cut off.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from evalpipe.forges.errors import OutputTaken
from evalpipe.forges.records import Kind, Row, Stream
from evalpipe.forges.walk import Cursor, Step

Write = Callable[[Path, bytes], None]
"""Writes a whole file at once, or leaves the old one."""

_FORMAT: Final = 1
_Key = tuple[str, int]


class Progress:
    """The journal of one export file. `restart_reason` says why earlier work is not continued, empty if it is."""

    def __init__(self, output: Path, identity: Row, write: Write) -> None:
        """Read the journal, or begin one. Raises OutputTaken for a file that no export wrote."""
        self.output = output
        self._state = output.with_name(f"{output.name}.state")
        self._identity = identity
        self._write = write
        self._rows: dict[_Key, Row] = {}
        self._cursors: dict[Stream, Cursor] = {}
        self.restart_reason = ""
        try:
            self._load()
        except _NotContinued as reason:
            self.restart_reason = str(reason)
            self._rows, self._cursors = {}, {}
            self._write(self._state, self._header(None))

    @property
    def rows(self) -> list[Row]:
        """Every line that is known so far, in the order of the file."""
        return [self._rows[key] for key in sorted(self._rows, key=lambda key: (key[1], key[0]))]

    def cursor(self, stream: Stream) -> Cursor:
        """Where to go on with a list."""
        return self._cursors.get(stream, Cursor())

    def record(self, stream: Stream, step: Step) -> int:
        """Keep what a step brought, on disk before this returns. Returns how many lines are other than before."""
        gone = [(kind.value, number) for kind, number in step.completed.gone]
        self._append(
            {"stream": stream, "cursor": step.cursor.to_json(), "rows": list(step.completed.rows), "gone": gone}
        )
        return self._take(stream, step.cursor, step.completed.rows, gone)

    def finish(self) -> None:
        """Write the file, and shrink the journal to one line."""
        data = "".join(f"{_line(row)}\n" for row in self.rows).encode()
        digest = _digest(data)
        if not self.output.exists() or _digest(self.output.read_bytes()) != digest:
            # Said before it is written: a kill between the two must not make the file a stranger.
            self._append({"output": digest})
            self._write(self.output, data)
        self._write(self._state, self._header(digest))

    def _load(self) -> None:
        try:
            content = self._state.read_bytes()
        except FileNotFoundError:
            if self.output.exists():
                raise OutputTaken(
                    f"{self.output} is there, and no export wrote it (there is no {self._state.name} beside it): "
                    f"move it away, or name another file with --output"
                ) from None
            raise _NotContinued("") from None
        whole = content[: content.rfind(b"\n") + 1]
        try:
            header, *steps = [json.loads(line) for line in whole.splitlines()]
            if header["format"] != _FORMAT or header["identity"] != self._identity:
                raise _NotContinued("it was read from another project, or with other rights")
            self._take_file({header["output"], *(step["output"] for step in steps if "output" in step)})
            for name, cursor in header["cursors"].items():
                self._cursors[Stream(name)] = Cursor.from_json(cursor)
            for step in steps:
                if "output" not in step:
                    gone = [(str(kind), int(number)) for kind, number in step["gone"]]
                    self._take(Stream(step["stream"]), Cursor.from_json(step["cursor"]), step["rows"], gone)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _NotContinued(f"{self._state} cannot be read") from None
        if len(whole) < len(content):
            os.truncate(self._state, len(whole))

    def _take_file(self, digests: set[str | None]) -> None:
        """Take the lines of the file, if it is still the one that an export wrote."""
        data = self.output.read_bytes() if self.output.exists() else None
        if (None if data is None else _digest(data)) not in digests:
            raise _NotContinued(f"{self.output} is not as the last export left it")
        for line in (data or b"").splitlines():
            row = json.loads(line)
            self._rows[_key(row)] = row

    def _take(self, stream: Stream, cursor: Cursor, rows: Sequence[Row], gone: list[_Key]) -> int:
        changed = sum(self._rows.pop(key, None) is not None for key in gone)
        for row in rows:
            key = _key(row)
            changed += self._rows.get(key) != row
            self._rows[key] = row
        self._cursors[stream] = cursor
        return changed

    def _header(self, output: str | None) -> bytes:
        cursors = {stream.value: cursor.to_json() for stream, cursor in sorted(self._cursors.items())}
        header = {"format": _FORMAT, "identity": self._identity, "output": output, "cursors": cursors}
        return f"{_line(header)}\n".encode()

    def _append(self, value: Row) -> None:
        with self._state.open("ab") as file:
            file.write(f"{_line(value)}\n".encode())
            file.flush()
            os.fsync(file.fileno())


class _NotContinued(Exception):
    """Earlier work cannot be continued; the text is the reason, empty when there is none."""


def _key(row: Row) -> _Key:
    return Kind(row["kind"]).value, int(row["number"])


def _line(value: Row) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
