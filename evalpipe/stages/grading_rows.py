"""Gradings as rows, and verdicts kept by content, so that the same patch is never graded twice."""

import datetime as dt
from typing import Any

from evalpipe.grading import Grading, Judgement, Verdict, grade, limits_of, verdict_key
from evalpipe.lake import Row
from evalpipe.stages.bench import Workbench, frozen_runner, runner_for
from evalpipe.stages.images import environment_of_task
from evalpipe.tasks import LoadedTaskSet, Task

GRADING_COLUMNS = (
    "verdict",
    "resolved",
    "integrity",
    "integrity_reasons",
    "fail_to_pass_passed",
    "fail_to_pass_total",
    "pass_to_pass_passed",
    "pass_to_pass_total",
    "unmet_tests",
    "detail",
    "ignored_paths",
    "grading_seconds",
    "graded_at",
    "style_clean",
    "style_output",
)


def grade_patch(bench: Workbench, task: Task, patch: bytes, labels: dict[str, str]) -> dict[str, Any]:
    """Grade `patch` in a fresh box and return the grading columns. Raises SandboxError, EnvironmentNotReady."""
    environment = environment_of_task(bench, task)
    with bench.room.taken(limits_of(task)):
        grading = grade(
            bench.sandbox,
            environment,
            runner_for(frozen_runner(task)),
            bench.mirror(task.repository),
            task,
            patch,
            {**labels, "task": task.task_id, "purpose": "grading"},
        )
    return grading_row(task, grading, bench.clock())


def key_of_verdict(bench: Workbench, task_set: LoadedTaskSet, task_id: str, patch_sha256: str) -> str:
    """The key under which the verdict on a patch for a frozen task is kept for this bench's sandbox."""
    image_digest = task_set.tasks[task_id].environment.image_digest
    return verdict_key(task_set.digests[task_id], patch_sha256, image_digest, bench.sandbox.name)


def cached_verdict(
    bench: Workbench,
    task: Task,
    key: str,
    patch: bytes,
    labels: dict[str, str],
    *,
    not_before: dt.datetime | None = None,
) -> dict[str, Any]:
    """The grading columns of `patch`, from the lake when what `key` stands for was graded before.

    A verdict that is older than `not_before` is made again, and replaces the old one once it is there.
    """
    place = (key[:2], key)
    with bench.lake.locked("verdicts", *place):
        known = bench.lake.rows("verdicts", *place)
        if known and not is_older(known[0], not_before):
            return {column: known[0][column] for column in GRADING_COLUMNS}
        row = grade_patch(bench, task, patch, labels)
        bench.lake.write("verdicts", [{"verdict_key": key, **row}], *place)
    return row


def is_older(row: Row, not_before: dt.datetime | None) -> bool:
    """Whether a row with grading columns is older than a regrading that began at `not_before`."""
    return not_before is not None and row["graded_at"] < not_before


def not_graded(task: Task, detail: str, now: dt.datetime) -> dict[str, Any]:
    """The grading columns of an attempt that has nothing to grade."""
    return grading_row(task, Grading(Judgement(Verdict.NOT_GRADED, detail), (), 0.0), now)


def grading_row(task: Task, grading: Grading, now: dt.datetime) -> dict[str, Any]:
    """A grading as the columns that calibration, verdicts and graded results share."""
    judgement = grading.judgement
    return {
        "verdict": judgement.verdict.value,
        "resolved": judgement.resolved,
        "integrity": "clean",
        "integrity_reasons": [],
        "fail_to_pass_passed": judgement.fail_to_pass_passed,
        "fail_to_pass_total": len(task.fail_to_pass),
        "pass_to_pass_passed": judgement.pass_to_pass_passed,
        "pass_to_pass_total": len(task.pass_to_pass),
        "unmet_tests": [
            {
                "test_id": unmet.test_id,
                "expected_in": unmet.expected_in.value,
                "outcome": unmet.outcome,
                "message": unmet.message,
            }
            for unmet in judgement.unmet_tests
        ],
        "detail": judgement.detail,
        "ignored_paths": list(grading.ignored_paths),
        "grading_seconds": grading.seconds,
        "graded_at": now,
        "style_clean": None if grading.style is None else grading.style.clean,
        "style_output": None if grading.style is None else grading.style.output,
    }
