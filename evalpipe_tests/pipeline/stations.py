"""Tiny workspaces at four stations of the way. Each is made once in a session; tests work on copies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.pipeline.workspaces import Finished, TinyWorkspace, copy_of, make_workspace


@dataclass
class Walk:
    """The whole way through a workspace by the command line: every answer, and the next steps after each."""

    tiny: TinyWorkspace
    answers: dict[str, Finished] = field(default_factory=dict)
    next_steps: dict[str, list[str]] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)

    def step(self, *arguments: str) -> None:
        name = arguments[0]
        self.answers[name] = self.tiny.succeed(*arguments)
        self.look(name)

    def look(self, after: str) -> None:
        self.status[after] = self.tiny.succeed("status", "--json").json()
        self.next_steps[after] = self.status[after]["next_steps"]


@pytest.fixture(scope="session")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """A workspace that is mined."""
    walk = Walk(make_workspace(tmp_path_factory.mktemp("tiny") / "workspace"))
    walk.look("init")
    walk.step("mine", "--json")
    return walk


@pytest.fixture(scope="session")
def frozen(mined: Walk, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """A workspace with the frozen set `tiny` of two tasks, and its environment."""
    root = tmp_path_factory.mktemp("frozen") / "workspace"
    walk = Walk(copy_of(mined.tiny, root), dict(mined.answers), dict(mined.next_steps), dict(mined.status))
    walk.step("validate", "--same-day", "--json")
    walk.step("freeze", "tiny", "--provisional")
    return walk


@pytest.fixture(scope="session")
def begun(frozen: Walk, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """A workspace whose set is calibrated, and of whose sweep `small` only the agent `empty` is run."""
    root = tmp_path_factory.mktemp("begun") / "workspace"
    walk = Walk(copy_of(frozen.tiny, root), dict(frozen.answers), dict(frozen.next_steps), dict(frozen.status))
    walk.step("run", "small", "--agent", "empty")
    return walk


@pytest.fixture(scope="session")
def finished(begun: Walk, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """A workspace whose sweep `small` is run, graded and reported."""
    root = tmp_path_factory.mktemp("finished") / "workspace"
    walk = Walk(copy_of(begun.tiny, root), dict(begun.answers), dict(begun.next_steps), dict(begun.status))
    walk.step("run", "small")
    walk.step("grade", "small")
    walk.step("report", "small", "--json")
    return walk


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Walk], TinyWorkspace]:
    """Makes a copy of a station for one test."""
    return lambda walk: copy_of(walk.tiny, tmp_path / "workspace")
