"""Stage `calibration`: for each task, the reference change must be resolved and the empty patch must not."""

from evalpipe.lake import Row
from evalpipe.stages.bench import Workbench
from evalpipe.stages.grading_rows import grade_patch
from evalpipe.tasks import LoadedTaskSet

REPETITIONS = 3


def calibrate_task(bench: Workbench, task_set: LoadedTaskSet, task_id: str, labels: dict[str, str]) -> list[Row]:
    """Grade the reference and the empty patch three times each through the path of every attempt.

    Done before for this revision and image: the stored rows are returned and no box is opened.
    """
    known = calibration_rows(bench, task_set, task_id)
    if known:
        return known
    task = task_set.tasks[task_id]
    rows: list[Row] = []
    for patch_name, patch in (("reference", task_set.gold_patch(task_id)), ("empty", b"")):
        for repetition in range(1, REPETITIONS + 1):
            graded = grade_patch(bench, task, patch, {**labels, "calibration": patch_name})
            rows.append(
                {
                    "task_set": task_set.record.name,
                    "revision": task_set.record.revision,
                    "task_id": task_id,
                    "patch": patch_name,
                    "repetition": repetition,
                    **graded,
                }
            )
    bench.lake.write("calibration", rows, *_place(task_set, task_id))
    return rows


def calibration_rows(bench: Workbench, task_set: LoadedTaskSet, task_id: str) -> list[Row]:
    """What the calibration of a task showed, for this very revision; empty when it has not run."""
    return list(bench.lake.rows("calibration", *_place(task_set, task_id)))


def is_calibrated(rows: list[Row]) -> bool:
    """Whether every grading of the reference was resolved and none of the empty patch was."""
    return bool(rows) and all(row["resolved"] is (row["patch"] == "reference") for row in rows)


def _place(task_set: LoadedTaskSet, task_id: str) -> tuple[str, str, str]:
    return task_set.record.name, task_set.record.revision[:16], task_id
