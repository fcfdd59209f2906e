"""Compares manifests: whether two runs had one configuration, and if not, where they differ."""

import enum
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evalpipe.manifest.canonical import canonical_text

# What tells two runs of one configuration apart.
RUN_FIELDS: Final = ("run_id", "created_at", "probe", "agent_images")


class Missing(enum.Enum):
    """Stands for a field that one side does not have; null is a value."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs, by its dotted path; a side without the field has MISSING."""

    path: str
    left: Any
    right: Any


def configuration_digest(document: dict[str, Any]) -> str:
    """Return the hex SHA-256 of what was configured: two runs of the same configuration share it."""
    configured = {name: value for name, value in document.items() if name not in RUN_FIELDS}
    return hashlib.sha256(canonical_text(configured).encode()).hexdigest()


def differences(left: dict[str, Any], right: dict[str, Any], *, ignore: Sequence[str] = RUN_FIELDS) -> list[Difference]:
    """Return where two manifests differ, field by field in the order of the paths.

    Objects are compared inside, lists as wholes. `ignore` holds paths whose fields, with all below, do not count.
    """
    return list(_compare(left, right, "", frozenset(ignore)))


def describe_differences(found: Iterable[Difference], left_name: str = "left", right_name: str = "right") -> list[str]:
    """Return a line for each difference, fit for a footnote: `agent.model: "a" (left), "b" (right)`."""
    return [
        f"{difference.path}: {_shown(difference.left)} ({left_name}), {_shown(difference.right)} ({right_name})"
        for difference in found
    ]


def _compare(left: dict[str, Any], right: dict[str, Any], prefix: str, ignore: frozenset[str]) -> Iterator[Difference]:
    for key in sorted(left.keys() | right.keys()):
        path = _joined(prefix, key)
        if path in ignore:
            continue
        one, other = left.get(key, MISSING), right.get(key, MISSING)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _compare(one, other, path, ignore)
        elif one is MISSING or other is MISSING or canonical_text(one) != canonical_text(other):
            yield Difference(path, one, other)


def _joined(prefix: str, key: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        return f"{prefix}.{key}" if prefix else key
    return f"{prefix}[{canonical_text(key)}]"


def _shown(value: Any) -> str:
    return "not there" if value is MISSING else canonical_text(value)
