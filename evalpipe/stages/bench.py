"""The workbench: what every stage works with. One for each process; its parts are made when first needed."""

import datetime as dt
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, get_args

from evalpipe.agents import Instances
from evalpipe.config import ConfigError, Problem, RunnerConfig, Workspace, load_lake, machine_network
from evalpipe.environments import DockerEnvironmentBuilder, EnvironmentBuilder, ProcessEnvironmentBuilder
from evalpipe.environments.settings import Network, build_settings
from evalpipe.history import Repository, remove_abandoned_scratch
from evalpipe.lake import Lake
from evalpipe.runners import Runner
from evalpipe.runners.catalog import RunnerSettings, command_by_hand, make_runner
from evalpipe.sandbox import DockerSandbox, Limits, Room, Sandbox, choose_sandbox
from evalpipe.tasks import Task, TaskSetError, frozen_sets, load_task_set
from evalpipe.validation import BoxFacts

SANDBOX_VARIABLE = "EVALPIPE_SANDBOX"
SandboxKind = Literal["auto", "docker", "process"]

Clock = Callable[[], dt.datetime]


def utc_now() -> dt.datetime:
    """The time of this machine, in UTC."""
    return dt.datetime.now(dt.UTC)


class Advance(Protocol):
    """Moves a progress display on by so many steps, and shows beside them what else is to be seen."""

    def __call__(self, steps: int = 1, note: str = "") -> None: ...


Progress = Callable[[str, int], AbstractContextManager[Advance]]
"""Opens a progress display of a label and a number of steps."""


@contextmanager
def no_progress(label: str, steps: int) -> Iterator[Advance]:
    """Show nothing: runs that Dagster launched report by their events."""

    def advance(steps: int = 1, note: str = "") -> None: ...

    yield advance


@dataclass
class Workbench:
    """A workspace with its lake, its sandbox and its clock. Tests put another clock or sandbox in.

    `sandbox_kind` None means: as the machine's EVALPIPE_SANDBOX says.
    """

    workspace: Workspace
    clock: Clock = utc_now
    progress: Progress = no_progress
    sandbox_kind: SandboxKind | None = None
    box_facts: dict[tuple[str, str], BoxFacts] = field(default_factory=dict)
    """What boxes of an environment offer to the stress pass of a runner, as far as it was asked."""
    instances: Instances = field(default_factory=Instances)
    agent_environments: dict[str, str] = field(default_factory=dict)
    """What attempts open, as far as it was found on this machine; emptied when an image turns out to be gone."""
    just_fetched: set[str] = field(default_factory=set)
    """Repositories whose mirrors need not be brought up to date by the next look at them."""
    _mirrors: dict[str, Repository] = field(default_factory=dict)

    @cached_property
    def lake(self) -> Lake:
        """The lake, in data/lake alone or where data/lake.yaml says. Raises ConfigError."""
        return Lake(self.workspace.lake_dir, load_lake(self.workspace).url)

    @cached_property
    def sandbox(self) -> Sandbox:
        """The sandbox of this workspace. Leftovers of earlier runs that died are removed when it is opened.

        Raises ConfigError and EngineUnavailable.
        """
        kind = self.sandbox_kind or wanted_sandbox()
        sandbox = choose_sandbox(kind, instance=self.instance, state_dir=self.workspace.state_dir)
        sandbox.reap(())
        return sandbox

    @property
    def instance(self) -> str:
        """Name of this workspace on the engine, so that two workspaces never touch each other's containers."""
        return hashlib.sha256(os.fsencode(self.workspace.root)).hexdigest()[:16]

    @cached_property
    def builder(self) -> EnvironmentBuilder:
        if isinstance(self.sandbox, DockerSandbox):
            settings = build_settings(self._network)
            return DockerEnvironmentBuilder(self.instance, settings, needed=self.needed_images)
        return ProcessEnvironmentBuilder(self.workspace.lake_dir / "environments")

    def needed_images(self) -> set[str] | None:
        """Every image that a row of this workspace or a frozen set names; None when a set cannot be read."""
        needed = {
            str(digest)
            for table in ("task_images", "agent_images")
            for digest in self.lake.read(table).column("image_digest").to_pylist()
            if digest is not None
        }
        try:
            for folder in frozen_sets(self.workspace.task_sets_dir):
                needed |= {task.environment.image_digest for task in load_task_set(folder).tasks.values()}
        except TaskSetError:
            return None
        return needed

    @property
    def _network(self) -> Network:
        """What data/network.yaml and this machine's environment tell the builds. Raises ConfigError."""
        found = machine_network(self.workspace)
        return Network(
            certificates=Path(found.certificates.value).read_bytes() if found.certificates else None,
            proxy=found.proxy.value if found.proxy else None,
            no_proxy=found.no_proxy.value if found.no_proxy else None,
            mirrors={name: mirror.value for name, mirror in found.mirrors.items()},
            passed=found.passed,
            secrets=found.secrets,
        )

    @cached_property
    def room(self) -> Room:
        """Holds boxes back while the machine, or the engine's, carries no more beside those of all runs.

        Raises EngineUnavailable.
        """
        return Room(self.workspace.state_dir / "room", self.sandbox.capacity())

    def boxes_at_once(self, limits: Iterable[Limits]) -> int:
        """How many boxes run side by side when each may need the most that any of `limits` grants."""
        found = [self.room.capacity.boxes(one) for one in limits]
        return min(found, default=1)

    def mirror(self, name: str) -> Repository:
        """The mirror of a repository that was mined before."""
        if name not in self._mirrors:
            self._mirrors[name] = Repository(self.mirror_path(name), self._scratch_folder)
        return self._mirrors[name]

    @cached_property
    def _scratch_folder(self) -> Path:
        """Where trees are put together: in the workspace, as everything, and cleared of what killed runs left."""
        folder = self.workspace.state_dir / "scratch"
        remove_abandoned_scratch(folder)
        return folder

    def mirror_path(self, name: str) -> Path:
        return self.workspace.lake_dir / "repositories" / f"{name}.git"

    def report_path(self, sweep: str) -> Path:
        """Where the HTML report of a sweep lies, or will."""
        return self.workspace.lake_dir / "reports" / sweep / "report.html"


def wanted_sandbox() -> SandboxKind:
    """The sandbox that EVALPIPE_SANDBOX asks for: `auto` (also when it is not set), `docker` or `process`.

    Raises ConfigError for any other value.
    """
    value = os.environ.get(SANDBOX_VARIABLE) or "auto"
    for kind in get_args(SandboxKind):
        if value == kind:
            found: SandboxKind = kind
            return found
    raise ConfigError([Problem(SANDBOX_VARIABLE, f"there is no sandbox {value!r}; it is auto, docker or process")])


def runner_for(config: RunnerConfig) -> Runner:
    """The runner of a repository, or of a task that was frozen with one."""
    return make_runner(RunnerSettings(**config.model_dump(exclude={"prepare"})))


def frozen_runner(task: Task) -> RunnerConfig:
    """The runner's configuration with which a task was frozen."""
    return RunnerConfig(**task.runner.model_dump())


def suite_command(config: RunnerConfig) -> str:
    """The command by which an agent runs the suite; see `command_by_hand`."""
    return command_by_hand(RunnerSettings(**config.model_dump(exclude={"prepare"})), config.prepare)
