"""Freezes task sets: written once, whole or not at all, and never changed."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalpipe.tasks.frozen_set import SET_FILE, TaskSetError, patch_path, read_task_set_record, surplus_files, task_path
from evalpipe.tasks.record import SLUG_PATTERN, Task, TaskSet, TaskSetEntry, canonical_json, revision_of
from evalpipe.tasks.sampling import ALL, Sampling, draw
from evalpipe.tasks.task_checks import task_problems

WriteFile = Callable[[Path, bytes], None]
"""Writes one file whole or not at all."""


@dataclass(frozen=True, slots=True)
class TaskWithPatches:
    """A task and its two patches against the parent's tree: the reference change, split into product and tests."""

    task: Task
    gold_patch: bytes
    test_patch: bytes


def freeze(
    folder: Path,
    tasks: Sequence[TaskWithPatches],
    sampling: Sampling | None,
    *,
    provisional: bool,
    write: WriteFile,
) -> TaskSet:
    """Write `tasks`, or a sample of them, as the frozen set in `folder`, whose name is the set's.

    The same tasks give the same bytes. `provisional` admits tasks of which both validation passes ran on one
    day; the set then says so. Raises TaskSetError for an empty set, for a task that is wrong in itself, for a
    provisional task that is not admitted, and when the folder already holds a set of other content: a frozen set
    never changes. Raises SampleTooLarge.
    """
    name = folder.name
    if not re.fullmatch(SLUG_PATTERN, name):
        raise TaskSetError(f"{name!r} cannot name a task set: use letters, digits, `_`, `-` and `.`")
    _refuse_wrong(name, tasks)
    drawn, sample = draw([item.task for item in tasks], sampling) if sampling else (None, None)
    chosen = [item for item in tasks if drawn is None or item.task.task_id in drawn]
    early = [item.task.task_id for item in chosen if item.task.provisional]
    if early and not provisional:
        raise TaskSetError(
            f"{len(early)} of {len(chosen)} tasks were validated on one day only (for example {early[0]}): run "
            f"`evalpipe validate` again on another day, or freeze with --provisional, which every report then says"
        )
    ordered = sorted(chosen, key=lambda item: (item.task.merge_date, item.task.task_id))
    files = [(item, canonical_json(item.task)) for item in ordered]
    entries = tuple(
        TaskSetEntry(task_id=item.task.task_id, sha256=hashlib.sha256(data).hexdigest()) for item, data in files
    )
    rule = sampling.rule if sampling else ALL
    record = TaskSet(
        name=name,
        revision=revision_of(name, rule, entries, sample),
        selection_rule=rule,
        provisional=bool(early),
        tasks=entries,
        sample=sample,
    )
    _make_way(folder, record)
    for item, data in files:
        write(task_path(folder, item.task.task_id), data)
        write(patch_path(folder, item.task.task_id, "gold"), item.gold_patch)
        write(patch_path(folder, item.task.task_id, "test"), item.test_patch)
    write(folder / SET_FILE, canonical_json(record))  # last: a set without this file is not one
    return record


def terse_path(folder: Path, task_id: str) -> Path:
    """Where the terse text of a task lies in the folder of a set."""
    return folder / "terse" / f"{task_id}.md"


def terse_texts(folder: Path) -> dict[str, str]:
    """Terse texts that people wrote for a set: `terse/<task_id>.md` in its folder."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("terse/*.md"))}


def _refuse_wrong(name: str, tasks: Sequence[TaskWithPatches]) -> None:
    if not tasks:
        raise TaskSetError(
            f"nothing to freeze as {name}: no candidate is valid yet; `evalpipe status` says why, "
            f"`evalpipe validate` goes on"
        )
    repeated = [task_id for task_id, times in Counter(item.task.task_id for item in tasks).items() if times > 1]
    problems = [f"two tasks have the id {task_id}" for task_id in repeated]
    for item in tasks:
        problems += [problem.text for problem in task_problems(item.task, item.gold_patch, item.test_patch)]
    if problems:
        raise TaskSetError(f"nothing was frozen as {name}:\n" + "\n".join(problems))


def _make_way(folder: Path, record: TaskSet) -> None:
    """Refuse a folder with another set, and clear away what an earlier freeze left that was killed."""
    if (folder / SET_FILE).exists():
        present = read_task_set_record(folder)
        if present.revision != record.revision:
            raise TaskSetError(
                f"{folder} already holds another set (revision {present.revision[:12]}, this would be "
                f"{record.revision[:12]}): a frozen set never changes, so choose a new name"
            )
        return
    for path in surplus_files(folder, [entry.task_id for entry in record.tasks]):
        path.unlink()
