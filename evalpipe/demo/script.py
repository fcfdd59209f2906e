"""Reads data/demo/history.toml: who did what when, as steps in order.

A step is a commit on the mainline or on a topic branch, a merge of a topic branch, a back-merge of the mainline
into a topic branch, or a fast-forward of the mainline to a topic branch. A topic branch leaves the mainline where
its first step stands in the file. Everything is checked here, so that build.py only replays.
"""

from __future__ import annotations

import enum
import tomllib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

HISTORY_FILE = "history.toml"
MAINLINE = "main"


class DemoScriptError(Exception):
    """data/demo/history.toml says something that is not understood; the message names file and step."""


class StepKind(enum.StrEnum):
    """What a step does."""

    COMMIT = "commit"
    MERGE = "merge"
    BACK_MERGE = "back_merge"
    FAST_FORWARD = "fast_forward"


@dataclass(frozen=True, slots=True)
class Person:
    """An author or committer."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step; dates are in git's own form, ISO 8601 with an offset from UTC."""

    key: str
    do: StepKind
    branch: str
    author: str
    committer: str
    authored: str
    committed: str
    message: str
    patch: str | None


@dataclass(frozen=True, slots=True)
class Script:
    """The whole history, in order."""

    people: dict[str, Person]
    steps: tuple[Step, ...]


def load_script(source: Path) -> Script:
    """Reads and checks ``source``/history.toml. Raises DemoScriptError."""
    path = source / HISTORY_FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DemoScriptError(f"{path} is missing: it describes the demo repository") from None
    except tomllib.TOMLDecodeError as error:
        raise DemoScriptError(f"{path}: {error}") from error
    people = {key: _person(path, text) for key, text in data.get("people", {}).items()}
    steps: list[Step] = []
    open_branches: set[str] = set()
    for row in data.get("step", []):
        step = _step(path, row)
        _check_step(path, step, people, steps, open_branches, source)
        steps.append(step)
    if not steps:
        raise DemoScriptError(f"{path} has no [[step]]")
    return Script(people, tuple(steps))


def _person(path: Path, text: str) -> Person:
    name, bracket, email = text.rstrip(">").partition(" <")
    if not bracket:
        raise DemoScriptError(f'{path}: a person is written "Name <email>", not {text!r}')
    return Person(name, email)


def _step(path: Path, row: dict[str, Any]) -> Step:
    key = row.get("key", "(without key)")
    unknown = set(row) - {"key", "do", "branch", "author", "committer", "authored", "committed", "message", "patch"}
    missing = {"key", "do", "branch"} - set(row)
    if row.get("do") != StepKind.FAST_FORWARD:
        missing |= {"author", "authored", "message"} - set(row)
    if unknown or missing:
        raise DemoScriptError(f"{path}, step {key!r}: unknown {sorted(unknown)}, missing {sorted(missing)}")
    if row["do"] not in list(StepKind):
        raise DemoScriptError(f"{path}, step {key!r}: do is one of {', '.join(StepKind)}, not {row['do']!r}")
    authored = _date(path, key, row["authored"]) if "authored" in row else ""
    committed = _date(path, key, row["committed"]) if "committed" in row else authored
    return Step(
        key=key,
        do=StepKind(row["do"]),
        branch=row["branch"],
        author=row.get("author", ""),
        committer=row.get("committer", row.get("author", "")),
        authored=authored,
        committed=committed,
        message=row.get("message", ""),
        patch=row.get("patch"),
    )


def _date(path: Path, key: str, value: object) -> str:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise DemoScriptError(f"{path}, step {key!r}: a date has an offset: 2026-03-01T12:00:00+01:00")
    return value.isoformat()


def _check_step(
    path: Path, step: Step, people: dict[str, Person], before: list[Step], open_branches: set[str], source: Path
) -> None:
    """Checks a step against those before it and keeps the set of topic branches that are open."""
    problem = None
    if any(earlier.key == step.key for earlier in before):
        problem = "the key is used twice"
    elif step.do is StepKind.COMMIT:
        if step.branch != MAINLINE and not before:
            problem = f"the first step is a commit on {MAINLINE}"
        open_branches.add(step.branch)
    elif step.branch == MAINLINE or step.branch not in open_branches:
        problem = f"branch {step.branch!r} has no commit to merge"
    elif step.patch is not None:
        problem = "only a commit has a patch: a merge takes those of its branch"
    elif step.do is not StepKind.BACK_MERGE:
        open_branches.remove(step.branch)
    if step.do is not StepKind.FAST_FORWARD and not {step.author, step.committer} <= people.keys():
        problem = f"author and committer are among {', '.join(people)}"
    if step.patch is not None and not (source / step.patch).is_file():
        problem = f"{step.patch} is missing"
    if problem:
        raise DemoScriptError(f"{path}, step {step.key!r}: {problem}")
