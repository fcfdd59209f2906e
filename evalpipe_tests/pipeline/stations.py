"""Tiny workspaces at four stations of the way. Each is made once in a session; tests work on copies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.made_once import made_once
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

    def make(folder: Path) -> Walk:
        walk = Walk(make_workspace(folder / "workspace"))
        walk.look("init")
        walk.step("mine", "--json")
        return walk

    return made_once(tmp_path_factory, "tiny-mined", make)


@pytest.fixture(scope="session")
def frozen(mined: Walk, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """A workspace with the frozen set `tiny` of two tasks, and its environment."""

    def make(folder: Path) -> Walk:
        walk = _copied(mined, folder / "workspace")
        walk.step("validate", "--same-day", "--json")
        walk.step("freeze", "tiny", "--provisional")
        return walk

    return made_once(tmp_path_factory, "tiny-frozen", make)


@pytest.fixture(scope="session")
def begun(frozen: Walk, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """A workspace whose set is calibrated, and of whose sweep `small` only the agent `empty` is run."""

    def make(folder: Path) -> Walk:
        walk = _copied(frozen, folder / "workspace")
        walk.step("run", "small", "--agent", "empty")
        return walk

    return made_once(tmp_path_factory, "tiny-begun", make)


@pytest.fixture(scope="session")
def finished(begun: Walk, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """A workspace whose sweep `small` is run, graded and reported."""

    def make(folder: Path) -> Walk:
        walk = _copied(begun, folder / "workspace")
        walk.step("run", "small")
        walk.step("grade", "small")
        walk.step("report", "small", "--json")
        return walk

    return made_once(tmp_path_factory, "tiny-finished", make)


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Walk], TinyWorkspace]:
    """Makes a copy of a station for one test."""
    return lambda walk: copy_of(walk.tiny, tmp_path / "workspace")


def _copied(walk: Walk, root: Path) -> Walk:
    return Walk(copy_of(walk.tiny, root), dict(walk.answers), dict(walk.next_steps), dict(walk.status))
