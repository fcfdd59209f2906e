"""One text for one JSON value, so that equal manifests are equal bytes and have equal digests."""

import json
from typing import Any


def normalized(value: Any) -> Any:
    """Return a JSON value in which a whole number is always an integer: 900 and 900.0 are one limit."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: normalized(item) for key, item in value.items()}
    if isinstance(value, list):
        return [normalized(item) for item in value]
    return value


def canonical_text(value: Any) -> str:
    """Return the shortest JSON of a value with sorted keys. Raises ValueError for NaN and infinities."""
    return json.dumps(normalized(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
