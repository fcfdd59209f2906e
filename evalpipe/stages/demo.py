"""What is special about the demo: its task set belongs to this machine, and is made again when its images are gone."""

import shutil

from evalpipe.stages.bench import Workbench
from evalpipe.tasks import TaskSetError, load_task_set


def forget_unusable_task_set(bench: Workbench, name: str) -> None:
    """Remove a frozen set that is damaged, or of which an environment is not one of the last validation.

    Only for the demo, whose set is ignored by git: a set that a team froze is never touched.
    """
    folder = bench.workspace.task_sets_dir / name
    validated = {row["image_digest"] for row in bench.lake.rows("validated_tasks", name)}
    try:
        used = {task.environment.image_digest for task in load_task_set(folder).tasks.values()}
    except TaskSetError:
        used = set()
    if not used or not used <= validated:
        shutil.rmtree(folder, ignore_errors=True)
