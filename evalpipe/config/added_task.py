"""`task.yaml`: a task that a team writes itself, because its history does not hold it. See docs/task-sets.md."""

import datetime as dt
import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from evalpipe.config.explain import explain
from evalpipe.config.problems import ConfigError
from evalpipe.config.repository import TaskCategory
from evalpipe.config.values import ConfigModel, Slug, Text, refuse, wrong
from evalpipe.config.yaml_files import read_yaml

TASK_FILE = "task.yaml"


def _check_commit(value: str) -> str:
    if re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", value) is None:
        raise wrong(f"{value!r} is not a full commit id, as `git rev-parse HEAD` prints it; branches move")
    return value


def _check_line(value: str) -> str:
    if "\n" in value.strip():
        raise wrong("must be one line; the whole text belongs to `problem`")
    return value.strip()


def _check_file_name(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", value) is None or value == TASK_FILE:
        raise wrong(f"{value!r} is not the name of a file beside this one, without folders")
    return value


def _check_day(value: str) -> str:
    try:
        return dt.datetime.strptime(value, "%Y-%m-%d").date().isoformat()
    except ValueError:
        raise wrong(f"{value!r} is not a day; write it as 2026-05-31") from None


CommitId = Annotated[str, AfterValidator(_check_commit)]
Line = Annotated[Text, AfterValidator(_check_line)]
FileName = Annotated[str, AfterValidator(_check_file_name)]
Day = Annotated[str, AfterValidator(_check_day)]


class AddedTaskConfig(ConfigModel):
    """A task of a team's own: an issue with its tests and a reference change, both as patches against one commit."""

    repository: Slug = Field(description="the repository that it belongs to, a file of data/repos")
    id: Slug = Field(description="a short name of its own in that repository, as `refund-rounding`")
    base: CommitId = Field(description="the full id of the commit that the patches apply to")
    title: Line = Field(description="what is wrong or wanted, in one line")
    problem: Text | None = Field(default=None, description="the text that an agent gets")
    problem_file: FileName | None = Field(default=None, description="or a file beside this one that has it, in UTF-8")
    test_patch: FileName = Field(description="a file beside this one: the tests, as a patch against the base")
    reference_patch: FileName = Field(description="a file beside this one: a solution, as a patch against the base")
    category: TaskCategory = Field(description="what kind of work it is")
    date: Day = Field(description="the day that it stands for, as 2026-05-31; its image is built as of that day")

    @model_validator(mode="after")
    def _one_text_and_distinct_files(self) -> Self:
        faults = []
        if (self.problem is None) == (self.problem_file is None):
            faults.append(("problem", "write either problem or problem_file"))
        if len(set(self.files)) != len(self.files):
            faults.append(("reference_patch", "two fields name one file; each has a file of its own"))
        refuse(faults)
        return self

    @property
    def files(self) -> list[str]:
        """The names of the files beside `task.yaml` that belong to the task."""
        named = (self.problem_file, self.test_patch, self.reference_patch)
        return [name for name in named if name is not None]


def load_added_task(path: Path, shown: str) -> AddedTaskConfig:
    """Load a task file; errors call it `shown`. Raises ConfigError with everything that is wrong in it."""
    document = read_yaml(path, shown)
    try:
        return AddedTaskConfig.model_validate(document.value)
    except ValidationError as error:
        raise ConfigError(explain(error, AddedTaskConfig, document)) from error
