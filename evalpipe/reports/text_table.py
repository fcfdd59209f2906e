"""A table of finished text, so that every form of the report says the same."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextTable:
    """Header and rows of plain cells; columns listed in `numeric` are aligned to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
