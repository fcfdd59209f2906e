"""`task.yaml`: what it must say, and what is told of one that is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evalpipe
from evalpipe.config import AddedTaskConfig, ConfigError, load_added_task

GOOD = {
    "repository": "shop",
    "id": "refund-rounding",
    "base": "0123456789abcdef0123" * 2,
    "title": "Refunds are rounded down",
    "problem": "|\n  A refund of 1.999 gives 1.99.",
    "test_patch": "test.patch",
    "reference_patch": "reference.patch",
    "category": "single_file_repair",
    "date": "2026-05-31",
}


def _file(folder: Path, **fields: str | None) -> Path:
    path = folder / "task.yaml"
    lines = {name: value for name, value in {**GOOD, **fields}.items() if value is not None}
    path.write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
    return path


def test_a_task_file_is_read(tmp_path: Path) -> None:
    task = load_added_task(_file(tmp_path), "task.yaml")
    assert task.problem == "A refund of 1.999 gives 1.99.\n"
    assert task.files == ["test.patch", "reference.patch"]
    task = load_added_task(_file(tmp_path, problem=None, problem_file="problem.md"), "task.yaml")
    assert task.files == ["problem.md", "test.patch", "reference.patch"]


def test_the_page_on_task_sets_shows_a_task_file_and_every_field(tmp_path: Path) -> None:
    page = (Path(evalpipe.__file__).parents[1] / "docs/task-sets.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(repository:.*?)```", page, re.DOTALL)
    (tmp_path / "task.yaml").write_text(example)
    assert load_added_task(tmp_path / "task.yaml", "task.yaml").id == "refund-rounding"
    table = page[page.index("| field |") :]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(AddedTaskConfig.model_fields)


@pytest.mark.parametrize("field", [name for name in GOOD if name != "problem"])
def test_a_field_that_is_missing_is_named_with_what_it_is(tmp_path: Path, field: str) -> None:
    with pytest.raises(ConfigError, match=rf"task\.yaml:1: {field}: is missing: \w+"):
        load_added_task(_file(tmp_path, **{field: None}), "task.yaml")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"base": "main"}, "'main' is not a full commit id"),
        ({"base": "0123abc"}, "is not a full commit id"),
        ({"id": "Refund Rounding"}, "is not a name"),
        ({"title": "'  '"}, "title: is empty"),
        ({"title": "|\n  one\n  two"}, "must be one line"),
        ({"problem": None}, "write either problem or problem_file"),
        ({"problem_file": "problem.md"}, "write either problem or problem_file"),
        ({"test_patch": "../test.patch"}, "is not the name of a file beside this one"),
        ({"test_patch": "/etc/passwd"}, "is not the name of a file beside this one"),
        ({"test_patch": ".hidden"}, "is not the name of a file beside this one"),
        ({"reference_patch": "task.yaml"}, "is not the name of a file beside this one"),
        ({"reference_patch": "test.patch"}, "two fields name one file"),
        ({"category": "single_file_repairs"}, "did you mean 'single_file_repair'"),
        ({"date": "31.05.2026"}, "is not a day; write it as 2026-05-31"),
        ({"date": "2026-02-30"}, "is not a day"),
        ({"date": "20260531"}, "is not a day|must be text"),
        ({"dates": "2026-05-31"}, "unknown field"),
    ],
)
def test_a_wrong_field_is_told_with_what_would_be_right(
    tmp_path: Path, fields: dict[str, str | None], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_added_task(_file(tmp_path, **fields), "task.yaml")


def test_every_wrong_field_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load_added_task(_file(tmp_path, base="main", date="soon", category="big"), "task.yaml")
    assert [problem.field for problem in error.value.problems] == ["base", "category", "date"]
