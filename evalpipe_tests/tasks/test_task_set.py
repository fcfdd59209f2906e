"""Frozen sets: the same bytes every time, whole or not at all, and never changed unnoticed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evalpipe.lake import write_atomically
from evalpipe.tasks import (
    TaskSet,
    TaskSetError,
    TaskWithPatches,
    freeze,
    frozen_sets,
    load_task_set,
    terse_texts,
)
from evalpipe_tests.tasks.records import GOLD_PATCH, with_patches


def _tasks(**fields: object) -> list[TaskWithPatches]:
    return [
        with_patches(task_id=f"clock-{number}", merge_date=f"2026-03-{number:02}T00:00:00+00:00", **fields)
        for number in (3, 1, 2)
    ]


def _freeze(folder: Path, tasks: Sequence[TaskWithPatches], *, provisional: bool = False) -> TaskSet:
    return freeze(folder, tasks, None, provisional=provisional, write=write_atomically)


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_set_is_read_back_in_the_order_of_merges(tmp_path: Path) -> None:
    record = _freeze(tmp_path / "q4", _tasks())
    loaded = load_task_set(tmp_path / "q4")
    assert loaded.record == record
    assert list(loaded.tasks) == ["clock-1", "clock-2", "clock-3"]
    assert loaded.gold_patch("clock-2") == GOLD_PATCH
    assert loaded.tasks["clock-3"] == next(item.task for item in _tasks() if item.task.task_id == "clock-3")


def test_same_tasks_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    _freeze(tmp_path / "a" / "q4", _tasks())
    for seed in range(5):
        tasks = _tasks()
        random.Random(seed).shuffle(tasks)
        _freeze(tmp_path / str(seed) / "q4", tasks)
        assert _bytes(tmp_path / str(seed)) == _bytes(tmp_path / "a")


def test_freezing_again_changes_nothing(tmp_path: Path) -> None:
    _freeze(tmp_path / "q4", _tasks())
    before = _bytes(tmp_path)
    _freeze(tmp_path / "q4", _tasks())
    assert _bytes(tmp_path) == before


def test_layout_is_the_one_of_the_design(tmp_path: Path) -> None:
    _freeze(tmp_path / "q4", _tasks()[:1])
    assert set(_bytes(tmp_path / "q4")) == {
        "task_set.json",
        "tasks/clock-3.json",
        "patches/clock-3.gold.patch",
        "patches/clock-3.test.patch",
    }


def test_a_set_is_never_replaced_by_another(tmp_path: Path) -> None:
    _freeze(tmp_path / "q4", _tasks())
    before = _bytes(tmp_path)
    with pytest.raises(TaskSetError, match="choose a new name"):
        _freeze(tmp_path / "q4", _tasks()[:2])
    assert _bytes(tmp_path) == before


def test_damaged_set_is_not_silently_replaced(tmp_path: Path) -> None:
    _freeze(tmp_path / "q4", _tasks())
    (tmp_path / "q4" / "task_set.json").write_bytes(b"{")
    with pytest.raises(TaskSetError, match=r"task_set\.json"):
        _freeze(tmp_path / "q4", _tasks())


def test_nothing_is_no_set(tmp_path: Path) -> None:
    with pytest.raises(TaskSetError, match="evalpipe validate"):
        _freeze(tmp_path / "q4", [])
    assert frozen_sets(tmp_path) == []


@pytest.mark.parametrize("name", ["-x", "a b", "ä", ".hidden", "x" * 121])
def test_name_of_a_set_is_a_slug(tmp_path: Path, name: str) -> None:
    with pytest.raises(TaskSetError, match="cannot name a task set"):
        _freeze(tmp_path / name, _tasks())


def test_task_of_one_day_needs_leave_and_marks_the_set(tmp_path: Path) -> None:
    tasks = [*_tasks(), with_patches(task_id="early", provisional=True)]
    with pytest.raises(TaskSetError, match=r"1 of 4 tasks .* early"):
        _freeze(tmp_path / "q4", tasks)
    assert not (tmp_path / "q4").exists()
    assert _freeze(tmp_path / "q4", tasks, provisional=True).provisional


def test_leave_alone_does_not_mark_a_set(tmp_path: Path) -> None:
    assert not _freeze(tmp_path / "q4", _tasks(), provisional=True).provisional


@pytest.mark.parametrize("survivors", range(10))
def test_a_killed_freeze_leaves_no_set_and_the_next_one_completes_it(tmp_path: Path, survivors: int) -> None:
    written: list[Path] = []

    def dying(path: Path, data: bytes) -> None:
        if len(written) == survivors:
            raise KeyboardInterrupt
        write_atomically(path, data)
        written.append(path)

    folder = tmp_path / "q4"
    with pytest.raises(KeyboardInterrupt):
        freeze(folder, _tasks(), None, provisional=False, write=dying)
    assert len(written) == survivors
    assert frozen_sets(tmp_path) == []
    with pytest.raises(TaskSetError, match=r"task_set\.json is missing"):
        load_task_set(folder)
    _freeze(folder, _tasks())
    assert frozen_sets(tmp_path) == [folder]
    assert len(load_task_set(folder).tasks) == 3


def _edit(old: bytes, new: bytes) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, new, 1))

    return edit


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("tasks/clock-2.json", _edit(b"midnight", b"midnoon")),
        ("tasks/clock-2.json", _edit(b"{", b"")),
        ("tasks/clock-2.json", _edit(b'"schema_version": 1', b'"schema_version": 2')),
        ("tasks/clock-2.json", Path.unlink),
        ("patches/clock-2.gold.patch", _edit(b"gold", b"g0ld")),
        ("patches/clock-2.gold.patch", Path.unlink),
        ("patches/clock-2.test.patch", _edit(b"test", b"t3st")),
        ("patches/clock-2.test.patch", Path.unlink),
        ("task_set.json", _edit(b'"selection_rule": "all"', b'"selection_rule": "best"')),
        ("task_set.json", _edit(b'"provisional": false', b'"provisional": true')),
        ("task_set.json", _edit(b'"name": "q4"', b'"name": "q5"')),
        ("task_set.json", _edit(b'"revision": "', b'"revision": "0')),
        ("task_set.json", _edit(b'"schema_version": 1', b'"schema_version": 2')),
        ("task_set.json", Path.unlink),
    ],
)
def test_changed_file_is_found_and_named(tmp_path: Path, file: str, change: Callable[[Path], None]) -> None:
    _freeze(tmp_path / "q4", _tasks())
    change(tmp_path / "q4" / file)
    with pytest.raises(TaskSetError) as error:
        load_task_set(tmp_path / "q4")
    assert str(tmp_path / "q4" / file) in str(error.value)


def test_dropping_a_task_from_the_set_is_found(tmp_path: Path) -> None:
    record = _freeze(tmp_path / "q4", _tasks())
    shorter = record.model_copy(update={"tasks": record.tasks[:2]})
    (tmp_path / "q4" / "task_set.json").write_text(shorter.model_dump_json())
    with pytest.raises(TaskSetError, match=r"task_set\.json was changed"):
        load_task_set(tmp_path / "q4")


def test_terse_texts_are_read_by_task(tmp_path: Path) -> None:
    assert terse_texts(tmp_path) == {}
    (tmp_path / "terse").mkdir()
    (tmp_path / "terse" / "clock-1.md").write_text("Kürzer.\n", encoding="utf-8")
    assert terse_texts(tmp_path) == {"clock-1": "Kürzer.\n"}
