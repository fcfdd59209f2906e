"""How often one task was solved: what every other module here takes in.

The task is the unit of the analysis, so samples are collapsed to one count per task before anything is
computed, and no function of this folder sees single samples.
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class TaskCount:
    """`passes` of the `samples` graded samples of one task; raises ValueError when they cannot be that."""

    passes: int
    samples: int

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"a task needs at least one graded sample, got {self.samples}")
        if not 0 <= self.passes <= self.samples:
            raise ValueError(f"{self.passes} passes of {self.samples} samples is not a count")

    @property
    def rate(self) -> float:
        """The share of samples that passed, 0 to 1."""
        return self.passes / self.samples

    @property
    def exact_rate(self) -> Fraction:
        """`rate` without rounding, for comparisons that have to be exact."""
        return Fraction(self.passes, self.samples)
