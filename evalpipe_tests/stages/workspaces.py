"""A workspace with a repository of six changes, and a bench on it whose clock and boxes a test can see."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from evalpipe.config import AgentConfig, RepositoryConfig, SweepConfig, Workspace
from evalpipe.environments import (
    BuildStatus,
    BuiltEnvironment,
    EnvironmentBuilder,
    EnvironmentSource,
    PlannedBuild,
    SpareEnvironment,
    build_key,
)
from evalpipe.sandbox import Box, Limits, ProcessSandbox
from evalpipe.stages.bench import Workbench
from evalpipe_tests.history.builder import Builder, File
from evalpipe_tests.runners.environment import write_python

DAY_ONE = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)

_TEST = b"import clock\n\n\ndef test_%s():\n    assert clock.%s() == %d\n"
_CLOCK = b"def noon():\n    return %d\n\n\ndef hours():\n    return %d\n"
HISTORY: list[tuple[str, dict[bytes, File]]] = [
    ("Start", {b"clock.py": _CLOCK % (11, 23), b"test_start.py": b"def test_start():\n    pass\n"}),
    ("Show noon as twelve (#1)", {b"clock.py": _CLOCK % (12, 23), b"test_noon.py": _TEST % (b"noon", b"noon", 12)}),
    ("Explain the clock (#2)", {b"README.md": b"# Clock\n"}),
    ("Test the start (#3)", {b"test_start.py": b"def test_start():\n    assert True\n"}),
    (
        "Give the day 24 hours (#4)",
        {b"clock.py": _CLOCK % (12, 24), b"sub dir/test_h\xc3\xb6urs.py": _TEST % (b"hours", b"hours", 24)},
    ),
    (
        "Say nothing new (#5)",
        {b"clock.py": _CLOCK % (12, 24) + b"\n# Done.\n", b"test_same.py": b"def test_same():\n    pass\n"},
    ),
]

FILES = {
    "workspace.yaml": "load_from: []\n",
    "data/repos/clock.yaml": (
        "source: source.git\nrunner:\n  name: pytest\nenvironment:\n  template: packages\n"
        "validation:\n  timeout_s: 60\n  memory: 1g\n  stress: false\n"
    ),
    "data/agents/reference.yaml": "adapter: reference\n",
    "data/agents/empty.yaml": "adapter: empty\n",
    "data/sweeps/spring.yaml": (
        "task_set: q\nagents: [reference, empty]\nsamples: 2\ndecision: None.\nlimits:\n  timeout_s: 30\n  memory: 1g\n"
    ),
}


class Clock:
    """The time as a test sets it; it moves by a second with each look."""

    def __init__(self, now: dt.datetime = DAY_ONE) -> None:
        self.now = now

    def __call__(self) -> dt.datetime:
        self.now += dt.timedelta(seconds=1)
        return self.now


class CountingSandbox(ProcessSandbox):
    """A process sandbox that remembers the labels of every box it opened."""

    def __init__(self, instance: str, state_dir: Path) -> None:
        super().__init__(instance, state_dir)
        self.opened: list[dict[str, str]] = []

    @contextmanager
    def open(
        self,
        environment: str,
        limits: Limits,
        labels: Mapping[str, str],
        *,
        network: bool = False,
        hostname: str | None = None,
        share: Path | None = None,
    ) -> Iterator[Box]:
        self.opened.append(dict(labels))
        with super().open(environment, limits, labels, network=network, hostname=hostname, share=share) as box:
            yield box


class HostPython:
    """Stands for a builder: its one environment is the Python of these tests, which has pytest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status = BuildStatus.BUILT
        self.builds = 0
        self.at_once = 1

    def locate(self, image_digest: str) -> str:
        return image_digest

    def exists(self, image_digest: str) -> bool:
        return (Path(image_digest) / "bin" / "python3").exists()

    def plan(self, source: EnvironmentSource) -> PlannedBuild:
        return PlannedBuild(source, build_key(source, "process", "base"), "base")

    def abandon(self) -> None:
        """Its builds take no time."""

    def spare(self, needed: Collection[str], before: dt.datetime) -> Iterable[SpareEnvironment]:
        return ()

    def build(self, planned: PlannedBuild) -> BuiltEnvironment:
        self.builds += 1
        python = self.folder / "bin" / "python3"
        if not python.exists():
            write_python(python)
        digest = str(self.folder) if self.status is BuildStatus.BUILT else None
        return BuiltEnvironment(self.status, digest, "the log", 0.1)


class TestBench(Workbench):
    """A bench on the workspace `root`, with a clock, a sandbox and a builder of the tests."""

    __test__ = False

    def __init__(self, root: Path, environment: Path, now: dt.datetime = DAY_ONE) -> None:
        self.time = Clock(now)
        self.environment = environment
        super().__init__(Workspace(root), clock=self.time)

    @cached_property
    def sandbox(self) -> CountingSandbox:
        sandbox = CountingSandbox(self.instance, self.workspace.state_dir)
        sandbox.reap(())
        return sandbox

    @cached_property
    def host_python(self) -> HostPython:
        return HostPython(self.environment)

    @property
    def builder(self) -> EnvironmentBuilder:
        return self.host_python

    @property
    def boxes(self) -> int:
        """How many boxes were opened so far."""
        return len(self.sandbox.opened)

    def days_later(self, days: int) -> None:
        self.time.now += dt.timedelta(days=days)

    @property
    def repository(self) -> RepositoryConfig:
        return self.workspace.load_repository("clock")

    @property
    def sweep(self) -> SweepConfig:
        return self.workspace.load_sweep("spring")

    def agent(self, name: str) -> AgentConfig:
        return self.workspace.load_agent(name)

    def rewrite(self, file: str, old: str, new: str) -> None:
        """Edit a configuration file."""
        path = self.workspace.root / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


def lay_workspace(root: Path) -> None:
    """Write the configuration and the repository of a workspace."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    builder = Builder(root / "source.git")
    for message, files in HISTORY:
        builder.commit(files, message)
