"""What must be true of a task: its lists, its patches, its terse text, and the tree that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalpipe.history import Repository, ScratchObjects
from evalpipe.tasks import PATCH_BYTES, Problem, SetProblemKind, Task, task_problems, tree_problem
from evalpipe_tests.history.builder import EXECUTABLE, LINK, SUBMODULE, Builder, File
from evalpipe_tests.tasks.records import GOLD_PATCH, TEST_PATCH, task_record

A, B = "tests/test_clock.py::a", "tests/test_clock.py::b"


def _found(task: Task, gold: bytes = GOLD_PATCH, test: bytes = TEST_PATCH) -> list[tuple[SetProblemKind, str]]:
    problems = list(task_problems(task, gold, test))
    assert {problem.task_id for problem in problems} <= {task.task_id}
    return [(problem.kind, problem.text) for problem in problems]


def test_a_task_in_order_has_no_problem() -> None:
    assert _found(task_record()) == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"fail_to_pass": (A, B), "pass_to_pass": (B,)}, "1 tests are in fail-to-pass and in pass-to-pass"),
        ({"fail_to_pass": (A, A)}, "more than once in one list"),
        ({"pass_to_pass": (B, B)}, "more than once in one list"),
        ({"fail_to_pass": (A,), "quarantined": (A,)}, "quarantined, and in a list too"),
    ],
)
def test_test_lists_that_contradict_themselves_are_found(fields: dict[str, Any], text: str) -> None:
    ((kind, found),) = _found(task_record(**fields))
    assert kind is SetProblemKind.TEST_LISTS
    assert text in found


@pytest.mark.parametrize(
    ("gold", "test", "fields", "text"),
    [
        (b"", TEST_PATCH, {}, "reference patch is empty"),
        (b"x" * (PATCH_BYTES + 1), TEST_PATCH, {}, "none above"),
        (GOLD_PATCH, b"", {}, "changes no test file"),
        (GOLD_PATCH, TEST_PATCH, {"test_files": ()}, "changes no test file"),
    ],
)
def test_patches_that_cannot_make_a_task_are_found(gold: bytes, test: bytes, fields: dict[str, Any], text: str) -> None:
    ((kind, found),) = _found(task_record(**fields), gold, test)
    assert kind is SetProblemKind.PATCHES
    assert text in found


def test_every_problem_of_a_task_is_found() -> None:
    task = task_record(fail_to_pass=(A, A), pass_to_pass=(A,), problem=Problem(source="issue", original="x", terse=" "))
    assert [kind for kind, _ in _found(task, b"", b"")] == [
        SetProblemKind.TEST_LISTS,
        SetProblemKind.TEST_LISTS,
        SetProblemKind.PATCHES,
        SetProblemKind.PATCHES,
        SetProblemKind.TERSE_TEXT,
    ]


_NAMING_PATCH = b"--- a/clock.py\n+++ b/clock.py\n@@ -1 +1 @@\n-def noon():\n+def show_midday():\n"


def _with_terse(terse: str, *, interface_named: bool = False) -> Task:
    problem = Problem(source="issue", original="Noon.", terse=terse)
    return task_record(problem=problem, interface_named=interface_named)


@pytest.mark.parametrize("terse", ["Add show_midday.", f"See {'0123456789' * 2}.", "Mend #12.", "Edit clock.py."])
def test_a_terse_text_that_names_the_answer_is_found(terse: str) -> None:
    assert [kind for kind, _ in _found(_with_terse(terse), _NAMING_PATCH)] == [SetProblemKind.TERSE_TEXT]


def test_a_terse_text_may_name_the_interface_that_the_tests_need() -> None:
    assert _found(_with_terse("Add show_midday.", interface_named=True), _NAMING_PATCH) == []
    assert _found(_with_terse("Edit clock.py.", interface_named=True), _NAMING_PATCH) != []


BASE: dict[bytes, File] = {
    b"clock.py": b"noon = 11\r\nhours = 23\r\n",
    b"logo.png": bytes(range(256)),
    b"run": b"#!/bin/sh\n",
    b"latin.txt": b"caf\xe9\n",
    b"no newline": b"end",
    b"tests/test_clock.py": b"assert False\n",
    b"lib": (SUBMODULE, b"1" * 40),
}
CHANGES: dict[str, dict[bytes, File]] = {
    "text_with_cr_lf": {b"clock.py": b"noon = 12\r\nhours = 23\r\n"},
    "binary": {b"logo.png": bytes(reversed(range(256)))},
    "mode_alone": {b"run": (EXECUTABLE, b"#!/bin/sh\n")},
    "not_utf_8": {b"latin.txt": b"th\xe9\n", b"\xff name": b"x"},
    "no_last_newline": {b"no newline": b"END"},
    "symlink": {b"link": (LINK, b"clock.py"), b"clock.py": None},
    "empty_file": {b"pkg/__init__.py": b""},
    "submodule": {b"lib": (SUBMODULE, b"2" * 40), b"clock.py": b"noon = 12\r\n"},
}


@pytest.fixture
def history(tmp_path: Path) -> tuple[Builder, Repository]:
    builder = Builder(tmp_path / "source.git")
    builder.commit(BASE)
    return builder, Repository(builder.path)


def _merged(builder: Builder, repository: Repository, change: dict[bytes, File]) -> tuple[Task, bytes, bytes]:
    parent = builder.branches["main"]
    commit = builder.commit({**change, b"tests/test_clock.py": b"assert True\n"})
    gold = repository.diff(parent, commit, list(change))
    test = repository.diff(parent, commit, [b"tests/test_clock.py"])
    return task_record(parent=parent, commit=commit), gold, test


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_patches_of_every_kind_make_the_exact_tree(
    history: tuple[Builder, Repository], change: dict[bytes, File]
) -> None:
    task, gold, test = _merged(*history, change)
    with ScratchObjects(history[1]) as scratch:
        assert tree_problem(scratch, task, gold, test) is None


def test_patches_that_make_another_tree_are_found(history: tuple[Builder, Repository]) -> None:
    task, gold, test = _merged(*history, CHANGES["text_with_cr_lf"])
    with ScratchObjects(history[1]) as scratch:
        for wrong in (gold.replace(b"noon = 12", b"noon = 13"), b""):
            problem = tree_problem(scratch, task, wrong, test)
            assert problem is not None
            assert problem.kind is SetProblemKind.TREE
            assert "another tree" in problem.text
        problem = tree_problem(scratch, task, gold.replace(b"\r\n", b"\n"), test)
        assert problem is not None
        assert "do not apply" in problem.text


def test_commits_that_are_gone_are_found(history: tuple[Builder, Repository]) -> None:
    task, gold, test = _merged(*history, CHANGES["text_with_cr_lf"])
    with ScratchObjects(history[1]) as scratch:
        for gone in ({"commit": "d" * 40}, {"parent": "d" * 40}):
            problem = tree_problem(scratch, task.model_copy(update=gone), gold, test)
            assert problem is not None
            assert "not in the mirror" in problem.text


def test_test_files_that_the_change_only_deletes_are_found(history: tuple[Builder, Repository]) -> None:
    builder, repository = history
    parent = builder.branches["main"]
    commit = builder.commit({b"clock.py": b"noon = 12\n", b"tests/test_clock.py": None})
    task = task_record(parent=parent, commit=commit)
    gold, test = (repository.diff(parent, commit, [path]) for path in (b"clock.py", b"tests/test_clock.py"))
    with ScratchObjects(repository) as scratch:
        problem = tree_problem(scratch, task, gold, test)
    assert problem is not None
    assert "none of its test files" in problem.text
