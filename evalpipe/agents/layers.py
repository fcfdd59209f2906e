"""The image of an agent: a layer with its pinned program over a task's image; nothing is installed in an attempt."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.environments import Recipe, RecipeSource
from evalpipe.environments.recipe import PACKAGES_FILE
from evalpipe.sandbox import FileEntry

PROGRAM_FOLDER = "/opt/evalpipe-agent"
"""Where the program lies in the image, apart from what the task's tests use."""
_PROGRAM_LINE = "sha256 of the program: "
_VERSION = 2


class Registry(StrEnum):
    """Where a program comes from."""

    PYPI = "pypi"
    NPM = "npm"


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a registry, pinned. `after` is a script that finishes the installation, in the package's folder."""

    registry: Registry
    package: str
    version: str
    command: str
    after: str = ""

    @property
    def path(self) -> str:
        """The command, in the image."""
        folder = "bin" if self.registry is Registry.PYPI else "node_modules/.bin"
        return f"{PROGRAM_FOLDER}/{folder}/{self.command}"

    @property
    def interpreter(self) -> str:
        """What the image surely has to run a script with, since the program needs it."""
        return f"{PROGRAM_FOLDER}/bin/python" if self.registry is Registry.PYPI else "node"


class _NoTree:
    """A layer is built without the project's tree."""

    commit = ""
    paths: Collection[bytes] = ()

    def read(self, path: bytes) -> bytes:
        raise KeyError(path)

    def object_id(self, path: bytes) -> str | None:
        return None

    def files(self) -> Iterator[FileEntry]:
        return iter(())


def agent_layer(image: str, program: Program) -> RecipeSource:
    """What is built for `program` over the task image `image` (its id). The key is of both: a pair is built once."""
    return RecipeSource(image, Recipe("agent", _VERSION, _steps(program)), _NoTree())


def program_sha256(packages: Collection[str]) -> str | None:
    """The SHA-256 (hex) of a program's file, from what the build of its layer says it installed."""
    lines = (line for line in packages if line.startswith(_PROGRAM_LINE))
    return next((line.removeprefix(_PROGRAM_LINE) for line in lines), None)


def _steps(program: Program) -> tuple[str, ...]:
    if program.registry is Registry.PYPI:
        return (
            f"python3 -m venv {PROGRAM_FOLDER}",
            f"{PROGRAM_FOLDER}/bin/python -m pip install --quiet --no-compile {program.package}=={program.version}",
            f"{PROGRAM_FOLDER}/bin/python -m pip freeze > {PACKAGES_FILE}",
            _hash_step(program.path),
        )
    # The scripts of all packages stay off; the one step that a program needs is named by its adapter.
    install = f"npm install --prefix {PROGRAM_FOLDER} --ignore-scripts --no-audit --no-fund --save-exact"
    return (
        f"mkdir -p {PROGRAM_FOLDER}",
        f"{install} {program.package}@{program.version}",
        *([f"cd {PROGRAM_FOLDER}/node_modules/{program.package}\n{program.after}"] if program.after else []),
        f"cd {PROGRAM_FOLDER}\nnpm ls --all --parseable --long | sed 's/.*://' > {PACKAGES_FILE}",
        _hash_step(program.path),
    )


def _hash_step(path: str) -> str:
    """Enters the hash of the file behind `path` among the packages. The pipe's own end would be a failed step's too."""
    return f'sum=$(sha256sum "$(readlink -f {path})")\necho "{_PROGRAM_LINE}${{sum%% *}}" >> {PACKAGES_FILE}'
