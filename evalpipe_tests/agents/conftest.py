"""A tiny repository with one task, and a place to make attempts at it in each sandbox of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalpipe.agents import Adapter, Assignment, AttemptResult, HistoryKind, make_instance, run_attempt
from evalpipe.agents.watch import AttemptWatch
from evalpipe.history import Repository, ScratchObjects
from evalpipe.sandbox import DockerSandbox, Limits, ProcessSandbox, Sandbox
from evalpipe.tasks import PromptMode, TreeFile, read_files
from evalpipe_tests.history.builder import EXECUTABLE, LINK, Builder, File
from evalpipe_tests.tasks.records import task_record

PARENT: dict[bytes, File] = {
    b"clock.py": b"def noon():\n    return 11\n",
    b"docs/index.md": b"# Clock\n",
    b"docs/more/deep.md": b"more\n",
    b"run": (EXECUTABLE, b"#!/bin/sh\n"),
    b"link": (LINK, b"clock.py"),
    b"caf\xe9.txt": b"caf\xe9\r\n",
    b".gitignore": b"*.log\n",
}


@dataclass
class Place:
    """Where attempts are made: `attempt` runs an agent, `work` shows the tree that its patch gives."""

    sandbox: Sandbox
    image: str
    builder: Builder
    parent: str
    commit: str

    @property
    def repository(self) -> Repository:
        return Repository(self.builder.path)

    @property
    def assignment(self) -> Assignment:
        task = task_record(parent=self.parent, commit=self.commit)
        return Assignment(task, PromptMode.ORIGINAL, 1, "Mend the clock … today.\n")

    def attempt(self, adapter: Adapter, *, timeout_s: float = 60.0, watch: AttemptWatch | None = None) -> AttemptResult:
        limits = Limits(timeout_s, memory_bytes=512 * 1024**2, pids=128)
        with ScratchObjects(self.repository) as scratch:
            instance = make_instance(scratch, self.parent, self.commit, (), HistoryKind.ANCESTORS)
        labels = {"task": "t"}
        place = self.sandbox, self.image, adapter, self.repository, self.assignment, instance
        return run_attempt(*place, limits, labels, watch=watch)

    def work(self, patch: bytes | None) -> dict[bytes, TreeFile]:
        assert patch is not None
        with ScratchObjects(self.repository) as scratch:
            tree = scratch.read_tree(scratch.apply_patch(self.parent, patch))
            return {file.path: file for file in read_files(scratch, tree)}


def _builder(folder: Path) -> tuple[Builder, str, str]:
    builder = Builder(folder / "source.git")
    return builder, builder.commit(PARENT), builder.commit({b"clock.py": b"def noon():\n    return 12\n"})


@pytest.fixture
def process_place(tmp_path: Path, process_sandbox: ProcessSandbox) -> Place:
    return Place(process_sandbox, "", *_builder(tmp_path))


@pytest.fixture
def docker_place(tmp_path: Path, docker_sandbox: DockerSandbox, built_image: str) -> Place:
    return Place(docker_sandbox, built_image, *_builder(tmp_path))


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    chosen: Place = request.getfixturevalue(f"{request.param}_place")
    yield chosen
    assert chosen.sandbox.kill({}) == 0
