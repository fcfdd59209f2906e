"""The output of a running container, taken from the engine as it appears.

The engine holds its program back when nobody reads, so nothing piles up: not in the engine, not on its disk,
not here.
"""

import struct
import threading
import time

import urllib3

from evalpipe.sandbox.box import Watch
from evalpipe.sandbox.engine import Engine
from evalpipe.sandbox.errors import EngineFault
from evalpipe.sandbox.streams import Tail

_JOIN_S = 30.0
_CHUNK = 65536
_STDOUT, _STDERR = 1, 2


class OutputReader:
    """Reads both streams of a container in a thread; attached before the start, so that nothing is missed.

    Raises EngineFault, EngineUnavailable, Interrupted.
    """

    def __init__(self, engine: Engine, container: str, keep_bytes: int, watch: Watch | None) -> None:
        self.stdout, self.stderr = Tail(keep_bytes), Tail(keep_bytes)
        self._tails = {_STDOUT: self.stdout, _STDERR: self.stderr}
        self._watch = watch
        self._response = engine.attach(container)
        self.last_s = time.monotonic()
        """When something was last written, on the clock of `time.monotonic`."""
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._read, name=f"output-{container[:12]}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the last byte is read; the container has ended."""
        self._thread.join(_JOIN_S)
        if self._thread.is_alive() or self._fault is not None:
            reason = self._fault or "it keeps the connection open"
            raise EngineFault(f"the engine did not hand out all output of a box: {reason}")

    def close(self) -> None:
        """Let go of the connection; a thread that still reads from it does so itself, when the engine lets
        it.
        """
        if not self._thread.is_alive():
            self._response.close()

    def _read(self) -> None:
        try:
            while header := self._response.raw.read(8):
                stream, size = struct.unpack(">BxxxL", header)
                while size > 0:
                    chunk = self._response.raw.read(min(size, _CHUNK))
                    if not chunk:
                        raise EOFError("the stream broke off")
                    size -= len(chunk)
                    self.last_s = time.monotonic()
                    self._tails[stream].feed(chunk)
                    if self._watch is not None and stream == _STDOUT:
                        self._watch.saw(chunk)
        # A torn header, a torn frame, a dead connection, a response closed by the thread that gave up on the
        # run.
        except (struct.error, EOFError, ValueError, OSError, urllib3.exceptions.HTTPError) as error:
            self._fault = error
