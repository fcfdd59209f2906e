"""What a template makes of a project: the steps that build its environment, and what decides them.

A template is pure: it reads the tree of a base commit and says what is to be done. Builders do it. The same recipe on
the same base image is the same environment, so its content is the build key.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

TREE_FOLDER = "/work/repo"
"""Where the project's tree lies while its environment is built, and where the tests find theirs."""

BUILD_FOLDER = "/opt/evalpipe"
"""Where an environment keeps what evalpipe made, such as the virtual environment; there from the first step on."""

PACKAGES_FILE = f"{BUILD_FOLDER}/packages.txt"
"""Where a step may write what it installed, one `name==version` a line, so that two environments can be compared."""

CACHE_VARIABLE = "EVALPIPE_CACHE"
"""Names, to the steps, a folder that outlives the build and never lands in the image: for downloads of a tool that
the builder does not point there itself (pip, uv, npm, pnpm and Yarn it does)."""


class ProjectTree(Protocol):
    """The tree of a base commit."""

    @property
    def paths(self) -> Collection[bytes]:
        """Every file, from the top of the repository."""

    def read(self, path: bytes) -> bytes:
        """The content of one of `paths`."""


class ChangedTree(ProjectTree, Protocol):
    """The tree of a change."""

    @property
    def altered(self) -> Collection[bytes]:
        """The files of it that its base does not have, or not with this content."""


@dataclass(frozen=True, slots=True)
class Project:
    """What a template may know of the commit that a candidate starts from.

    `day` is the latest day on which dependencies may have been released. `version` is that of the newest release
    that the commit descends from, for build backends that would ask git, which an environment does not have; None
    where there is none. `packages` and `setup` are the team's, from data/repos/*.yaml. `change` is the tree of the
    candidate's change: an environment also holds what its manifests ask for beyond those of the base. `runner` is the
    name of what runs the tests, which an environment may have to bring.
    """

    tree: ProjectTree
    day: dt.date
    version: str | None
    packages: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    change: ChangedTree | None = None
    runner: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an environment is built: on a base image, with the project's tree at TREE_FOLDER and the network.

    `steps` are scripts for `/bin/sh -e`, run as root in TREE_FOLDER in this order, with a HOME that the image does not
    keep; `files` are laid by their absolute path before (one that begins with `#!` can be executed). `env` holds from
    the first step on and stays in the image, so nothing secret may be in it; `$PATH` in the value of PATH stands for
    that of the base image. `decided_by` are the paths of the tree whose content decides the result: manifests, lock
    files, and what the build backend reads. A recipe without any is built without the tree: what decides nothing is
    not there to be used. What the steps write into the tree and `keeps` names (globs from its top) stays for the tests.
    `check` is a script that runs after them and fails, with the reason on its output, when a released copy of the
    project itself is in the image; see `checks.forbidden_paths_script`.
    """

    template: str
    version: int
    steps: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    decided_by: tuple[bytes, ...] = ()
    keeps: tuple[str, ...] = ()
    check: str = ""


class Template(Protocol):
    """Knows one kind of project."""

    @property
    def name(self) -> str:
        """Name of the template in configuration files."""

    def recipe(self, project: Project) -> Recipe:
        """The recipe for `project`. Raises NoRecipe when the project is none of this kind."""


class NoRecipe(Exception):
    """A template cannot say how a project is built; the text says what it looked for and what a team can do."""
