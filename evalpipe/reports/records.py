"""What a report is made from: one sweep with its tasks, agents, graded results and what came before them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

import pyarrow as pa


class AgentRole(StrEnum):
    """What an agent is there for; the first two are controls of the grading, not contenders."""

    REFERENCE = "reference"
    EMPTY = "empty"
    CONTENDER = "contender"


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task as a reader of the report needs it; `validated_on` are the UTC days of its validation passes.

    `digest` is that of the frozen task: the same task of two revisions has one. `prompts` are by mode.
    `reference_lines` are those that the reference change adds and removes, without its tests. `public` says whether
    anyone can read its repository.
    """

    task_id: str
    title: str
    category: str
    repository: str
    merge_date: date
    provisional: bool
    validated_on: tuple[date, ...]
    digest: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: int = 0
    reference_lines: int | None = None
    public: bool = False


@dataclass(frozen=True, slots=True)
class LeftOutCandidate:
    """A candidate that is no task of the set: why, in a word (a class of its validation), and what shows it."""

    candidate_id: str
    repository: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Prices:
    """How costs are given: measured in US dollars, of which one costs `usd_rate` in `currency`, where `region` says."""

    currency: str = "USD"
    usd_rate: float = 1.0
    region: str = ""


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """An agent of the sweep. A scripted agent replays stored patches and calls no model.

    `training_cutoff` is the last day of which its model may have seen the code; None where nobody says.
    """

    name: str
    role: AgentRole
    scripted: bool
    model: str | None
    scaffold: str | None
    training_cutoff: date | None = None

    @property
    def contends(self) -> bool:
        """Whether it is there to be compared, not to check the grading."""
        return self.role is AgentRole.CONTENDER


@dataclass(frozen=True, slots=True, eq=False)
class SweepResults:
    """All that is known of one sweep.

    `selection_rule` says which of the valid tasks the set has: all of them, or a sample and its seed.
    `graded` has the schema of graded_results and holds the current configuration's rows only. `manifests`
    are keyed by (agent, mode). `comparisons` are the pairs of contenders fixed before the run; a difference
    is always second minus first. `mining` counts candidates by reason, `validation` by class. `patch_lines` are the
    lines that a patch adds and removes, `read_blob` gives the bytes of a patch; both by SHA-256. `lost_patches` are
    those that the lake does not have any more, or not as they were; `transcripts` are those that lie beside the report.
    `smallest_difference` is the smallest one of pass@1 that matters to the decision; None where nobody says.
    `budget_stops` counts, by agent, the samples that were not begun because the sweep's budget had not their cost.
    Raises ValueError when names repeat or point nowhere.
    """

    sweep: str
    decision: str
    task_set: str
    revision: str
    selection_rule: str
    provisional: bool
    tasks: tuple[TaskInfo, ...]
    agents: tuple[AgentInfo, ...]
    samples_per_task: int
    modes: tuple[str, ...]
    weights: Mapping[str, float] | None
    comparisons: tuple[tuple[str, str], ...]
    graded: pa.Table
    manifests: Mapping[tuple[str, str], Mapping[str, Any]]
    mining: tuple[tuple[str, int], ...]
    validation: tuple[tuple[str, int], ...]
    calibration: pa.Table
    prices: Prices = Prices()
    smallest_difference: float | None = None
    left_out: tuple[LeftOutCandidate, ...] = ()
    patch_lines: Mapping[str, int] = field(default_factory=dict)
    lost_patches: frozenset[str] = frozenset()
    budget_stops: Mapping[str, int] = field(default_factory=dict)
    transcripts: frozenset[str] = frozenset()
    read_blob: Callable[[str], bytes] | None = None

    def __post_init__(self) -> None:
        _refuse_repeated("task", (task.task_id for task in self.tasks))
        _refuse_repeated("agent", (agent.name for agent in self.agents))
        _refuse_repeated("prompt mode", self.modes)
        known = {agent.name for agent in self.agents}
        for first, second in self.comparisons:
            for name in (first, second):
                if name not in known:
                    raise ValueError(
                        f"sweep {self.sweep}: the comparison of {first} and {second} names {name}, which is "
                        f"not an agent of this sweep"
                    )
            if first == second:
                raise ValueError(f"sweep {self.sweep}: {first} is compared with itself")
        if self.samples_per_task < 1:
            raise ValueError(f"sweep {self.sweep}: samples per task must be 1 or more")

    @property
    def contenders(self) -> tuple[AgentInfo, ...]:
        return tuple(agent for agent in self.agents if agent.contends)


def is_provisional(results: SweepResults) -> bool:
    """Return whether any task of the sweep was validated on one day only."""
    return results.provisional or any(task.provisional for task in results.tasks)


def _refuse_repeated(kind: str, names: Iterable[str]) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"{kind} named twice in one sweep: {', '.join(repeated)}")
