"""`evalpipe tasks add`: a task that the history does not hold is checked, and kept for mining to find."""

from pathlib import Path

from evalpipe.config import TASK_FILE
from evalpipe.history import ScratchObjects
from evalpipe.lake import write_atomically
from evalpipe.stages.added_tasks import AddedTaskError, TaskFiles, candidate_row, read_task_files
from evalpipe.stages.bench import Workbench
from evalpipe.stages.mining import path_rules


def add_task(bench: Workbench, file: Path) -> tuple[TaskFiles, str]:
    """Check the task in `file` and keep its files below `data/tasks/`; returns them, and the candidate's id.

    The same task may be added again. Raises ConfigError and AddedTaskError, and then nothing was kept.
    """
    task = read_task_files(bench.workspace, file)
    name = task.config.repository
    config = bench.workspace.load_repository(name)
    if not bench.mirror_path(name).exists():
        raise AddedTaskError(f"{task.shown}: {name} was not mined yet: run `evalpipe mine {name}` first")
    folder = bench.workspace.added_tasks_dir / name / task.config.id
    if (folder / TASK_FILE).exists() and read_task_files(bench.workspace, folder / TASK_FILE).digest != task.digest:
        raise AddedTaskError(
            f"{task.shown}: the id {task.config.id} is taken by another task in {bench.workspace.shown(folder)}: "
            f"choose another id, or edit the files there and run `evalpipe mine {name}`"
        )
    mirror = bench.mirror(name)
    with ScratchObjects(mirror) as scratch:
        row = candidate_row(mirror, scratch, task, path_rules(config), "")
    for part in sorted(task.files, key=lambda part: part == TASK_FILE):  # last: a folder without it is no task
        write_atomically(folder / part, task.files[part])
    return task, str(row["candidate_id"])
