"""What is wrong in a configuration: problems that name file, line and field, and the error around them."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `line` counts from 1; `field` is a dotted path such as `runner.name`."""

    file: str
    message: str
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.field, self.message) if part)


class ConfigError(Exception):
    """A configuration cannot be used. `problems` holds everything found; the text has one problem a line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the known word nearest to `word`, or an empty text."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def listed(words: Sequence[str]) -> str:
    """Return words as a readable list for an error, `none` when there are none."""
    return ", ".join(words) if words else "none"
