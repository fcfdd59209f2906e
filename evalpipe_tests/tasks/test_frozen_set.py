"""Reading frozen sets: of every age, and with everything that is wrong told at once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe.lake import write_atomically
from evalpipe.tasks import SetProblemKind, Task, TaskSet, TaskSetError, freeze, inspect_task_set, load_task_set
from evalpipe.tasks.frozen_set import surplus_files
from evalpipe.tasks.record import canonical_json, revision_of
from evalpipe_tests.stages import old_set
from evalpipe_tests.tasks.records import with_patches


def _frozen(folder: Path) -> Path:
    tasks = [
        with_patches(task_id=f"clock-{number}", merge_date=f"2026-03-{number:02}T00:00:00+00:00")
        for number in (1, 2, 3)
    ]
    freeze(folder, tasks, None, provisional=False, write=write_atomically)
    return folder


def _write_again(folder: Path, task_id: str, data: bytes) -> None:
    """Put other bytes in the place of a task, as the version of evalpipe would have that froze them."""
    (folder / "tasks" / f"{task_id}.json").write_bytes(data)
    document = json.loads((folder / "task_set.json").read_bytes())
    for entry in document["tasks"]:
        if entry["task_id"] == task_id:
            entry["sha256"] = hashlib.sha256(data).hexdigest()
    record = TaskSet.model_validate(document)
    revision = revision_of(record.name, record.selection_rule, record.tasks)
    (folder / "task_set.json").write_text(json.dumps({**document, "revision": revision}))


def _document(folder: Path, task_id: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "tasks" / f"{task_id}.json").read_bytes())
    return document


def test_a_set_of_an_older_version_is_read_with_the_digests_that_it_was_frozen_with() -> None:
    loaded = load_task_set(old_set.FOLDER)
    assert loaded.record.revision == old_set.REVISION
    assert dict(loaded.digests) == old_set.DIGESTS
    assert [task.runner.prepare for task in loaded.tasks.values()] == [(), ()]
    assert [task.interface_named for task in loaded.tasks.values()] == [False, False]
    assert {task_id: hashlib.sha256(loaded.gold_patch(task_id)).hexdigest() for task_id in loaded.tasks} == {
        task_id: task.gold_patch_sha256 for task_id, task in loaded.tasks.items()
    }


@pytest.mark.parametrize("path", sorted(old_set.FOLDER.rglob("*.json")), ids=lambda path: path.name)
def test_what_an_older_version_wrote_would_be_written_the_same_today(path: Path) -> None:
    """A field that came later shows only where it says something, so that freezing again gives the same set."""
    kind = TaskSet if path.name == "task_set.json" else Task
    assert canonical_json(kind.model_validate_json(path.read_bytes())) == path.read_bytes()


def test_digest_of_a_task_is_that_of_its_bytes_whatever_their_form(tmp_path: Path) -> None:
    folder = _frozen(tmp_path / "q4")
    # Another layout, and a default spelled out: a later or an earlier version may write either.
    document = {**_document(folder, "clock-2"), "interface_named": False}
    data = json.dumps(document, separators=(",", ":")).encode()
    _write_again(folder, "clock-2", data)
    loaded = load_task_set(folder)
    assert loaded.digests["clock-2"] == hashlib.sha256(data).hexdigest()
    assert loaded.tasks["clock-2"].task_id == "clock-2"


def test_a_newer_schema_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = _frozen(tmp_path / "q4")
    data = json.dumps({**_document(folder, "clock-2"), "schema_version": 7}).encode()
    _write_again(folder, "clock-2", data)
    with pytest.raises(TaskSetError, match=r"clock-2\.json has schema_version 7, and .* reads 1 at most: use"):
        load_task_set(folder)
    _, problems = inspect_task_set(folder)
    assert [(one.kind, one.task_id) for one in problems] == [(SetProblemKind.UNKNOWN_FORMAT, "clock-2")]


def test_a_newer_set_record_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = _frozen(tmp_path / "q4")
    document = json.loads((folder / "task_set.json").read_bytes())
    (folder / "task_set.json").write_text(json.dumps({**document, "schema_version": 2}))
    with pytest.raises(TaskSetError, match=r"task_set\.json has schema_version 2.*a newer one"):
        load_task_set(folder)


def test_fields_of_a_newer_version_are_named(tmp_path: Path) -> None:
    folder = _frozen(tmp_path / "q4")
    document = _document(folder, "clock-2")
    document["environment"]["gpus"] = 1
    _write_again(folder, "clock-2", json.dumps({**document, "hints": "none"}).encode())
    with pytest.raises(TaskSetError, match=r"fields that this evalpipe does not know \(environment\.gpus, hints\)"):
        load_task_set(folder)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema_version": "1"}'])
def test_what_is_no_record_is_told(tmp_path: Path, data: bytes) -> None:
    folder = _frozen(tmp_path / "q4")
    _write_again(folder, "clock-2", data)
    loaded, problems = inspect_task_set(folder)
    assert loaded is not None
    assert list(loaded.tasks) == ["clock-1", "clock-3"]
    assert [(one.kind, one.task_id) for one in problems] == [(SetProblemKind.NOT_A_RECORD, "clock-2")]


def test_everything_that_is_wrong_is_found_at_once(tmp_path: Path) -> None:
    folder = _frozen(tmp_path / "q4")
    (folder / "tasks/clock-1.json").unlink()
    (folder / "patches/clock-2.gold.patch").write_bytes(b"other")
    (folder / "patches/clock-3.gold.patch").unlink()
    (folder / "patches/clock-3.test.patch").write_bytes(b"")
    loaded, problems = inspect_task_set(folder)
    assert loaded is not None
    assert [(one.kind, one.task_id) for one in problems] == [
        (SetProblemKind.MISSING_FILE, "clock-1"),
        (SetProblemKind.CHANGED_FILE, "clock-2"),
        (SetProblemKind.MISSING_FILE, "clock-3"),
        (SetProblemKind.CHANGED_FILE, "clock-3"),
    ]
    with pytest.raises(TaskSetError, match=r"clock-1\.json is missing.*\(3 more; `evalpipe tasks check q4`"):
        load_task_set(folder)


def test_the_file_of_another_task_is_found(tmp_path: Path) -> None:
    folder = _frozen(tmp_path / "q4")
    _write_again(folder, "clock-2", (folder / "tasks/clock-1.json").read_bytes())
    _, problems = inspect_task_set(folder)
    assert [(one.kind, one.task_id) for one in problems] == [(SetProblemKind.TASK_IDS, "clock-2")]


def test_a_task_that_is_listed_twice_is_found(tmp_path: Path) -> None:
    folder = _frozen(tmp_path / "q4")
    record = TaskSet.model_validate_json((folder / "task_set.json").read_bytes())
    tasks = (*record.tasks, record.tasks[0])
    twice = record.model_copy(update={"tasks": tasks, "revision": revision_of("q4", "all", tasks)})
    (folder / "task_set.json").write_bytes(canonical_json(twice))
    _, problems = inspect_task_set(folder)
    assert [(one.kind, one.task_id) for one in problems] == [(SetProblemKind.TASK_IDS, "clock-1")]


def test_a_patch_that_was_changed_after_loading_is_not_given_out(tmp_path: Path) -> None:
    loaded = load_task_set(_frozen(tmp_path / "q4"))
    (tmp_path / "q4/patches/clock-2.test.patch").write_bytes(b"other")
    with pytest.raises(TaskSetError, match=r"clock-2\.test\.patch was changed"):
        loaded.test_patch("clock-2")


def test_files_that_belong_to_no_task_are_found(tmp_path: Path) -> None:
    folder = _frozen(tmp_path / "q4")
    surplus = [folder / "patches/clock-9.gold.patch", folder / "tasks/.clock-1.json.77.ab.tmp"]
    for path in surplus:
        path.write_bytes(b"")
    (folder / "terse").mkdir()
    (folder / "terse/clock-1.md").write_text("Own.\n")
    assert surplus_files(folder, ["clock-1", "clock-2", "clock-3"]) == sorted(surplus)
