"""Tasks that a team wrote itself: their files in `data/tasks/<repository>/<id>/`, and the candidates that they become.

The files are the truth, and a team commits them. Every mining makes the candidates anew from them, on commits that are
the same for the same files; so a task that was edited is another candidate, and one whose folder is gone is none.
"""

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalpipe.config import TASK_FILE, AddedTaskConfig, ConfigError, Workspace, load_added_task
from evalpipe.history import (
    CategoryRule,
    CommitMissing,
    MiningReason,
    PathRules,
    ProblemSource,
    Repository,
    ScratchObjects,
    Shape,
    add_commit,
    candidate_id,
    commit_day,
)
from evalpipe.lake import Row
from evalpipe.tasks import AddedChangeWrong, added_change

ADDED_VERSION = 1
"""Goes up when the same files may become another row or another commit."""

_MOST_BYTES = 64 * 1024**2


class AddedTaskError(Exception):
    """A task of the team's own cannot be used; the text names the file and has everything that was found."""


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """A task as its author wrote it: the fields of `task.yaml`, and every file of it, that one too, by name."""

    shown: str
    config: AddedTaskConfig
    files: dict[str, bytes]

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of all files."""
        content = [(name, hashlib.sha256(data).hexdigest()) for name, data in sorted(self.files.items())]
        return hashlib.sha256(repr(content).encode()).hexdigest()

    @property
    def problem(self) -> str:
        """The text of the problem. Raises AddedTaskError when its file is empty or not UTF-8."""
        if self.config.problem is not None:
            return self.config.problem
        assert self.config.problem_file is not None  # the model requires one of the two
        try:
            text = self.files[self.config.problem_file].decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise AddedTaskError(f"{self.shown}: {self.config.problem_file} is not UTF-8: {error}") from error
        if not text.strip():
            raise AddedTaskError(f"{self.shown}: {self.config.problem_file} is empty; it has the text for the agent")
        return text


def read_task_files(workspace: Workspace, path: Path) -> TaskFiles:
    """Read a task file and those that it names beside it. Raises ConfigError and AddedTaskError."""
    shown = workspace.shown(path)
    config = load_added_task(path, shown)
    files: dict[str, bytes] = {TASK_FILE: path.read_bytes()}
    faults = []
    for name in config.files:
        beside = path.with_name(name)
        try:
            if beside.stat().st_size > _MOST_BYTES:
                faults.append(f"{shown}: {name} is larger than {_MOST_BYTES >> 20} MiB")
                continue
            files[name] = beside.read_bytes()
        except OSError as error:
            faults.append(f"{shown}: {name} cannot be read beside it: {error.strerror}")
    if faults:
        raise AddedTaskError("\n".join(faults))
    return TaskFiles(shown, config, files)


def stored_tasks(workspace: Workspace, repository: str) -> list[TaskFiles]:
    """The tasks that were added to a repository, by id. Raises AddedTaskError with what is wrong in any of them."""
    found, faults = [], []
    for path in sorted((workspace.added_tasks_dir / repository).glob(f"*/{TASK_FILE}")):
        try:
            task = read_task_files(workspace, path)
            faults += list(_misplaced(task, repository, path.parent.name))
            found.append(task)
        except (ConfigError, AddedTaskError) as error:
            faults.append(str(error))
    if faults:
        raise AddedTaskError("\n".join([*faults, "mend the files, or remove their folder, and mine again"]))
    return found


def added_keys(tasks: Sequence[TaskFiles], mining_key: str) -> list[str]:
    """The mining keys of the rows that `added_rows` makes, in their order."""
    return [_key(task, mining_key) for task in _in_order(tasks)]


def added_rows(mirror: Repository, tasks: Sequence[TaskFiles], rules: PathRules, mining_key: str) -> list[Row]:
    """One row of `candidate_commits` for each task, with its commit made in the mirror.

    Raises AddedTaskError with what is wrong in any of them.
    """
    rows, faults = [], []
    with ScratchObjects(mirror) as scratch:
        for task in _in_order(tasks):
            try:
                rows.append(candidate_row(mirror, scratch, task, rules, mining_key))
            except AddedTaskError as error:
                faults.append(str(error))
    if faults:
        raise AddedTaskError("\n".join([*faults, "mend the files, or remove their folder, and mine again"]))
    return rows


def candidate_row(
    mirror: Repository, scratch: ScratchObjects, task: TaskFiles, rules: PathRules, mining_key: str
) -> Row:
    """A task as a row of `candidate_commits`, with its commit made in the mirror. Raises AddedTaskError."""
    config = task.config
    try:
        base_day = commit_day(mirror, config.base)
        if config.date < base_day:
            raise AddedTaskError(f"{task.shown}: its date {config.date} is before its base commit's, {base_day}")
        patches = (task.files[config.test_patch], task.files[config.reference_patch])
        change = added_change(scratch, config.base, *patches, rules)
    except CommitMissing as error:
        raise AddedTaskError(
            f"{task.shown}: its base {config.base} is not in the mirror of {config.repository}: push it to a branch, "
            f"and run `evalpipe mine {config.repository}`"
        ) from error
    except AddedChangeWrong as error:
        raise AddedTaskError("\n".join(f"{task.shown}: {fault}" for fault in error.faults)) from error
    problem = task.problem
    # The id makes two tasks two commits even when they are one change.
    message = f"{config.title}\n\nEvalpipe-Task: {config.id}\n"
    commit = add_commit(mirror, scratch, change.tree, config.base, message, config.date)
    day = dt.datetime.fromisoformat(config.date).replace(tzinfo=dt.UTC)
    row: dict[str, Any] = {
        "candidate_id": candidate_id(f"{config.repository}-{config.id}", None, commit),
        "repository": config.repository,
        "commit": commit,
        "parent": config.base,
        "tree": change.tree,
        "shape": Shape.added.value,
        "number": None,
        "subject": config.title,
        "author": "evalpipe",
        "author_date": day,
        "merge_date": day,
        "reason": MiningReason.kept.value,
        "reason_detail": "",
        "source_files": list(change.product_files),
        "test_files": list(change.test_files),
        "files_changed": len(change.product_files) + len(change.test_files),
        "category": config.category,
        "category_rule": CategoryRule.override.value,
        "issues": [],
        "problem_source": ProblemSource.task_file.value,
        "problem_text": problem,
        "coding_agent": False,
        "branch_commits": [],
        "inline_tests": [],
        "mining_key": _key(task, mining_key),
    }
    return row


def _misplaced(task: TaskFiles, repository: str, folder: str) -> Iterator[str]:
    if task.config.repository != repository:
        yield f"{task.shown}: lies in the folder of {repository}, and says that it belongs to {task.config.repository}"
    if task.config.id != folder:
        yield f"{task.shown}: lies in the folder {folder}, and says that its id is {task.config.id}"


def _in_order(tasks: Sequence[TaskFiles]) -> list[TaskFiles]:
    return sorted(tasks, key=lambda task: (task.config.date, task.config.id))


def _key(task: TaskFiles, mining_key: str) -> str:
    return hashlib.sha256(f"{ADDED_VERSION} {mining_key} {task.digest}".encode()).hexdigest()
