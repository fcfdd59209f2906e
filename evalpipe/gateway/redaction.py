"""Takes secrets out of bytes by their value, also where they are encoded, and however the bytes are cut."""

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

REDACTED = b"[redacted]"
SHORTEST = 8
"""A shorter value is no secret: taking it out would spoil text that has nothing to do with it."""


class Redactor:
    """Redacts one stream. What may be the beginning of a secret is held back until the next chunk, or `finish`."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = sorted({form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)})
        values.sort(key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, values))) if values else None
        self._held = b""
        self._longest = len(values[0]) if values else 0

    def feed(self, chunk: bytes) -> bytes:
        """The part of the stream that is decided by now, without its secrets."""
        if self._pattern is None:
            return chunk
        text = self._held + chunk
        safe = max(0, len(text) - self._longest + 1)
        done, at = [], 0
        for match in self._pattern.finditer(text):
            if match.start() >= safe:
                break
            done += [text[at : match.start()], REDACTED]
            at = match.end()
        done.append(text[at : max(at, safe)])
        self._held = text[max(at, safe) :]
        return b"".join(done)

    def finish(self) -> bytes:
        """What was held back, without its secrets."""
        rest, self._held = self._held, b""
        return self._pattern.sub(REDACTED, rest) if self._pattern else rest


def _forms(secret: str) -> set[bytes]:
    """A secret as it may stand in a body: plain, in JSON, in a URL, in hexadecimal, in base64 at any offset."""
    plain = secret.encode()
    found = {plain, json.dumps(secret)[1:-1].encode(), quote(secret, safe="").encode()}
    found |= {plain.hex().encode(), plain.hex().upper().encode()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            coded = encode(b"\0" * offset + plain)
            # Letters at both ends mix bits of the secret with those of its neighbours.
            begin, spare = -(-offset * 8 // 6), (offset + len(plain)) % 3
            found.add(coded[begin : len(coded) - (0, 3, 2)[spare]])
    return found
