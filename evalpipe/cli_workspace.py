"""What the commands share: the workspace that they work in, its pipeline, and how a command ends that cannot go on."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evalpipe import console

if TYPE_CHECKING:
    from evalpipe.config import RepositoryConfig, SweepConfig
    from evalpipe.pipeline.driver import Driver
    from evalpipe.stages.bench import Workbench

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130


def fail(text: str, code: int = FAILED) -> NoReturn:
    """End the command with its reason on the error stream."""
    console.note(f"evalpipe: {text}")
    sys.exit(code)


def open_bench(workspace: Path | None) -> "Workbench":
    """The bench of the workspace around `workspace`, or around the current folder. Raises ConfigError."""
    from evalpipe.config import find_workspace
    from evalpipe.stages.bench import Workbench

    return Workbench(find_workspace(workspace), progress=console.progress)


def open_driver(bench: "Workbench") -> "Driver":
    """The pipeline of a workspace."""
    from evalpipe.pipeline.driver import Driver

    return Driver(bench)


def chosen_repositories(bench: "Workbench", names: Sequence[str]) -> "list[RepositoryConfig]":
    """The repositories of these names, or all of the workspace. Raises ConfigError."""
    from evalpipe.config import ConfigError

    workspace = bench.workspace
    if names:
        return [workspace.load_repository(name) for name in names]
    loaded = workspace.load_repositories()
    if loaded.problems:
        raise ConfigError(loaded.problems)
    if not loaded.items:
        fail(f"there is no repository in {workspace.repos_dir}: write one, as `evalpipe init` shows", WRONG_USE)
    return list(loaded.items.values())


def open_sweep(
    workspace: Path | None, name: str, agents: Sequence[str]
) -> "tuple[Workbench, SweepConfig, Sequence[str]]":
    """The bench, a configured sweep with its task set frozen, and its agents or those asked for. Raises ConfigError."""
    from evalpipe.pipeline.driver import known_sweep
    from evalpipe.stages.sweeps import load_sweep_task_set

    bench = open_bench(workspace)
    sweep = known_sweep(bench.workspace, name)
    if not (bench.workspace.task_sets_dir / sweep.task_set / "task_set.json").exists():
        fail(f"the task set {sweep.task_set} of sweep {name} is not frozen yet: `evalpipe freeze {sweep.task_set}`")
    load_sweep_task_set(bench, sweep)  # a damaged set is told of here, because Dagster does not even load its sweeps
    unknown = sorted(set(agents) - set(sweep.agents))
    if unknown:
        fail(f"{', '.join(unknown)}: not in sweep {name}, which has {', '.join(sweep.agents)}", WRONG_USE)
    return bench, sweep, list(agents) or list(sweep.agents)


def say_sandbox(bench: "Workbench") -> None:
    """Say on the error stream what isolates the boxes. Raises EngineUnavailable."""
    facts = bench.sandbox.describe()
    if facts.name == "docker":
        console.note(f"sandbox: {facts.engine_version}")
    else:
        chosen = os.environ.get("EVALPIPE_SANDBOX") == "process"
        reason = "as EVALPIPE_SANDBOX asks" if chosen else "because no Docker engine answers"
        console.note(f"sandbox: processes, {reason}; isolation is weaker ({facts.isolation})")
