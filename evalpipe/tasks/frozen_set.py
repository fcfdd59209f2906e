"""Reads frozen task sets, and finds everything that is wrong with their files.

A set is what its files were when it was frozen: each is checked by the hash of its bytes, never by writing it again.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from evalpipe.tasks.record import SCHEMA_VERSION, Task, TaskSet, revision_of

Record = TypeVar("Record", Task, TaskSet)

SET_FILE = "task_set.json"
PATCH_KINDS = ("gold", "test")
_OWN_FOLDERS = ("tasks", "patches")


class SetProblemKind(StrEnum):
    """What can be wrong with a frozen set."""

    MISSING_FILE = "missing_file"
    CHANGED_FILE = "changed_file"
    SURPLUS_FILE = "surplus_file"
    UNKNOWN_FORMAT = "unknown_format"
    NOT_A_RECORD = "not_a_record"
    TASK_IDS = "task_ids"
    TEST_LISTS = "test_lists"
    PATCHES = "patches"
    TREE = "tree"
    TERSE_TEXT = "terse_text"


@dataclass(frozen=True, slots=True)
class SetProblem:
    """One thing that is wrong; `task_id` where it is about one task. The text names the file and what to do."""

    kind: SetProblemKind
    text: str
    task_id: str | None = None


class TaskSetError(Exception):
    """A task set cannot be written or read; the text names the file and what to do."""


@dataclass(frozen=True, slots=True)
class LoadedTaskSet:
    """A set that was read, with its tasks by id in the set's order, and the SHA-256 of each task's file as frozen."""

    folder: Path
    record: TaskSet
    tasks: Mapping[str, Task]
    digests: Mapping[str, str]

    def gold_patch(self, task_id: str) -> bytes:
        """The reference change without its tests. Raises TaskSetError when the file is not what was frozen."""
        return self._patch(task_id, "gold", self.tasks[task_id].gold_patch_sha256)

    def test_patch(self, task_id: str) -> bytes:
        """The tests of the reference change. Raises TaskSetError when the file is not what was frozen."""
        return self._patch(task_id, "test", self.tasks[task_id].test_patch_sha256)

    def _patch(self, task_id: str, kind: str, sha256: str) -> bytes:
        try:
            return _read_frozen(patch_path(self.folder, task_id, kind), sha256, task_id)
        except _Faulty as fault:
            raise TaskSetError(fault.problem.text) from None


class _Faulty(Exception):
    def __init__(self, kind: SetProblemKind, text: str, task_id: str | None = None) -> None:
        super().__init__(text)
        self.problem = SetProblem(kind, text, task_id)


def load_task_set(folder: Path) -> LoadedTaskSet:
    """Read the set in `folder` and check every hash. Raises TaskSetError, naming the first file that is wrong."""
    loaded, problems = inspect_task_set(folder)
    if problems:
        more = f" ({len(problems) - 1} more; `evalpipe tasks check {folder.name}` lists them)" if problems[1:] else ""
        raise TaskSetError(problems[0].text + more)
    assert loaded is not None  # without a record there is a problem
    return loaded


def inspect_task_set(folder: Path) -> tuple[LoadedTaskSet | None, list[SetProblem]]:
    """Read what can be read of the set in `folder`, and list everything that is wrong with its files.

    None when its `task_set.json` cannot be read; else the tasks that could be, which are all when nothing is wrong.
    """
    try:
        record = _parse(folder / SET_FILE, _read(folder / SET_FILE), TaskSet)
    except _Faulty as fault:
        return None, [fault.problem]
    problems = list(_record_problems(folder, record))
    tasks: dict[str, Task] = {}
    digests = {entry.task_id: entry.sha256 for entry in record.tasks}
    for task_id, sha256 in digests.items():
        try:
            tasks[task_id] = task = _read_task(folder, task_id, sha256)
        except _Faulty as fault:
            problems.append(fault.problem)
            continue
        for kind, patch_sha256 in (("gold", task.gold_patch_sha256), ("test", task.test_patch_sha256)):
            try:
                _read_frozen(patch_path(folder, task_id, kind), patch_sha256, task_id)
            except _Faulty as fault:
                problems.append(fault.problem)
    if len(tasks) == len(record.tasks) and record.provisional != any(task.provisional for task in tasks.values()):
        problems.append(_changed(folder / SET_FILE).problem)
    return LoadedTaskSet(folder, record, tasks, digests), problems


def read_task_set_record(folder: Path) -> TaskSet:
    """The record of the set in `folder` without its tasks. Raises TaskSetError."""
    try:
        return _parse(folder / SET_FILE, _read(folder / SET_FILE), TaskSet)
    except _Faulty as fault:
        raise TaskSetError(fault.problem.text) from None


def frozen_sets(task_sets: Path) -> list[Path]:
    """Folders below `task_sets` that hold a frozen set, by name."""
    return sorted(path.parent for path in task_sets.glob(f"*/{SET_FILE}"))


def surplus_files(folder: Path, task_ids: Iterable[str]) -> list[Path]:
    """Files beside those of `task_ids` that are no part of the set: a freeze that was killed may have left them."""
    own = {task_path(folder, task_id) for task_id in task_ids}
    own |= {patch_path(folder, task_id, kind) for task_id in task_ids for kind in PATCH_KINDS}
    found = (path for name in _OWN_FOLDERS for path in (folder / name).rglob("*"))
    return sorted(path for path in found if not path.is_dir() and path not in own)


def task_path(folder: Path, task_id: str) -> Path:
    """Where a task of the set in `folder` lies."""
    return folder / "tasks" / f"{task_id}.json"


def patch_path(folder: Path, task_id: str, kind: str) -> Path:
    """Where a patch of a task lies; `kind` is one of `PATCH_KINDS`."""
    return folder / "patches" / f"{task_id}.{kind}.patch"


def _record_problems(folder: Path, record: TaskSet) -> Iterable[SetProblem]:
    for task_id, times in Counter(entry.task_id for entry in record.tasks).items():
        if times > 1:
            yield SetProblem(SetProblemKind.TASK_IDS, f"{folder / SET_FILE} lists {task_id} {times} times", task_id)
    revision = revision_of(record.name, record.selection_rule, record.tasks, record.sample)
    if record.name != folder.name or record.revision != revision:
        yield _changed(folder / SET_FILE).problem


def _read_task(folder: Path, task_id: str, sha256: str) -> Task:
    path = task_path(folder, task_id)
    task = _parse(path, _read_frozen(path, sha256, task_id), Task, task_id)
    if task.task_id != task_id:
        raise _Faulty(SetProblemKind.TASK_IDS, f"{path} is the record of another task, {task.task_id}", task_id)
    return task


def _read_frozen(path: Path, sha256: str, task_id: str) -> bytes:
    data = _read(path, task_id)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _changed(path, task_id)
    return data


def _read(path: Path, task_id: str | None = None) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        text = f"{path} is missing: restore it from git, or freeze a new set"
        raise _Faulty(SetProblemKind.MISSING_FILE, text, task_id) from None


def _parse(path: Path, data: bytes, kind: type[Record], task_id: str | None = None) -> Record:
    try:
        document: Any = json.loads(data)
    except ValueError as error:
        text = f"{path} is not a {kind.__name__} record, because it is not JSON ({error}): restore it from git"
        raise _Faulty(SetProblemKind.NOT_A_RECORD, text, task_id) from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        found = f"schema_version {version}, and this evalpipe reads {SCHEMA_VERSION} at most"
        raise _Faulty(SetProblemKind.UNKNOWN_FORMAT, _of_newer(path, found), task_id)
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        unknown = [".".join(map(str, one["loc"])) for one in error.errors() if one["type"] == "extra_forbidden"]
        if len(unknown) == error.error_count():
            found = f"fields that this evalpipe does not know ({', '.join(unknown)})"
            raise _Faulty(SetProblemKind.UNKNOWN_FORMAT, _of_newer(path, found), task_id) from error
        text = f"{path} is not a {kind.__name__} record: {error}"
        raise _Faulty(SetProblemKind.NOT_A_RECORD, text, task_id) from error


def _of_newer(path: Path, found: str) -> str:
    return f"{path} has {found}: use the version of evalpipe that froze it, or a newer one"


def _changed(path: Path, task_id: str | None = None) -> _Faulty:
    text = f"{path} was changed after freezing: restore it from git, or freeze a new set"
    return _Faulty(SetProblemKind.CHANGED_FILE, text, task_id)
