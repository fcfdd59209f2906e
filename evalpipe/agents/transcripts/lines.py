"""Reads JSON out of bytes that anything may have been written between: line by line, and never more than a line."""

import json
from collections.abc import Iterator
from typing import Any

LINE_BYTES = 8 * 1024**2
"""Longer lines are passed over: they would grow the memory by many times their size."""


def lines(raw: bytes) -> Iterator[bytes]:
    """The lines of `raw`, without a copy of the whole; too long ones are left out."""
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        if end - start <= LINE_BYTES:
            yield raw[start:end]
        start = end + 1


def documents(raw: bytes) -> Iterator[dict[str, Any]]:
    """Each line that is an object of JSON; whatever else stands between is passed over."""
    for line in lines(raw):
        if line.lstrip()[:1] == b"{":
            found = parsed(line)
            if isinstance(found, dict):
                yield found


def parsed(text: bytes) -> object:
    """The JSON of a text, or None. Bytes that are not UTF-8 are shown as replaced; NaN is None."""
    try:
        return json.loads(text.decode("utf-8", "replace"), parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None


def part(value: object, *names: str) -> dict[str, Any]:
    """The object below `names`; an empty one when it is missing or is something else."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def parts(value: object) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text(value: object) -> str | None:
    """A text, when it is one and not empty."""
    return value if isinstance(value, str) and value else None
