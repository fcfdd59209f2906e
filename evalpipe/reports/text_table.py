"""A table of finished text, so that every form of the report says the same."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextTable:
    """Header and rows of plain cells; columns listed in `numeric` are aligned to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()

    def without(self, names: Collection[str]) -> "TextTable":
        """Return the table without the columns of these names, for those that say nothing here."""
        kept = [place for place, name in enumerate(self.header) if name not in names]
        return TextTable(
            header=tuple(self.header[place] for place in kept),
            rows=tuple(tuple(row[place] for place in kept) for row in self.rows),
            numeric=frozenset(new for new, old in enumerate(kept) if old in self.numeric),
        )
