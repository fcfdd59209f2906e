"""Reads a reply while it passes by: undoes gzip, splits events, and keeps no more than one of them."""

import json
import zlib
from collections.abc import Iterator

from evalpipe.gateway.usage import ReplyFacts

DOCUMENT_BYTES = 16 * 1024**2
"""A body or event above this is passed on, and its usage is not read."""
_DECODED_AT_ONCE = 1024**2


class EventSplitter:
    """Splits a stream of server-sent events into their data, however it is cut into chunks.

    The rules: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
    """

    def __init__(self) -> None:
        self._open_line = bytearray()
        self._ends_in_return = False
        self._data: list[bytes] = []
        self._size = 0
        self.oversized = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of each event that `chunk` ends."""
        text = b"\r" + chunk if self._ends_in_return else chunk
        # A return at the very end may be half of a line's end.
        self._ends_in_return = text.endswith(b"\r")
        for line in (text[:-1] if self._ends_in_return else text).splitlines(keepends=True):
            content = line.rstrip(b"\r\n")
            self._open_line += content
            if len(content) < len(line):
                yield from self._line(bytes(self._open_line))
                self._open_line.clear()
        if len(self._open_line) > DOCUMENT_BYTES:
            self.oversized = True
            self._open_line.clear()

    def finish(self) -> Iterator[bytes]:
        """The stream is at its end: a return that was kept back was a whole line's end."""
        if self._ends_in_return:
            yield from self.feed(b"\n")

    def _line(self, line: bytes) -> Iterator[bytes]:
        if not line:
            if self._data:
                yield b"\n".join(self._data)
            self._data, self._size = [], 0
        elif line.removeprefix(b"\xef\xbb\xbf").startswith(b"data:"):
            value = line.partition(b":")[2]
            self._size += len(value)
            if self._size > DOCUMENT_BYTES:
                self.oversized = True
            else:
                self._data.append(value.removeprefix(b" "))


class _Inflater:
    """Undoes gzip or zlib, several members in a row included, a bounded piece at a time."""

    def __init__(self) -> None:
        self._engine = zlib.decompressobj(wbits=47)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Raises zlib.error when the bytes are not compressed so."""
        while chunk:
            if self._engine.eof:
                self._engine = zlib.decompressobj(wbits=47)
            yield self._engine.decompress(chunk, _DECODED_AT_ONCE)
            chunk = self._engine.unconsumed_tail or self._engine.unused_data


class ReplyReader:
    """Takes the bytes of a reply as they pass, and knows at the end what it said of itself."""

    def __init__(self, facts: ReplyFacts, content_type: str, content_encoding: str) -> None:
        self.facts = facts
        self._events = EventSplitter() if content_type.lower().startswith("text/event-stream") else None
        self._body = bytearray()
        coding = content_encoding.strip().lower()
        self._inflater = _Inflater() if coding in ("gzip", "x-gzip", "deflate") else None
        if coding not in ("", "identity") and self._inflater is None:
            facts.unread = True

    @property
    def streams(self) -> bool:
        """Whether the reply is a stream of events."""
        return self._events is not None

    def feed(self, chunk: bytes) -> list[bytes]:
        """Read `chunk`; returns it decoded, in pieces."""
        try:
            pieces = list(self._inflater.feed(chunk)) if self._inflater else [chunk]
        except zlib.error:
            self.facts.unread = True
            return [chunk]
        for piece in pieces:
            self._read(piece)
        return pieces

    def finish(self) -> None:
        """The reply is at its end: read a plain body."""
        if self._events is not None:
            for data in self._events.finish():
                self._event(data)
            self.facts.unread = self.facts.unread or self._events.oversized
        else:
            self.facts.ended = True
            self._document(bytes(self._body))

    def _read(self, piece: bytes) -> None:
        if self._events is not None:
            for data in self._events.feed(piece):
                self._event(data)
        elif len(self._body) + len(piece) <= DOCUMENT_BYTES:
            self._body += piece
        else:
            self.facts.unread = True

    def _event(self, data: bytes) -> None:
        if data.strip() == b"[DONE]":
            self.facts.ended = True
        else:
            self._document(data)

    def _document(self, data: bytes) -> None:
        if self.facts.unread and self._events is None:
            return
        try:
            self.facts.read(json.loads(data))
        except (ValueError, RecursionError):
            self.facts.unread = self.facts.unread or bool(data.strip())
