"""Whole bodies of an attempt on disk, compressed and without secrets, and their way back for a replay."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evalpipe.gateway.evidence import Call, CallResult
from evalpipe.gateway.redaction import Redactor

CALLS = "calls.jsonl"
"""The journal of an attempt: a line when a call starts, and another with the same number when it has ended."""
REPLAY_CHUNK = 64 * 1024


class BodyRecorder:
    """Writes one body while it passes."""

    def __init__(self, path: Path, secrets: Iterable[str]) -> None:
        self._file = gzip.open(path, "wb", compresslevel=1)  # noqa: SIM115 - open while the body passes
        self._redactor = Redactor(secrets)

    def write(self, chunk: bytes) -> None:
        self._file.write(self._redactor.feed(chunk))

    def close(self) -> None:
        self._file.write(self._redactor.finish())
        self._file.close()


def request_path(folder: Path, number: int) -> Path:
    """Where the body of the request of a call is."""
    return folder / f"{number:05d}.request.gz"


def reply_path(folder: Path, number: int) -> Path:
    """Where the body of the reply to a call is, decoded."""
    return folder / f"{number:05d}.reply.gz"


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply as an agent once had it."""

    call: Call
    body: Path

    @property
    def is_cut_off(self) -> bool:
        """Whether the reply ended before it was whole."""
        return self.call.result in (CallResult.DROPPED, CallResult.SILENT)

    def content_type(self) -> str:
        """Of the recorded body: JSON, or a stream of events."""
        with gzip.open(self.body) as file:
            return "application/json" if re.match(rb"\s*[\[{]", file.read(64)) else "text/event-stream"

    def chunks(self) -> Iterator[bytes]:
        """The body in pieces. Raises OSError."""
        with gzip.open(self.body) as file:
            while chunk := file.read(REPLAY_CHUNK):
                yield chunk


class Recording:
    """The recorded replies of one attempt, handed out in their order for each path.

    By path and order, not by content: requests carry dates and random names, so no two are alike.
    """

    def __init__(self, folder: Path) -> None:
        """Raises OSError when `folder` holds no recording."""
        self._waiting: dict[str, list[RecordedReply]] = {}
        ended: dict[int, Call] = {}
        for line in (folder / CALLS).read_bytes().split(b"\n")[:-1]:
            call = Call.from_document(json.loads(line))
            if call.status is not None:
                ended[call.number] = call
        for number in sorted(ended):
            body = reply_path(folder, number)
            if body.is_file():
                self._waiting.setdefault(ended[number].path, []).append(RecordedReply(ended[number], body))

    def take(self, path: str) -> RecordedReply | None:
        """The next reply to a request for `path`; None when there is no other."""
        waiting = self._waiting.get(path)
        return waiting.pop(0) if waiting else None
