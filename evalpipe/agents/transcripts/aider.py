"""aider's text: it has no other form. Tokens are rounded in it, so that they stand in its own words only."""

import re

from evalpipe.agents.transcripts.atif import Writer
from evalpipe.agents.transcripts.lines import lines

_VERSION = re.compile(rb"Aider v(\S+)")
_MODEL = re.compile(rb"(?:Main model|Model): (\S+) with ")
_TOKENS = b"Tokens: "
_REPORTS = 100


def read(raw: bytes, writer: Writer) -> None:
    """See `transcript`."""
    reports: list[str] = []
    for line in lines(raw):
        version, model = _VERSION.match(line), _MODEL.match(line)
        writer.version = _text(version[1]) if version else writer.version
        writer.model = _text(model[1]) if model else writer.model
        if line.startswith(_TOKENS) and len(reports) < _REPORTS:
            reports.append(_text(line[:200]))
    writer.reported = {"tokens": reports} if reports else {}
    writer.whole_text(raw)


def _text(found: bytes) -> str:
    return found.decode("utf-8", "replace")
