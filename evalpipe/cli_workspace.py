"""What the commands share: the workspace that they work in, its pipeline, and how a command ends that cannot go on."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evalpipe import console

if TYPE_CHECKING:
    from evalpipe.config import RepositoryConfig
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
