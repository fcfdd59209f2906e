"""The streams of a container as one connection: its output comes on it, and its input goes on it."""

import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from evalpipe.sandbox.engine import Engine, engine_faults

_SEND_S = 120
"""An engine that takes nothing for so long is none: its container would else wait for ever."""


def sends_and_reads(engine: Engine) -> bool:
    """Whether two threads may use a connection to the engine at once, which those over TLS and SSH do not allow."""
    return str(engine.api.base_url).startswith(("http+docker://localhost", "http://"))


class Attachment:
    """A connection to a container that is not started yet; `sends` is whether it also has the input.

    Framing of the output:
    https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
    """

    def __init__(self, engine: Engine, container: str, *, sends: bool) -> None:
        streams = {"stdout": 1, "stderr": 1, "stream": 1, **({"stdin": 1} if sends else {})}
        with engine_faults(f"attach to the streams of {container[:12]}"):
            self._handle: Any = engine.api.attach_socket(container, params=streams)
            # The client gives out the reading half of a connection; the socket below it has both.
            self._socket: socket.socket = getattr(self._handle, "_sock", self._handle)
            # A program may be silent for as long as it runs.
            self._socket.settimeout(None)
            if sends:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_S, 0))

    def read(self, size: int) -> bytes:
        """Up to `size` bytes of the framed output; none at the end. Raises OSError."""
        return self._socket.recv(size)

    def send(self, chunks: Iterable[bytes]) -> None:
        """Send input. A container that has ended meanwhile takes no more, which is no fault."""
        with engine_faults("send the files of a box"), suppress(BrokenPipeError, ConnectionResetError):
            for chunk in chunks:
                self._socket.sendall(chunk)

    def close(self) -> None:
        """Let go of the connection; who still reads from it sees its end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._handle.close()
        self._socket.close()  # Which the client still holds, and would close when it is collected.
