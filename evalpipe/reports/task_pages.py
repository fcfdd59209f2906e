"""The page of each task: its samples with verdict, evidence and patch, in a file that stays small enough to open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis
from evalpipe.reports.records import AgentInfo, AgentRole, SweepResults, TaskInfo

# All patches together; 500 tasks and 10 agents then stay far below 20 MB.
_PATCH_CHARACTERS = 6_000_000
_LONGEST_PATCH = 20_000
_COLUMNS = [
    *("agent", "task_id", "sample", "prompt_mode", "outcome", "verdict", "resolved", "counts", "detail", "integrity"),
    *("integrity_reasons", "unmet_tests", "attempt_seconds", "attempt_id", "patch_sha256"),
]


@dataclass(frozen=True, slots=True)
class TaskSection:
    """A task with the rows of graded_results of its samples, in the order of agents, modes and samples.

    Each row has its `patch` as text, bounded. `controls` counts the samples of controls that ended as they must; they
    are not among `samples`.
    """

    info: TaskInfo
    samples: tuple[Mapping[str, Any], ...]
    solved: int
    graded: int
    controls: int


def task_sections(analysis: Analysis) -> list[TaskSection]:
    """Return the page of every task, in the order of the set."""
    results = analysis.results
    by_task: dict[str, list[dict[str, Any]]] = {task.task_id: [] for task in results.tasks}
    for row in analysis.samples.chosen.select(_COLUMNS).to_pylist():
        by_task[row["task_id"]].append(row)
    sections = [_task_section(task, by_task[task.task_id], results.agents) for task in results.tasks]
    _add_patches(results, sections)
    return sections


def _add_patches(results: SweepResults, sections: Sequence[TaskSection]) -> None:
    rows: list[Any] = [row for section in sections for row in section.samples]
    limit = min(_LONGEST_PATCH, _PATCH_CHARACTERS // max(1, len(rows)))
    for row in rows:
        digest = row["patch_sha256"]
        text = ""
        if digest and results.read_blob and limit:
            # Shown to a reader only: what is graded stays bytes.
            text = results.read_blob(digest)[: 4 * limit].decode("utf-8", "replace")
        row["patch"] = wording.plain_block(text, limit) if text else ""


def _task_section(task: TaskInfo, rows: Sequence[Mapping[str, Any]], agents: Sequence[AgentInfo]) -> TaskSection:
    place = {agent.name: number for number, agent in enumerate(agents)}
    by_name = {agent.name: agent for agent in agents}
    shown = [row for row in rows if not _as_it_must_be(row, by_name[row["agent"]])]
    counted = [row for row in rows if by_name[row["agent"]].contends and row["counts"]]
    return TaskSection(
        info=task,
        samples=tuple(
            sorted(shown, key=lambda row: (place[row["agent"]], row["prompt_mode"], len(row["sample"]), row["sample"]))
        ),
        solved=sum(row["resolved"] for row in counted),
        graded=len(counted),
        controls=len(rows) - len(shown),
    )


def _as_it_must_be(row: Mapping[str, Any], agent: AgentInfo) -> bool:
    if agent.contends or not row["counts"]:
        return False
    return bool(row["resolved"]) == (agent.role is AgentRole.REFERENCE)
