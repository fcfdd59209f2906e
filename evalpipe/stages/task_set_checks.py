"""Checks a frozen task set against everything that is there to check it with, and compares two sets.

Everything that is wrong is found, not only the first; what could not be looked at on this machine is said.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalpipe.history import ScratchObjects
from evalpipe.manifest import differences
from evalpipe.sandbox import EngineUnavailable
from evalpipe.stages.bench import Workbench
from evalpipe.tasks import (
    LoadedTaskSet,
    SetProblem,
    SetProblemKind,
    Task,
    TaskSetError,
    frozen_sets,
    inspect_task_set,
    surplus_files,
    task_problems,
    terse_texts,
    tree_problem,
)


@dataclass(frozen=True, slots=True)
class SetReport:
    """What a check of a set found. `notes` are no faults: what could not be checked here, and absent images."""

    name: str
    revision: str | None
    tasks: int
    problems: tuple[SetProblem, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs, by its dotted path. Of a list, only what is in one and not in the other."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class SetComparison:
    """What a set has against another one; tasks are the same when they have one id."""

    against: str
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    changed: dict[str, tuple[FieldChange, ...]] = field(default_factory=dict)


def check_task_set(bench: Workbench, name: str) -> SetReport:
    """Check the set `name`: its files, its tasks, and where their mirrors are, its patches against git's own trees.

    Raises TaskSetError when there is no such set.
    """
    folder = _folder(bench, name)
    loaded, problems = inspect_task_set(folder)
    if loaded is None:
        return SetReport(name, None, 0, tuple(problems), ())
    listed = [entry.task_id for entry in loaded.record.tasks]
    problems += [
        SetProblem(SetProblemKind.SURPLUS_FILE, f"{path} is no file of this set: delete it")
        for path in surplus_files(folder, listed)
    ]
    whole = _whole(loaded, problems)
    for task in whole:
        problems += task_problems(task, loaded.gold_patch(task.task_id), loaded.test_patch(task.task_id))
    notes = [
        f"{folder / 'terse' / task_id}.md is the terse text of no task of this set"
        for task_id in terse_texts(folder)
        if task_id not in listed
    ]
    for repository in dict.fromkeys(task.repository for task in whole):
        of_repository = [task for task in whole if task.repository == repository]
        if not bench.mirror_path(repository).exists():
            notes.append(
                f"the trees of {len(of_repository)} tasks were not checked, because the mirror of {repository} is not "
                f"on this machine: `evalpipe mine {repository}` makes it"
            )
            continue
        problems += _tree_problems(bench, loaded, repository, of_repository)
    notes += _image_notes(bench, whole)
    return SetReport(name, loaded.record.revision, len(listed), tuple(problems), tuple(notes))


def compare_task_sets(bench: Workbench, name: str, other: str) -> SetComparison:
    """Which tasks the set `name` has that `other` has not, which it has not, and how the common ones differ.

    Fields that one version of evalpipe wrote and another did not are the same when they mean the same. Tasks whose
    file cannot be read count as not there. Raises TaskSetError when one of the sets cannot be read at all.
    """
    present, earlier = (_readable(bench, one) for one in (name, other))
    changed = {}
    for task_id in present.tasks.keys() & earlier.tasks.keys():
        before, after = (one.tasks[task_id].model_dump(mode="json") for one in (earlier, present))
        changes = tuple(_change(one.path, one.left, one.right) for one in differences(before, after, ignore=()))
        if changes:
            changed[task_id] = changes
    return SetComparison(
        against=other,
        added=tuple(task_id for task_id in present.tasks if task_id not in earlier.tasks),
        dropped=tuple(task_id for task_id in earlier.tasks if task_id not in present.tasks),
        changed=dict(sorted(changed.items())),
    )


def _folder(bench: Workbench, name: str) -> Path:
    known = frozen_sets(bench.workspace.task_sets_dir)
    for folder in known:
        if folder.name == name:
            return folder
    names = ", ".join(folder.name for folder in known) or "none yet"
    raise TaskSetError(f"there is no frozen set {name} in {bench.workspace.task_sets_dir}; there are: {names}")


def _readable(bench: Workbench, name: str) -> LoadedTaskSet:
    loaded, problems = inspect_task_set(_folder(bench, name))
    if loaded is None:
        raise TaskSetError(problems[0].text)
    return loaded


def _whole(loaded: LoadedTaskSet, problems: Iterable[SetProblem]) -> list[Task]:
    """The tasks whose files are all as they were frozen."""
    damaged = {problem.task_id for problem in problems}
    return [task for task_id, task in loaded.tasks.items() if task_id not in damaged]


def _tree_problems(
    bench: Workbench, loaded: LoadedTaskSet, repository: str, tasks: Iterable[Task]
) -> Iterator[SetProblem]:
    with ScratchObjects(bench.mirror(repository)) as scratch:
        for task in tasks:
            problem = tree_problem(scratch, task, loaded.gold_patch(task.task_id), loaded.test_patch(task.task_id))
            if problem is not None:
                yield problem


def _image_notes(bench: Workbench, tasks: Iterable[Task]) -> Iterator[str]:
    images = Counter((task.environment.sandbox, task.environment.image_digest) for task in tasks)
    if not images:
        return
    try:
        here = bench.sandbox.name
    except EngineUnavailable:
        yield f"{len(images)} images were not looked for, because no Docker engine answers"
        return
    for (sandbox, digest), count in images.items():
        if sandbox != here:
            yield f"the image {digest} of {count} tasks was not looked for: it is for the {sandbox} sandbox"
        elif not bench.builder.exists(digest):
            yield f"the image {digest} of {count} tasks is not on this machine"


def _change(path: str, before: Any, after: Any) -> FieldChange:
    if isinstance(before, list) and isinstance(after, list):
        only_before = [one for one in before if one not in after]
        only_after = [one for one in after if one not in before]
        if only_before or only_after:
            return FieldChange(path, only_before, only_after)
    return FieldChange(path, before, after)
