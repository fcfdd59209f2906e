"""Bounded keeping of a program's output: a stream may be endless, what is held of it is not."""


class Tail:
    """Keeps the last `limit` bytes of what it is fed, in at most twice that memory plus one chunk."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._total = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self._total += len(chunk)
        self._kept += chunk
        if len(self._kept) > 2 * self._limit:
            del self._kept[: len(self._kept) - self._limit]

    @property
    def truncated(self) -> bool:
        """Whether the stream was longer than what is kept."""
        return self._total > self._limit

    def content(self) -> bytes:
        """The last bytes of the stream, at most `limit`."""
        return bytes(self._kept[max(0, len(self._kept) - self._limit) :])
