"""The page of each task: its samples with verdict, evidence and patch, in a file that stays small enough to open."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import escape

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis
from evalpipe.reports.records import AgentInfo, AgentRole, SweepResults, TaskInfo
from evalpipe.reports.samples import sample_keys

# A report of 500 tasks and 10 agents stays below 20 MB and opens at once, whatever their attempts left: so many samples
# have a place on the pages of all tasks together, and so many characters of evidence and patches.
_SAMPLES_SHOWN = 24_000
_TEXT_CHARACTERS = 6_000_000
_LONGEST_TEXT = 20_000
_UNMET_TESTS_SHOWN = 8
_LONGEST_MESSAGE = 600
_MARKUP_OF_TEST = 100
_COLUMNS = [
    *("agent", "task_id", "sample", "prompt_mode", "outcome", "verdict", "resolved", "counts", "detail", "integrity"),
    *("integrity_reasons", "unmet_tests", "attempt_seconds", "attempt_id", "patch_sha256", "transcript_sha256"),
]


@dataclass(frozen=True, slots=True)
class TaskSection:
    """A task with the rows of graded_results of its samples, in the order of agents, modes and samples.

    Each row has its `tests` that were not met and its `patch` as bounded text, and `more_tests` that are not shown.
    `controls` counts the samples of controls that ended as they must; they are not among `samples`. `more` samples have
    no place on the page.
    """

    info: TaskInfo
    samples: tuple[Mapping[str, Any], ...]
    solved: int
    graded: int
    controls: int
    more: int


def transcript_file(digest: str) -> str:
    """Return where a transcript lies beside the report."""
    return f"transcripts/{digest[:20]}.txt"


def task_sections(analysis: Analysis) -> list[TaskSection]:
    """Return the page of every task, in the order of the set."""
    results = analysis.results
    shown = _with_a_place(analysis)
    by_name = {agent.name: agent for agent in results.agents}
    rows = [row for row in shown.to_pylist() if not _as_it_must_be(row, by_name[row["agent"]])]
    by_task: dict[str, list[dict[str, Any]]] = {task.task_id: [] for task in results.tasks}
    for row in rows:
        _fill(row, results, min(_LONGEST_TEXT, _TEXT_CHARACTERS // len(rows)))
        by_task[row["task_id"]].append(row)
    more = _counted(analysis.samples.chosen) - _counted(shown)
    return [_task_section(task, analysis, by_task[task.task_id], more[task.task_id]) for task in results.tasks]


def _counted(rows: pa.Table) -> Counter[str]:
    numbers = rows.group_by("task_id").aggregate([([], "count_all")])
    return Counter({row["task_id"]: row["count_all"] for row in numbers.to_pylist()})


def _with_a_place(analysis: Analysis) -> pa.Table:
    """The first samples of each agent at each task: as many of each as have a place together."""
    results, chosen = analysis.results, analysis.samples.chosen.select(_COLUMNS)
    number = max(1, _SAMPLES_SHOWN // max(1, len(results.tasks) * len(results.agents) * len(results.modes)))
    if number >= results.samples_per_task:
        return chosen
    keys = [key for mode in results.modes for key in sample_keys(mode, number)]
    return chosen.filter(pc.is_in(chosen["sample"], value_set=pa.array(keys, pa.string())))


def _fill(row: dict[str, Any], results: SweepResults, room: int) -> None:
    """Add the tests and the patch that a reader sees, in so many characters of the page with their markup.

    The tests go first.
    """
    row["detail"] = _cut(wording.plain(row["detail"], 300), room)
    room -= len(escape(row["detail"]))
    unmet = row.pop("unmet_tests")
    tests: list[dict[str, str]] = []
    for test in unmet[:_UNMET_TESTS_SHOWN]:
        test_id = wording.plain(test["test_id"], 300)
        room -= len(escape(test_id)) + _MARKUP_OF_TEST
        if tests and room < 0:
            break
        message = _cut(wording.plain_block(test["message"], _LONGEST_MESSAGE), room)
        room -= len(escape(message))
        tests.append({**test, "test_id": test_id, "message": message})
    row |= {"tests": tests, "more_tests": len(unmet) - len(tests), "patch": "", "patch_is_cut": False}
    transcript, digest = row["transcript_sha256"], row["patch_sha256"]
    row["transcript"] = transcript_file(transcript) if transcript in results.transcripts else ""
    row["patch_lost"] = digest in results.lost_patches
    if digest and results.read_blob and room > 0 and not row["patch_lost"]:
        # Shown to a reader only: what is graded stays bytes.
        whole = results.read_blob(digest)
        text = whole[: 4 * room].decode("utf-8", "replace")
        row["patch"] = _cut(wording.plain_block(text, room), room)
        row["patch_is_cut"] = len(row["patch"]) < len(text) or len(whole) > 4 * room


def _cut(text: str, room: int) -> str:
    """The beginning of a text that takes at most `room` characters of a page, where markup takes several."""
    while (taken := len(escape(text))) > max(0, room):
        text = text[: max(0, min(len(text) - 1, len(text) * room // taken))]
    return text


def _task_section(task: TaskInfo, analysis: Analysis, rows: Sequence[Mapping[str, Any]], more: int) -> TaskSection:
    results, tallies = analysis.results, analysis.samples.tallies
    place = {agent.name: number for number, agent in enumerate(results.agents)}
    counts = [
        (agent, tallies[agent.name, mode].counts[task.task_id])
        for agent in results.agents
        for mode in results.modes
        if task.task_id in tallies[agent.name, mode].counts
    ]
    return TaskSection(
        info=task,
        samples=tuple(
            sorted(rows, key=lambda row: (place[row["agent"]], row["prompt_mode"], len(row["sample"]), row["sample"]))
        ),
        solved=sum(count.passes for agent, count in counts if agent.contends),
        graded=sum(count.samples for agent, count in counts if agent.contends),
        controls=sum(
            count.passes if agent.role is AgentRole.REFERENCE else count.samples - count.passes
            for agent, count in counts
            if not agent.contends
        ),
        more=more,
    )


def _as_it_must_be(row: Mapping[str, Any], agent: AgentInfo) -> bool:
    if agent.contends or not row["counts"]:
        return False
    return bool(row["resolved"]) == (agent.role is AgentRole.REFERENCE)
