"""The output of a running container, taken from the engine as it appears.

The engine holds its program back when nobody reads, so nothing piles up: not in the engine, not on its disk,
not here.
"""

import struct
import threading
import time

from evalpipe.sandbox.attachment import Attachment
from evalpipe.sandbox.box import Watch
from evalpipe.sandbox.errors import EngineFault
from evalpipe.sandbox.streams import Tail

_JOIN_S = 30.0
_HEADER, _CHUNK = 8, 65536
_STDOUT, _STDERR = 1, 2


class OutputReader:
    """Reads both streams of a container in a thread; attached before the start, so that nothing is missed."""

    def __init__(self, attachment: Attachment, keep_bytes: int, watch: Watch | None) -> None:
        self.stdout, self.stderr = Tail(keep_bytes), Tail(keep_bytes)
        self._tails = {_STDOUT: self.stdout, _STDERR: self.stderr}
        self._attachment, self._watch = attachment, watch
        self.last_s = time.monotonic()
        """When something was last written, on the clock of `time.monotonic`."""
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._read, name="output-of-a-box", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the last byte is read; the container has ended. Raises EngineFault."""
        self._thread.join(_JOIN_S)
        if self._thread.is_alive() or self._fault is not None:
            reason = self._fault or "it keeps the connection open"
            raise EngineFault(f"the engine did not hand out all output of a box: {reason}")

    def _read(self) -> None:
        try:
            while header := self._header():
                stream, size = struct.unpack(">BxxxL", header)
                while size > 0:
                    chunk = self._attachment.read(min(size, _CHUNK))
                    if not chunk:
                        raise EOFError("the stream broke off")
                    size -= len(chunk)
                    self.last_s = time.monotonic()
                    self._tails[stream].feed(chunk)
                    if self._watch is not None and stream == _STDOUT:
                        self._watch.saw(chunk)
        # A torn frame, a dead connection.
        except (EOFError, OSError) as error:
            self._fault = error

    def _header(self) -> bytes:
        """Of the next frame; empty at the end."""
        found = b""
        while len(found) < _HEADER:
            try:
                chunk = self._attachment.read(_HEADER - len(found))
            except ConnectionResetError:
                chunk = b""  # So it ends where the container did not take all of its input.
            if not chunk and found:
                raise EOFError("the stream broke off")
            if not chunk:
                break
            found += chunk
        return found
