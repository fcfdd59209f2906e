"""Tasks that a team writes itself: kept, mined, validated, frozen and graded like those of the history."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalpipe.config import ConfigError
from evalpipe.stages.added_tasks import AddedTaskError
from evalpipe.stages.adding import add_task
from evalpipe.stages.freezing import freeze_task_set
from evalpipe.stages.images import build_images
from evalpipe.stages.judging import judge_candidates
from evalpipe.stages.mining import mine_repository, mining_funnel, stored_mining_funnel
from evalpipe.stages.task_set_checks import check_task_set
from evalpipe.stages.validating import ValidationPass, validate_candidate
from evalpipe.tasks import load_task_set
from evalpipe_tests.history.builder import LINK, SUBMODULE, Builder, git
from evalpipe_tests.stages.added import PRODUCT, TEST, TaskFolder
from evalpipe_tests.stages.workspaces import TestBench

pytestmark = pytest.mark.slow

COMMIT = "57eed34fa66185d7b8ce0e22c85b579023696a75"
ID = "clock-midnight-57eed34fa6"


@pytest.fixture
def written(mined: TestBench, tmp_path: Path) -> TaskFolder:
    return TaskFolder(mined.workspace.root / "source.git", tmp_path / "elsewhere" / "midnight")


def _rows(bench: TestBench) -> list[dict[str, Any]]:
    return bench.lake.rows("candidate_commits", "clock")


def _added(bench: TestBench) -> list[dict[str, Any]]:
    return [row for row in _rows(bench) if row["shape"] == "added"]


def _mine(bench: TestBench) -> list[str]:
    return mine_repository(bench, bench.repository).kept


def test_a_task_becomes_a_candidate_with_the_same_commit_wherever_it_is_added(
    mined: TestBench, written: TaskFolder
) -> None:
    before = _rows(mined)
    _, candidate = add_task(mined, written.write())
    assert candidate == ID
    assert _mine(mined)[-1] == ID
    assert _rows(mined)[:-1] == before
    (row,) = _added(mined)
    assert (row["candidate_id"], row["commit"], row["reason"]) == (ID, COMMIT, "kept")
    assert (row["source_files"], row["test_files"]) == ([b"clock.py"], [b"tests/test_midnight.py"])
    assert (row["category"], row["category_rule"]) == ("single_file_repair", "override")
    assert row["problem_text"] == "The day begins at noon, and it should begin at midnight.\n"
    assert row["merge_date"].isoformat() == "2026-05-31T00:00:00+00:00"
    mirror = mined.mirror_path("clock")
    assert git(mirror, "rev-parse", f"refs/evalpipe/kept/{COMMIT}", f"{COMMIT}^").decode().split() == [
        COMMIT,
        row["parent"],
    ]


def test_funnels_tell_added_tasks_apart_from_changes(mined: TestBench, written: TaskFolder) -> None:
    changes = mine_repository(mined, mined.repository).changes
    add_task(mined, written.write())
    summary = mine_repository(mined, mined.repository)
    assert (summary.changes, summary.added) == (changes, 1)
    assert mining_funnel(summary)[-1] == ("added", 1)
    assert stored_mining_funnel(mined, ["clock"])[-2:] == [("kept", 3), ("added", 1)]


def test_a_task_stays_through_every_kind_of_mining(mined: TestBench, written: TaskFolder) -> None:
    add_task(mined, written.write())
    _mine(mined)
    first = _rows(mined)
    _mine(mined)
    assert _rows(mined) == first
    # New changes are read from where the history ended, with the added task after it.
    builder = Builder(mined.workspace.root / "source.git", clock=1_800_000_000)
    builder.branches["main"] = git(builder.path, "rev-parse", "main").decode().strip()
    builder.commit({b"clock.py": b"# New.\n", b"test_new.py": b"def test_new():\n    pass\n"}, "New (#9)")
    assert _mine(mined)[-1] == ID
    rows = _rows(mined)
    assert [row["number"] for row in rows] == [None, 1, 2, 3, 4, 5, 9, None]
    assert rows[-1] == first[-1]
    # A mirror and a table that were lost are made again, with the same commit.
    mined._mirrors.clear()
    shutil.rmtree(mined.mirror_path("clock"))
    _mine(mined)
    assert git(mined.mirror_path("clock"), "cat-file", "-t", COMMIT) == b"commit\n"
    mined.lake.path("candidate_commits", "clock").unlink()
    _mine(mined)
    assert _rows(mined) == rows


def test_an_edited_task_is_another_candidate_and_a_removed_one_is_none(mined: TestBench, written: TaskFolder) -> None:
    add_task(mined, written.write())
    _mine(mined)
    kept = mined.workspace.added_tasks_dir / "clock" / "midnight" / "task.yaml"
    text = kept.read_text()
    kept.write_text(text.replace("should begin", "must begin"))
    _mine(mined)
    (row,) = _added(mined)
    assert (row["candidate_id"], row["problem_text"]) == (
        ID,
        "The day begins at noon, and it must begin at midnight.\n",
    )
    kept.write_text(text.replace("Begin the day", "Start the day"))
    _mine(mined)
    assert [row["candidate_id"] != ID for row in _added(mined)] == [True]
    shutil.rmtree(kept.parent)
    _mine(mined)
    assert _added(mined) == []


def test_the_same_task_may_be_added_again_and_another_may_not_take_its_id(
    mined: TestBench, written: TaskFolder
) -> None:
    file = written.write()
    add_task(mined, file)
    assert add_task(mined, file)[1] == ID
    kept = mined.workspace.added_tasks_dir / "clock" / "midnight"
    assert add_task(mined, kept / "task.yaml")[1] == ID
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    assert set(before) == {"task.yaml", "test.patch", "reference.patch"}
    written.write(product={b"clock.py": b"def noon():\n    return 0\n"})
    with pytest.raises(AddedTaskError, match="the id midnight is taken by another task in data/tasks/clock/midnight"):
        add_task(mined, file)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before


def test_the_text_may_stand_in_a_file_of_its_own(mined: TestBench, written: TaskFolder) -> None:
    written.fields = {"problem": "", "problem_file": "problem.md"}
    file = written.write()
    (written.folder / "problem.md").write_bytes("\ufeffEine Uhr, die um zwölf beginnt.\n".encode())
    add_task(mined, file)
    _mine(mined)
    assert _added(mined)[0]["problem_text"] == "Eine Uhr, die um zwölf beginnt.\n"


def _write_patch(name: str, data: bytes) -> Callable[[TaskFolder], object]:
    return lambda written: (written.folder / name).write_bytes(data)


def _edit_patch(name: str, edit: Callable[[bytes], bytes]) -> Callable[[TaskFolder], None]:
    def change(written: TaskFolder) -> None:
        path = written.folder / name
        path.write_bytes(edit(path.read_bytes()))

    return change


_ESCAPE = b"diff --git a/../out b/../out\nnew file mode 100644\n--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n"
_BINARY = b"diff --git a/clock.py b/clock.py\nindex 1..2 100644\nBinary files a/clock.py and b/clock.py differ\n"
BAD: dict[str, tuple[dict[str, str], Callable[[TaskFolder], object] | None, str]] = {
    "base_unknown": ({"base": "d" * 40}, None, "its base d{40} is not in the mirror of clock: push it"),
    "date_before_the_base": ({"date": "2001-01-01"}, None, "its date 2001-01-01 is before its base commit's"),
    "reference_empty": ({}, _write_patch("reference.patch", b"\n"), "reference_patch is empty"),
    "tests_empty": ({}, _write_patch("test.patch", b""), "test_patch is empty"),
    "does_not_apply": (
        {},
        _edit_patch("reference.patch", lambda data: data.replace(b"-    return 12", b"-    return 13")),
        "reference_patch does not apply to .*clock.py",
    ),
    "no_patch": ({}, _write_patch("reference.patch", b"just words\n"), "reference_patch does not apply to"),
    "cut_off": ({}, _edit_patch("test.patch", lambda data: data[:-20]), "test_patch does not apply to"),
    "saved_with_cr_lf": (
        {},
        _edit_patch("reference.patch", lambda data: data.replace(b"\n", b"\r\n")),
        "reference_patch was saved with CR LF",
    ),
    "binary_left_out": ({}, _write_patch("reference.patch", _BINARY), "only says that a binary file differs"),
    "path_outside": ({}, _write_patch("reference.patch", _ESCAPE), "reference_patch does not apply to .*out"),
    "file_missing": ({}, lambda written: (written.folder / "test.patch").unlink(), r"test\.patch cannot be read"),
    "text_not_utf_8": (
        {"problem": "", "problem_file": "problem.md"},
        _write_patch("problem.md", b"caf\xe9\n"),
        r"problem\.md is not UTF-8",
    ),
    "text_empty": (
        {"problem": "", "problem_file": "problem.md"},
        _write_patch("problem.md", b" \n"),
        r"problem\.md is empty",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_makes_no_task_is_told_and_nothing_is_kept(mined: TestBench, written: TaskFolder, case: str) -> None:
    written.fields, change, message = BAD[case]
    file = written.write()
    if change is not None:
        change(written)
    with pytest.raises(AddedTaskError, match=message):
        add_task(mined, file)
    assert not mined.workspace.added_tasks_dir.exists()


@pytest.mark.parametrize(
    ("tests", "product", "message"),
    [
        ({b"midnight.py": b"x\n"}, PRODUCT, r"test_patch changes what is no test: midnight\.py"),
        (TEST, {**PRODUCT, b"test_noon.py": b"x\n"}, r"reference_patch changes tests: test_noon\.py"),
        ({b"test_noon.py": None}, PRODUCT, "test_patch adds or changes no file"),
        (TEST, {b"link": (LINK, b"/etc/passwd")}, r"'link'.*link_outside_tree"),
        (TEST, {b"lib": (SUBMODULE, b"1" * 40)}, r"'lib'.*submodule"),
        (TEST, {b"a\x01b.py": b"x\n"}, "unsafe_characters"),
    ],
    ids=["not_a_test", "hidden_test", "deletes_alone", "symlink", "submodule", "control_character"],
)
def test_patches_with_the_wrong_files_are_told(
    mined: TestBench, written: TaskFolder, tests: Any, product: Any, message: str
) -> None:
    with pytest.raises(AddedTaskError, match=message):
        add_task(mined, written.write(tests, product))
    assert not mined.workspace.added_tasks_dir.exists()


def test_everything_that_is_wrong_with_the_patches_is_told_at_once(mined: TestBench, written: TaskFolder) -> None:
    file = written.write({b"midnight.py": b"x\n"}, {b"test_noon.py": b"x\n"})
    with pytest.raises(AddedTaskError) as error:
        add_task(mined, file)
    lines = str(error.value).splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"{file}: ") for line in lines)


def test_binary_files_and_exact_bytes_are_kept(mined: TestBench, written: TaskFolder) -> None:
    product = {**PRODUCT, b"logo.png": bytes(range(256)), b"caf\xc3\xa9 \xff.txt": b"th\xe9\r\nno end"}
    add_task(mined, written.write(product=product))
    _mine(mined)
    (row,) = _added(mined)
    mirror = mined.mirror(mined.repository.name)
    tree = mirror.read_tree(row["commit"])
    assert mirror.read_files(tree, [b"caf\xc3\xa9 \xff.txt", b"logo.png"]) == {
        path: data for path, data in product.items() if path != b"clock.py"
    }


def test_a_repository_that_was_not_mined_is_told(mined: TestBench, written: TaskFolder) -> None:
    file = written.write()
    shutil.rmtree(mined.mirror_path("clock"))
    with pytest.raises(AddedTaskError, match="clock was not mined yet: run `evalpipe mine clock` first"):
        add_task(mined, file)


def test_an_unknown_repository_is_told(mined: TestBench, written: TaskFolder) -> None:
    written.fields = {"repository": "clok"}
    with pytest.raises(ConfigError, match="did you mean 'clock'"):
        add_task(mined, written.write())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("id: midnight", "id: noon"), "lies in the folder midnight, and says that its id is noon"),
        (("repository: clock", "repository: other"), "lies in the folder of clock, and says"),
        (("category: single_file_repair", "category: big"), "'big' is not a known category"),
        (("base: ", "base: main #"), "is not a full commit id"),
    ],
)
def test_files_that_were_broken_later_stop_mining_and_lose_nothing(
    mined: TestBench, written: TaskFolder, change: tuple[str, str], message: str
) -> None:
    add_task(mined, written.write())
    _mine(mined)
    before = _rows(mined)
    kept = mined.workspace.added_tasks_dir / "clock" / "midnight" / "task.yaml"
    kept.write_text(kept.read_text().replace(*change))
    with pytest.raises(AddedTaskError, match=message):
        _mine(mined)
    assert _rows(mined) == before


def test_an_added_task_is_validated_frozen_and_checked_like_any_other(mined: TestBench, written: TaskFolder) -> None:
    add_task(mined, written.write())
    _mine(mined)
    build_images(mined, mined.repository)
    (row,) = _added(mined)
    for validation_pass in ValidationPass:
        validate_candidate(mined, mined.repository, row, validation_pass, same_day=False, labels={})
        mined.days_later(1)
    judged = {one["candidate_id"]: one for one in judge_candidates(mined, mined.repository)}
    assert judged[ID]["validation_class"] == "valid"
    assert list(judged[ID]["fail_to_pass"]) == ["tests/test_midnight.py::test_midnight"]
    freeze_task_set(mined, "own", [mined.repository], provisional=False)
    task = load_task_set(mined.workspace.task_sets_dir / "own").tasks[ID]
    assert (task.shape, task.problem.source, task.commit) == ("added", "task_file", COMMIT)
    assert check_task_set(mined, "own").problems == ()
