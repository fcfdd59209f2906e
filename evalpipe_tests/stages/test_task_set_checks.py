"""Checking a frozen set against git, comparing two, and a set of an older version all the way to a verdict."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalpipe.grading import verdict_key
from evalpipe.sandbox import EngineUnavailable
from evalpipe.stages.freezing import freeze_task_set
from evalpipe.stages.grading_rows import cached_verdict, grade_patch, key_of_verdict
from evalpipe.stages.task_set_checks import FieldChange, check_task_set, compare_task_sets
from evalpipe.tasks import Sampling, SetProblemKind, TaskSetError, load_task_set
from evalpipe_tests.history.builder import git
from evalpipe_tests.stages import old_set
from evalpipe_tests.stages.old_set import OldBench, lay_old_workspace, make_mirror
from evalpipe_tests.stages.workspaces import TestBench


@pytest.fixture
def old(mined_root: Path, environment: Path, tmp_path: Path) -> OldBench:
    """A fresh clone with the old set; the Python that stands for its image is that of the mined workspace."""
    lay_old_workspace(tmp_path / "workspace")
    return OldBench(tmp_path / "workspace", environment)


def test_a_set_in_order_has_no_problem_and_needs_no_note(frozen: TestBench) -> None:
    report = check_task_set(frozen, "q")
    assert (report.problems, report.notes) == ((), ())
    assert (report.name, report.tasks) == ("q", 2)


def test_a_set_of_an_older_version_is_in_order(old: OldBench) -> None:
    make_mirror(old)
    report = check_task_set(old, old_set.NAME)
    assert (report.problems, report.notes, report.revision) == ((), (), old_set.REVISION)


def test_without_its_mirror_a_set_is_checked_as_far_as_it_goes(old: OldBench) -> None:
    report = check_task_set(old, old_set.NAME)
    assert report.problems == ()
    assert report.notes == (
        "the trees of 2 tasks were not checked, because the mirror of clock is not on this machine: "
        "`evalpipe mine clock` makes it",
    )


@pytest.mark.slow
def test_a_set_of_an_older_version_is_graded_and_its_verdicts_are_found_again(
    old: OldBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(verdict_key.__globals__, "GRADER_VERSION", "1")
    make_mirror(old)
    task_set = load_task_set(old.workspace.task_sets_dir / old_set.NAME)
    for task_id, task in task_set.tasks.items():
        key = key_of_verdict(old, task_set, task_id, task.gold_patch_sha256)
        assert key == old_set.VERDICT_KEYS[task_id]
        assert cached_verdict(old, task, key, task_set.gold_patch(task_id), {})["verdict"] == "resolved"
        boxes = old.boxes
        assert cached_verdict(old, task, key, task_set.gold_patch(task_id), {})["verdict"] == "resolved"
        assert old.boxes == boxes
    assert grade_patch(old, task, b"", {})["verdict"] == "fail_to_pass_failed"


def test_an_absent_image_and_a_lost_terse_text_are_notes(old: OldBench) -> None:
    make_mirror(old)
    old.old_image.folder = Path("/nowhere")
    terse = old.workspace.task_sets_dir / old_set.NAME / "terse" / "clock-9.md"
    terse.parent.mkdir()
    terse.write_text("Of no task.\n")
    report = check_task_set(old, old_set.NAME)
    assert report.problems == ()
    assert report.notes == (
        f"{terse} is the terse text of no task of this set",
        f"the image {old_set.IMAGE} of 2 tasks is not on this machine",
    )


def _no_engine(bench: OldBench) -> None:
    raise EngineUnavailable("nobody answers")


@pytest.mark.parametrize(
    ("sandbox", "note"),
    [
        (_no_engine, "1 images were not looked for, because no Docker engine answers"),
        (
            lambda bench: SimpleNamespace(name="docker"),
            f"the image {old_set.IMAGE} of 2 tasks was not looked for: it is for the process sandbox",
        ),
    ],
    ids=["no_engine", "another_sandbox"],
)
def test_images_that_cannot_be_looked_for_are_a_note(
    old: OldBench, monkeypatch: pytest.MonkeyPatch, sandbox: Callable[[OldBench], object], note: str
) -> None:
    make_mirror(old)
    monkeypatch.setattr(OldBench, "sandbox", property(sandbox))
    report = check_task_set(old, old_set.NAME)
    assert (report.problems, report.notes) == ((), (note,))


def test_everything_that_is_wrong_is_listed(frozen: TestBench) -> None:
    folder = frozen.workspace.task_sets_dir / "q"
    first, second = load_task_set(folder).tasks
    (folder / "patches" / f"{first}.gold.patch").write_bytes(b"other")
    (folder / "patches" / "clock-9.test.patch").write_bytes(b"")
    shutil.rmtree(frozen.mirror_path("clock"))
    frozen._mirrors.clear()
    shutil.copytree(frozen.workspace.root / "source.git", frozen.mirror_path("clock"))
    report = check_task_set(frozen, "q")
    assert [(one.kind, one.task_id) for one in report.problems] == [
        (SetProblemKind.CHANGED_FILE, first),
        (SetProblemKind.SURPLUS_FILE, None),
    ]
    # A mirror of another history: the commits of the set are not in it.
    shutil.rmtree(frozen.mirror_path("clock"))
    git(frozen.workspace.root, "init", "--quiet", "--bare", str(frozen.mirror_path("clock")))
    report = check_task_set(frozen, "q")
    assert [(one.kind, one.task_id) for one in report.problems][2:] == [(SetProblemKind.TREE, second)]
    assert "not in the mirror" in report.problems[-1].text


def test_a_set_record_that_cannot_be_read_is_the_one_problem(frozen: TestBench) -> None:
    (frozen.workspace.task_sets_dir / "q" / "task_set.json").write_bytes(b"{")
    report = check_task_set(frozen, "q")
    assert [one.kind for one in report.problems] == [SetProblemKind.NOT_A_RECORD]
    assert (report.revision, report.tasks) == (None, 0)


def test_an_unknown_set_is_told_with_those_that_there_are(frozen: TestBench) -> None:
    with pytest.raises(TaskSetError, match=r"there is no frozen set none in .* there are: q"):
        check_task_set(frozen, "none")


def test_comparison_tells_tasks_added_and_dropped(frozen: TestBench) -> None:
    freeze_task_set(frozen, "small", [frozen.repository], Sampling(1, 7), provisional=False)
    (kept,) = load_task_set(frozen.workspace.task_sets_dir / "small").tasks
    (other,) = [one for one in load_task_set(frozen.workspace.task_sets_dir / "q").tasks if one != kept]
    comparison = compare_task_sets(frozen, "small", "q")
    assert (comparison.added, comparison.dropped, comparison.changed) == ((), (other,), {})
    comparison = compare_task_sets(frozen, "q", "small")
    assert (comparison.added, comparison.dropped, comparison.changed) == ((other,), (), {})


def test_comparison_tells_fields_that_changed_and_of_lists_what_changed_in_them(frozen: TestBench) -> None:
    rows = [
        {**row, "pass_to_pass": [*row["pass_to_pass"], "test_more.py::test_more"]}
        for row in frozen.lake.rows("validated_tasks", "clock")
    ]
    frozen.lake.write("validated_tasks", rows, "clock")
    frozen.rewrite("data/repos/clock.yaml", "memory: 1g", "memory: 2g")
    freeze_task_set(frozen, "later", [frozen.repository], provisional=False)
    changed = compare_task_sets(frozen, "later", "q").changed
    assert list(changed.values()) == 2 * [
        (
            FieldChange("environment.memory_bytes", 1 << 30, 2 << 30),
            FieldChange("pass_to_pass", [], ["test_more.py::test_more"]),
        )
    ]


def test_a_list_in_another_order_is_told_whole(frozen: TestBench) -> None:
    rows = [
        {**row, "pass_to_pass": list(reversed(row["pass_to_pass"]))}
        for row in frozen.lake.rows("validated_tasks", "clock")
    ]
    frozen.lake.write("validated_tasks", rows, "clock")
    freeze_task_set(frozen, "later", [frozen.repository], provisional=False)
    for (change,) in compare_task_sets(frozen, "later", "q").changed.values():
        assert change.path == "pass_to_pass"
        assert change.after == list(reversed(change.before))
