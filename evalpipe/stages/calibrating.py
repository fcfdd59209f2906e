"""Stage `calibration`: for each task, the reference change must be resolved and the empty patch must not."""

import hashlib

from evalpipe.grading import verdict_key
from evalpipe.lake import Row
from evalpipe.stages.bench import Workbench
from evalpipe.stages.grading_rows import grade_patch
from evalpipe.tasks import LoadedTaskSet

REPETITIONS = 3


def calibrate_task(bench: Workbench, task_set: LoadedTaskSet, task_id: str, labels: dict[str, str]) -> list[Row]:
    """Grade the reference and the empty patch three times each through the path of every attempt.

    Done before for this revision, image and grader: the stored rows are returned and no box is opened.
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
                    "verdict_key": _keys(task_set, task_id)[patch_name],
                    **graded,
                }
            )
    bench.lake.write("calibration", rows, *_place(task_set, task_id))
    return rows


def calibration_rows(bench: Workbench, task_set: LoadedTaskSet, task_id: str) -> list[Row]:
    """What the calibration of a task showed, for this very task, image and grader; empty when it has not run so."""
    rows = bench.lake.rows("calibration", *_place(task_set, task_id))
    keys = _keys(task_set, task_id)
    return list(rows) if all(row["verdict_key"] == keys[row["patch"]] for row in rows) else []


def is_calibrated(rows: list[Row]) -> bool:
    """Whether every grading of the reference was resolved and none of the empty patch was."""
    return bool(rows) and all(row["resolved"] is (row["patch"] == "reference") for row in rows)


def _keys(task_set: LoadedTaskSet, task_id: str) -> dict[str, str]:
    """What a grading of each patch stands for now; the sandbox is the task's own, as no other can run it."""
    task = task_set.tasks[task_id]
    patches = {"reference": task.gold_patch_sha256, "empty": hashlib.sha256(b"").hexdigest()}
    environment = task.environment
    return {
        name: verdict_key(task_set.digests[task_id], sha256, environment.image_digest, environment.sandbox)
        for name, sha256 in patches.items()
    }


def _place(task_set: LoadedTaskSet, task_id: str) -> tuple[str, str, str]:
    return task_set.record.name, task_set.record.revision[:16], task_id
