"""Acceptance criteria as a file: what an author has said of each value that the tests ask for and nothing tells.

`criteria/<task_id>.yaml` lies beside the terse texts of a set. evalpipe proposes it, people edit and review it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from evalpipe.tasks.frozen_set import TaskSetError

_HEAD = """\
# What the tests of {task_id} ask for, and neither its text nor the code before it tells.
# decision: accept (agents are told it), drop (the text is fair without it), or undecided.
"""


class Decision(StrEnum):
    """What the author of a set says of a proposed criterion."""

    ACCEPT = "accept"
    DROP = "drop"
    UNDECIDED = "undecided"


class Criterion(BaseModel):
    """A value that the tests ask for. `in_reference`: the reference change has it too, so somebody chose it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: str = Field(min_length=1)
    in_reference: bool = False
    decision: Decision = Decision.UNDECIDED


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided for one task."""

    criteria: tuple[Criterion, ...] = field(default=())

    @property
    def accepted(self) -> tuple[str, ...]:
        return tuple(one.value for one in self.criteria if one.decision is Decision.ACCEPT)

    def undecided(self, proposed: Iterable[str]) -> tuple[str, ...]:
        """Those of `proposed` that were neither accepted nor dropped."""
        decided = {one.value for one in self.criteria if one.decision is not Decision.UNDECIDED}
        return tuple(value for value in proposed if value not in decided)


_FILE: TypeAdapter[list[Criterion]] = TypeAdapter(list[Criterion])


def criteria_path(folder: Path, task_id: str) -> Path:
    """Where the criteria of a task lie in the folder of a set."""
    return folder / "criteria" / f"{task_id}.yaml"


def decisions_of(folder: Path) -> Mapping[str, Decisions]:
    """What was decided for the tasks of the set in `folder`. Raises TaskSetError for a file that cannot be read."""
    return {path.stem: _read(path) for path in sorted(folder.glob("criteria/*.yaml"))}


def with_proposals(text: str, task_id: str, known: Decisions, proposed: Iterable[Criterion]) -> str:
    """`text`, the file of a task or nothing, with those of `proposed` at its end that it does not have."""
    there = {one.value for one in known.criteria}
    added = [one for one in proposed if one.value not in there]
    if not added:
        return text
    entries = "".join(_entry(one) for one in added)
    if not known.criteria:  # an empty list, or a file of nothing but comments, cannot be added to
        return _HEAD.format(task_id=task_id) + entries
    return text.rstrip("\n") + "\n" + entries


def _entry(criterion: Criterion) -> str:
    # A JSON string is a YAML string, and shows what a reader cannot see.
    value = json.dumps(criterion.value)
    mark = "  in_reference: true\n" if criterion.in_reference else ""
    return f"- value: {value}\n{mark}  decision: {criterion.decision}\n"


def _read(path: Path) -> Decisions:
    try:
        content: Any = YAML(typ="safe", pure=True).load(StringIO(path.read_bytes().decode()))
        return Decisions(tuple(_FILE.validate_python(content or [])))
    except (YAMLError, UnicodeDecodeError) as error:
        raise TaskSetError(f"{path} cannot be read as YAML: {error}") from error
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise TaskSetError(
            f"{path} is not a list of criteria, each with value and decision (accept, drop, undecided): {faults}"
        ) from error
