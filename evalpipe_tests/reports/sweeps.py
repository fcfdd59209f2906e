"""Builds sweeps whose every number is chosen: the tests say who passed what, this fills in the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from evalpipe.lake.schemas import CALIBRATION, GRADED_RESULTS
from evalpipe.reports.records import AgentInfo, AgentRole, SweepResults, TaskInfo

_GRADED_AT = datetime(2026, 3, 2, 12, tzinfo=UTC)
CATEGORIES = ("single_file_repair", "multi_file_feature", "dependency_chore")


def task(number: int, **changes: Any) -> TaskInfo:
    plain = TaskInfo(
        task_id=f"demo-{number:03}",
        title=f"Repair of the {number}th fault",
        category=CATEGORIES[number % len(CATEGORIES)],
        repository="demo",
        merge_date=date(2025, 1 + number % 12, 3),
        provisional=False,
        validated_on=(date(2026, 3, 1), date(2026, 3, 2)),
    )
    return replace(plain, **changes)


def agent(name: str, role: AgentRole = AgentRole.CONTENDER, *, scripted: bool = False) -> AgentInfo:
    return AgentInfo(name=name, role=role, scripted=scripted, model=None, scaffold=None)


REFERENCE = agent("reference", AgentRole.REFERENCE, scripted=True)
EMPTY = agent("empty", AgentRole.EMPTY, scripted=True)


def graded_row(name: str, task_id: str, sample: str, *, resolved: bool, **changes: Any) -> dict[str, Any]:
    unmet = [
        {
            "test_id": f"tests/test_{task_id}.py::test_repaired",
            "expected_in": "fail_to_pass",
            "outcome": "failed",
            "message": "AssertionError: assert 2 == 3",
        }
    ]
    row = {
        "sweep": "2026q1",
        "agent": name,
        "configuration": "c" * 64,
        "task_id": task_id,
        "sample": sample,
        "prompt_mode": sample.rsplit("-", 1)[0],
        "attempt": 1,
        "attempt_id": f"{name}-{task_id}-{sample}-1",
        "outcome": "finished",
        "counts": True,
        "attempt_seconds": 12.5,
        **_grading(resolved=resolved),
        "unmet_tests": [] if resolved else unmet,
    }
    return {**row, **changes}


def _grading(*, resolved: bool) -> dict[str, Any]:
    return {
        "verdict": "resolved" if resolved else "fail_to_pass_failed",
        "resolved": resolved,
        "integrity": "clean",
        "integrity_reasons": [],
        "fail_to_pass_passed": int(resolved),
        "fail_to_pass_total": 1,
        "pass_to_pass_passed": 20,
        "pass_to_pass_total": 20,
        "unmet_tests": [],
        "detail": "",
        "ignored_paths": [],
        "grading_seconds": 1.5,
        "graded_at": _GRADED_AT,
    }


def rows_of(name: str, passes: Sequence[int], samples: int, mode: str = "original") -> list[dict[str, Any]]:
    """The first `passes[i]` of the samples of task i resolve it."""
    return [
        graded_row(name, task(number).task_id, f"{mode}-{sample}", resolved=sample <= count)
        for number, count in enumerate(passes)
        for sample in range(1, samples + 1)
    ]


def calibration(task_ids: Sequence[str], wrong: Sequence[tuple[str, str]] = ()) -> pa.Table:
    rows = []
    for task_id in task_ids:
        for patch in ("reference", "empty"):
            for repetition in range(1, 4):
                passes = (patch == "reference") != ((task_id, patch) in wrong)
                rows.append(
                    {
                        "task_set": "demo-2026q1",
                        "revision": "r" * 64,
                        "task_id": task_id,
                        "patch": patch,
                        "repetition": repetition,
                        **_grading(resolved=passes),
                    }
                )
    return pa.Table.from_pylist(rows, schema=CALIBRATION)


def manifest(name: str, mode: str = "original", **environment: Any) -> dict[str, Any]:
    return {
        "run_id": f"run-{name}",
        "created_at": "2026-03-02T12:00:00+00:00",
        "task_set": {"name": "demo-2026q1", "prompt_mode": mode},
        "agent": {"name": name, "model": "none", "max_turns": 40},
        "environment": {"network": "none", "memory_limit": 4294967296, **environment},
    }


@dataclass
class SweepBuilder:
    """Passes per task of each contender; everything else has a working default that a test may change."""

    passes: Mapping[str, Sequence[int]]
    samples: int = 4
    agents: Sequence[AgentInfo] | None = None
    comparisons: Sequence[tuple[str, str]] | None = None
    weights: Mapping[str, float] | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)

    def build(self) -> SweepResults:
        names = list(self.passes)
        number = max((len(passes) for passes in self.passes.values()), default=0)
        tasks = tuple(task(index) for index in range(number))
        contenders = tuple(self.agents) if self.agents is not None else tuple(agent(name) for name in names)
        rows = [row for name in names for row in rows_of(name, self.passes[name], self.samples)]
        rows += rows_of("reference", [self.samples] * number, self.samples)
        rows += rows_of("empty", [0] * number, self.samples)
        pairs = (
            [(first, second) for index, first in enumerate(names) for second in names[index + 1 :]]
            if self.comparisons is None
            else self.comparisons
        )
        results = SweepResults(
            sweep="2026q1",
            decision="Which agent do we licence for the platform team?",
            task_set="demo-2026q1",
            revision="r" * 64,
            selection_rule="sample of 20, seed 7",
            provisional=False,
            tasks=tasks,
            agents=(*contenders, REFERENCE, EMPTY),
            samples_per_task=self.samples,
            modes=("original",),
            weights=self.weights,
            comparisons=tuple(pairs),
            graded=graded_table(rows + self.rows),
            manifests={(info.name, "original"): manifest(info.name) for info in (*contenders, REFERENCE, EMPTY)},
            mining=(("kept", number + 3), ("documentation_only", 7), ("test_only", 4)),
            validation=(("valid", number), ("no_signal", 2), ("flaky", 1)),
            calibration=calibration([info.task_id for info in tasks]),
        )
        return replace(results, **self.changes)


def graded_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=GRADED_RESULTS)


# The paired set of the statistics reference: 18 tasks, 4 samples, p = .00390625.
STEADY = [4, 4, 3, 0, 1, 2, 4, 0, 0, 3, 4, 2, 1, 0, 4, 3, 2, 0]
BROAD = [4, 4, 4, 1, 2, 2, 4, 0, 1, 4, 4, 4, 1, 0, 4, 4, 3, 1]


def two_agents(**changes: Any) -> SweepResults:
    return SweepBuilder({"steady": STEADY, "broad": BROAD}, changes=changes).build()
