"""Frozen task sets: written once, checked whenever they are read, never changed."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from evalpipe.tasks.record import SLUG_PATTERN, Task, TaskSet, TaskSetEntry, canonical_json, revision_of

Record = TypeVar("Record", Task, TaskSet)

WriteFile = Callable[[Path, bytes], None]
"""Writes one file whole or not at all."""

_SET_FILE = "task_set.json"


class TaskSetError(Exception):
    """A task set cannot be written or read; the text names the file and what to do."""


@dataclass(frozen=True, slots=True)
class TaskWithPatches:
    """A task and its two patches against the parent's tree: the reference change, split into product and tests."""

    task: Task
    gold_patch: bytes
    test_patch: bytes


@dataclass(frozen=True, slots=True)
class LoadedTaskSet:
    """A set that was read and checked, with its tasks by id in the set's order."""

    folder: Path
    record: TaskSet
    tasks: Mapping[str, Task]

    def gold_patch(self, task_id: str) -> bytes:
        return _read_patch(self.folder, task_id, "gold", self.tasks[task_id].gold_patch_sha256)


def freeze(
    folder: Path,
    tasks: Sequence[TaskWithPatches],
    selection_rule: str,
    *,
    provisional: bool,
    write: WriteFile,
) -> TaskSet:
    """Write `tasks` as the frozen set in `folder`, whose name is the set's.

    The same tasks give the same bytes. `provisional` admits tasks of which both validation passes ran on one
    day; the set then says so. Raises TaskSetError for an empty set, for a provisional task that is not
    admitted, and when the folder already holds a set of other content: a frozen set never changes.
    """
    name = folder.name
    if not re.fullmatch(SLUG_PATTERN, name):
        raise TaskSetError(f"{name!r} cannot name a task set: use letters, digits, `_`, `-` and `.`")
    if not tasks:
        raise TaskSetError(
            f"nothing to freeze as {name}: no candidate is valid yet; `evalpipe status` says why, "
            f"`evalpipe validate` goes on"
        )
    early = [item.task.task_id for item in tasks if item.task.provisional]
    if early and not provisional:
        raise TaskSetError(
            f"{len(early)} of {len(tasks)} tasks were validated on one day only (for example {early[0]}): run "
            f"`evalpipe validate` again on another day, or freeze with --provisional, which every report then says"
        )
    ordered = sorted(tasks, key=lambda item: (item.task.merge_date, item.task.task_id))
    entries = tuple(TaskSetEntry(task_id=item.task.task_id, sha256=item.task.digest()) for item in ordered)
    record = TaskSet(
        name=name,
        revision=revision_of(name, selection_rule, entries),
        selection_rule=selection_rule,
        provisional=bool(early),
        tasks=entries,
    )
    if (folder / _SET_FILE).exists():
        present = _read_set(folder)
        if present.revision != record.revision:
            raise TaskSetError(
                f"{folder} already holds another set (revision {present.revision[:12]}, this would be "
                f"{record.revision[:12]}): a frozen set never changes, so choose a new name"
            )
    for item in ordered:
        task_id = item.task.task_id
        write(folder / "tasks" / f"{task_id}.json", canonical_json(item.task))
        write(_patch_path(folder, task_id, "gold"), item.gold_patch)
        write(_patch_path(folder, task_id, "test"), item.test_patch)
    write(folder / _SET_FILE, canonical_json(record))  # last: a set without this file is not one
    return record


def load_task_set(folder: Path) -> LoadedTaskSet:
    """Read the set in `folder` and check every hash. Raises TaskSetError, naming the file that is wrong."""
    record = _read_set(folder)
    tasks = {}
    for entry in record.tasks:
        path = folder / "tasks" / f"{entry.task_id}.json"
        task = _parse(path, Task)
        if task.task_id != entry.task_id or task.digest() != entry.sha256:
            raise TaskSetError(f"{path} was changed after freezing: restore it from git, or freeze a new set")
        _read_patch(folder, task.task_id, "gold", task.gold_patch_sha256)
        _read_patch(folder, task.task_id, "test", task.test_patch_sha256)
        tasks[task.task_id] = task
    if (
        record.name != folder.name
        or record.provisional != any(task.provisional for task in tasks.values())
        or record.revision != revision_of(record.name, record.selection_rule, record.tasks)
    ):
        raise TaskSetError(f"{folder / _SET_FILE} was changed after freezing: restore it from git, or freeze a new set")
    return LoadedTaskSet(folder, record, tasks)


def frozen_sets(task_sets: Path) -> list[Path]:
    """Folders below `task_sets` that hold a frozen set, by name."""
    return sorted(path.parent for path in task_sets.glob(f"*/{_SET_FILE}"))


def terse_texts(folder: Path) -> dict[str, str]:
    """Terse texts that people wrote for a set: `terse/<task_id>.md` in its folder."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("terse/*.md"))}


def _read_set(folder: Path) -> TaskSet:
    return _parse(folder / _SET_FILE, TaskSet)


def _parse(path: Path, kind: type[Record]) -> Record:
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise TaskSetError(f"{path} is missing: restore it from git, or freeze a new set") from error
    except ValidationError as error:
        raise TaskSetError(f"{path} is not a {kind.__name__} record: {error}") from error


def _patch_path(folder: Path, task_id: str, kind: str) -> Path:
    return folder / "patches" / f"{task_id}.{kind}.patch"


def _read_patch(folder: Path, task_id: str, kind: str, sha256: str) -> bytes:
    path = _patch_path(folder, task_id, kind)
    try:
        patch = path.read_bytes()
    except FileNotFoundError as error:
        raise TaskSetError(f"{path} is missing: restore it from git, or freeze a new set") from error
    if hashlib.sha256(patch).hexdigest() != sha256:
        raise TaskSetError(f"{path} was changed after freezing: restore it from git, or freeze a new set")
    return patch
