"""The workspace: the folder that a team edits and commits, and how its configuration files are loaded."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from evalpipe.config.agent import PROGRAM_FORMS, AgentConfig
from evalpipe.config.explain import explain
from evalpipe.config.problems import ConfigError, Problem, did_you_mean, listed
from evalpipe.config.provider import ProviderConfig
from evalpipe.config.repository import RepositoryConfig
from evalpipe.config.sweep import SweepConfig
from evalpipe.config.values import SLUG_RULE, is_slug
from evalpipe.config.yaml_files import YamlDocument, read_yaml

WORKSPACE_VARIABLE = "EVALPIPE_WORKSPACE"
WORKSPACE_FILE = "workspace.yaml"

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class LoadedConfigs(Generic[Model]):
    """The good files of a folder by name, and what is wrong in the others."""

    items: dict[str, Model] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder with `workspace.yaml` and `data/`. `root` is absolute."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def lake_dir(self) -> Path:
        return self.data / "lake"

    @property
    def state_dir(self) -> Path:
        return self.data / "state"

    @property
    def repos_dir(self) -> Path:
        return self.data / "repos"

    @property
    def agents_dir(self) -> Path:
        return self.data / "agents"

    @property
    def providers_dir(self) -> Path:
        return self.data / "providers"

    @property
    def sweeps_dir(self) -> Path:
        return self.data / "sweeps"

    @property
    def task_sets_dir(self) -> Path:
        return self.data / "task_sets"

    @property
    def added_tasks_dir(self) -> Path:
        return self.data / "tasks"

    def resolve(self, path: Path | str) -> Path:
        """Return the absolute path of one that a configuration file gives from the workspace's top."""
        return Path(os.path.normpath(self.root / Path(path).expanduser()))

    def repository_location(self, repository: RepositoryConfig) -> str:
        """Return where a repository is: its URL, or its absolute path."""
        return repository.source if repository.source_is_url else str(self.resolve(repository.source))

    def load_repository(self, name: str) -> RepositoryConfig:
        """Load `data/repos/<name>.yaml`. Raises ConfigError when it is missing or wrong."""
        return self._load_named(self.repos_dir, name, RepositoryConfig)

    def load_agent(self, name: str) -> AgentConfig:
        """Load `data/agents/<name>.yaml`. Raises ConfigError when it is missing or wrong."""
        return self._load_named(self.agents_dir, name, AgentConfig)

    def load_provider(self, name: str) -> ProviderConfig:
        """Load `data/providers/<name>.yaml`. Raises ConfigError when it is missing or wrong."""
        return self._load_named(self.providers_dir, name, ProviderConfig)

    def load_sweep(self, name: str) -> SweepConfig:
        """Load `data/sweeps/<name>.yaml`. Raises ConfigError when it is missing or wrong."""
        return self._load_named(self.sweeps_dir, name, SweepConfig)

    def load_repositories(self) -> LoadedConfigs[RepositoryConfig]:
        return self._load_folder(self.repos_dir, RepositoryConfig)

    def load_agents(self) -> LoadedConfigs[AgentConfig]:
        return self._load_folder(self.agents_dir, AgentConfig)

    def load_providers(self) -> LoadedConfigs[ProviderConfig]:
        return self._load_folder(self.providers_dir, ProviderConfig)

    def load_sweeps(self) -> LoadedConfigs[SweepConfig]:
        return self._load_folder(self.sweeps_dir, SweepConfig)

    def agents_of_live_sweeps(self) -> dict[str, AgentConfig]:
        """The agents that a sweep which is not archived asks for, by name; files that do not load are left out."""
        live = [sweep for sweep in self.load_sweeps().items.values() if not sweep.archived]
        asked = {name for sweep in live for name in sweep.agents}
        return {name: agent for name, agent in self.load_agents().items.items() if name in asked}

    def check_references(self) -> list[Problem]:
        """Return what files name in vain: agents of sweeps, providers of agents, and files of the workspace.

        A task set may be named before it is frozen, so a missing one is no problem here. Files that do not
        load are left out; their own problems come with the loading.
        """
        problems: list[Problem] = []
        agents, providers = self.load_agents(), self.load_providers()
        for sweep in self.load_sweeps().items.values():
            if sweep.archived:
                continue  # its agents are in its manifests
            document = self._document(self.sweeps_dir / f"{sweep.name}.yaml")
            problems.extend(self._unknown_agents(sweep, document, agents.items))
            problems.extend(self._unbounded_agents(sweep, document, agents.items))
        for repository in self.load_repositories().items.values():
            way = f"run: evalpipe issues export {repository.name}" if repository.forge else None
            problems.extend(self._missing_file(self.repos_dir, repository.name, "issues", repository.issues, way))
            dockerfile = repository.environment.dockerfile
            problems.extend(self._missing_file(self.repos_dir, repository.name, "environment.dockerfile", dockerfile))
        for agent in agents.items.values():
            problems.extend(self._missing_file(self.agents_dir, agent.name, "script", agent.script))
            problems.extend(self._unserved(agent, providers))
        return problems

    def shown(self, path: Path) -> str:
        """Return `path` as errors show it: from the workspace's top where it lies inside."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def _unknown_agents(
        self, sweep: SweepConfig, document: YamlDocument, known: Mapping[str, AgentConfig]
    ) -> list[Problem]:
        problems = []
        for index, name in enumerate(sweep.agents):
            if name in known:
                continue
            path = self.agents_dir / f"{name}.yaml"
            if path.exists():
                message = f"{name!r} has errors of its own in {self.shown(path)}: see `evalpipe doctor`"
            else:
                hint = did_you_mean(name, known) or f"; the agents are: {listed(sorted(known))}"
                message = f"there is no agent {name!r} in {self.shown(self.agents_dir)}{hint}"
            line = document.line_of(("agents", index))
            problems.append(Problem(document.name, message, line, f"agents[{index}]"))
        return problems

    def _unbounded_agents(
        self, sweep: SweepConfig, document: YamlDocument, known: Mapping[str, AgentConfig]
    ) -> Iterator[Problem]:
        """Agents whose worst case a budget cannot reserve."""
        for name in sweep.agents if sweep.budget_usd is not None else ():
            agent = known.get(name)
            if agent is not None and agent.provider is not None and agent.max_cost_usd is None:
                message = f"agent {name!r} needs max_cost_usd, what one attempt may cost: the budget reserves that much"
                yield Problem(document.name, message, document.line_of(("budget_usd",)), "budget_usd")

    def _unserved(self, agent: AgentConfig, providers: LoadedConfigs[ProviderConfig]) -> Iterator[Problem]:
        """An agent whose provider is not there, or does not speak as the agent's program does."""
        if agent.provider is None:
            return
        document = self._document(self.agents_dir / f"{agent.name}.yaml")
        provider, wanted = providers.items.get(agent.provider), PROGRAM_FORMS.get(agent.adapter, frozenset())
        if provider is None:
            path = self.providers_dir / f"{agent.provider}.yaml"
            hint = did_you_mean(agent.provider, providers.items) or f"; write {self.shown(path)}"
            message = f"there is no provider {agent.provider!r} in {self.shown(self.providers_dir)}{hint}"
            if path.exists():
                message = f"{agent.provider!r} has errors of its own in {self.shown(path)}: see `evalpipe doctor`"
        elif wanted and not wanted & set(provider.forms):
            message = (
                f"{agent.adapter} speaks {listed(sorted(wanted))}, and {provider.name} has {listed(provider.forms)}"
            )
        else:
            return
        yield Problem(document.name, message, document.line_of(("provider",)), "provider")

    def _missing_file(
        self, folder: Path, name: str, field_name: str, path: Path | None, way: str | None = None
    ) -> list[Problem]:
        if path is None or self.resolve(path).exists():
            return []
        document = self._document(folder / f"{name}.yaml")
        message = f"there is no {self.resolve(path)}; {way or f'give a path from {self.root}'}"
        return [Problem(document.name, message, document.line_of(tuple(field_name.split("."))), field_name)]

    def _load_named(self, folder: Path, name: str, model: type[Model]) -> Model:
        path = folder / f"{name}.yaml"
        if not is_slug(name) or not path.exists():
            known = sorted(file.stem for file in folder.glob("*.yaml"))
            hint = did_you_mean(name, known) or f"; there are: {listed(known)}"
            raise ConfigError([Problem(self.shown(folder), f"there is no {name}.yaml{hint}")])
        return self._load_file(path, model)

    def _load_folder(self, folder: Path, model: type[Model]) -> LoadedConfigs[Model]:
        loaded: LoadedConfigs[Model] = LoadedConfigs()
        for path in sorted(folder.glob("*.y*ml")) if folder.is_dir() else []:
            if path.name.startswith("."):
                continue
            try:
                loaded.items[path.stem] = self._load_file(path, model)
            except ConfigError as error:
                loaded.problems.extend(error.problems)
        return loaded

    def _load_file(self, path: Path, model: type[Model]) -> Model:
        if path.suffix != ".yaml":
            raise ConfigError([Problem(self.shown(path), f"rename the file to {path.stem}.yaml")])
        if not is_slug(path.stem):
            message = f"the file's name is no name for its content; use {SLUG_RULE}, then .yaml"
            raise ConfigError([Problem(self.shown(path), message)])
        document = self._document(path)
        written = dict(document.value)
        problems = []
        if "name" in written:
            message = "the name is the name of the file; remove this line"
            problems.append(Problem(document.name, message, document.line_of(("name",)), "name"))
        written["name"] = path.stem
        try:
            config = model.model_validate(written)
        except ValidationError as error:
            problems.extend(explain(error, model, document))
            raise ConfigError(sorted(problems, key=lambda problem: problem.line or 0)) from error
        if problems:
            raise ConfigError(problems)
        return config

    def _document(self, path: Path) -> YamlDocument:
        return read_yaml(path, self.shown(path))


def find_workspace(start: Path | None = None) -> Workspace:
    """Return the workspace around `start`; else the one that EVALPIPE_WORKSPACE names, else around the cwd.

    Raises ConfigError when there is none.
    """
    named = os.environ.get(WORKSPACE_VARIABLE)
    if start is None and named:
        root = Path(named).expanduser().resolve()
        if not _is_workspace(root):
            message = (
                f"{WORKSPACE_VARIABLE} names this folder, which has no {WORKSPACE_FILE} beside a data/; "
                "name another one, or run: evalpipe init DIR"
            )
            raise ConfigError([Problem(str(root), message)])
        return Workspace(root)
    begin = (start or Path.cwd()).resolve()
    for folder in (begin, *begin.parents):
        if _is_workspace(folder):
            return Workspace(folder)
    message = (
        f"no workspace here or above ({WORKSPACE_FILE} beside a data/ folder); "
        f"make one with: evalpipe init DIR, go into one, or name it in {WORKSPACE_VARIABLE}"
    )
    raise ConfigError([Problem(str(begin), message)])


def _is_workspace(folder: Path) -> bool:
    return (folder / WORKSPACE_FILE).is_file() and (folder / "data").is_dir()
