"""`evalpipe issues export`: a repository's forge, its token from the environment, and the file that mining reads."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from evalpipe.config import ConfigError, ForgeConfig, Problem, RepositoryConfig
from evalpipe.forges import Exported, GitHubForge, GitLabForge, Patience, Place, Say, export, token_from
from evalpipe.lake import write_atomically
from evalpipe.stages.bench import Workbench

_NAMES = {"github": "GitHub", "gitlab": "GitLab"}


def export_issues(
    bench: Workbench, config: RepositoryConfig, output: Path, say: Say, sleep: Callable[[float], None] = time.sleep
) -> Exported:
    """Bring the export of a repository's issues up to date, or make it.

    Raises ConfigError without a `forge`, ForgeError when the forge cannot be read, and DiskFullError.
    """
    forge_config = config.forge
    if forge_config is None:
        file = bench.workspace.shown(bench.workspace.repos_dir / f"{config.name}.yaml")
        raise ConfigError([Problem(file, "is missing; write kind and project, as docs/issues.md shows", field="forge")])
    patience = Patience(place_of(forge_config), say, sleep, bench.clock)
    client = GitHubForge if forge_config.kind == "github" else GitLabForge
    with client(forge_config.project, patience) as forge:
        done = export(forge, output, write_atomically, say)
    if done.path.lower() != forge_config.project.lower():
        say(f"{forge_config.project} is called {done.path} now: write that as `forge.project`")
    return done


def issues_path(bench: Workbench, config: RepositoryConfig) -> Path:
    """Where the issues of a repository are exported to, unless the user names another file."""
    return bench.workspace.data / "issues" / f"{config.name}.jsonl"


def place_of(config: ForgeConfig) -> Place:
    """A forge with the token that this machine's environment has for it. Raises TokenInvalid."""
    token = token_from(os.environ, config.variable)
    return Place(_NAMES[config.kind], config.address, token, config.variable)
