"""The shell scripts that build the environment of a Python project, and the files that they read."""

import datetime as dt
import json
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final
from urllib.parse import quote

from packaging.requirements import Requirement

from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, TREE_FOLDER
from evalpipe.environments.templates.python_parts import LocalProject

UV_VERSION: Final = "0.13.9"
VENV: Final = f"{BUILD_FOLDER}/venv"
FOLDER: Final = f"{BUILD_FOLDER}/python"
"""What the scripts read; it is gone from the finished image."""

_UV: Final = f"{BUILD_FOLDER}/uv"
_SETTINGS: Final = f"{FOLDER}/settings.sh"
_PROGRAM: Final = "python_installed.py"

PREPARE: Final = f"""\
. {_SETTINGS}
python3 -m pip --version > /dev/null || {{
    echo "evalpipe: the base image has no python3 with pip; name another one with environment.base_image"
    exit 1
}}
python3 -m pip install --quiet --no-input --disable-pip-version-check --target {_UV} uv=={UV_VERSION}
# As virtualenv does: pip, and setuptools where this Python would have had it. Suites rely on both.
{_UV}/bin/uv venv --quiet --seed --python "$(command -v python3)" {VENV}
"""

COMPILER: Final = """\
headers=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')
if ! command -v cc > /dev/null || [ ! -e "$headers/Python.h" ]; then
    if ! command -v apt-get > /dev/null; then
        echo "evalpipe: something here is compiled, and the base image has no compiler: name one that has"
        exit 1
    fi
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends gcc g++ make libc6-dev
    [ -e "$headers/Python.h" ] || apt-get install -qq -y --no-install-recommends python3-dev
fi
"""
"""Brings a C compiler and Python's headers, where they are missing."""

_INSTALL: Final = f"""\
. {_SETTINGS}
install() {{
    status=0
    uv pip install --python {VENV} --no-sources --requirements {FOLDER}/requirements.txt \\
        --overrides {FOLDER}/overrides.txt OPTIONS "$@" > {FOLDER}/install.log 2>&1 || status=$?
    cat {FOLDER}/install.log
}}
misses_compiler() {{
    [ "$status" = 1 ] && ! command -v cc > /dev/null && grep -qE \\
        "command '[^']*(cc|\\+\\+|clang)' failed|[Uu]nknown compiler|CMAKE_C(XX)?_COMPILER" {FOLDER}/install.log
}}
install_locked() {{
    install --constraints {FOLDER}/constraints.txt --constraints {FOLDER}/locked.txt $(cat {FOLDER}/locked.args)
}}
install_locked
if misses_compiler; then
    echo "evalpipe: a dependency has no wheel for this Python; once more with a compiler"
    sh -e {FOLDER}/compiler.sh
    install_locked
fi
# Exit code 1 is an answer, that no set of versions fits or that a package does not build; 2 is a fault on the way.
if [ "$status" = 1 ] && [ -s {FOLDER}/locked.txt ]; then
    echo "evalpipe: the lock file does not fit this Python; once more without it"
    install --constraints {FOLDER}/constraints.txt
fi
[ "$status" = 0 ] || exit "$status"
"""


ADD: Final = f"""\
# what the change asks for beyond its base
echo "evalpipe: adding what the change asks for beyond its base:" $(cat {FOLDER}/added.txt)
. {_SETTINGS}
add() {{
    uv pip install --python {VENV} --no-sources --requirements {FOLDER}/added.txt \\
        --overrides {FOLDER}/overrides.txt "$@"
}}
add --constraints {FOLDER}/added_locked.txt $(cat {FOLDER}/added_locked.args) || add
"""
"""Installs requirements beside what is there: a version that fits already stays."""


def install(undeclared: Mapping[str, Sequence[str]]) -> str:
    """The script that installs everything at once, so that one resolution sees it all.

    `undeclared` are, for projects by their names, the modules that setup.py imports and no manifest asks for: these
    are built with the environment's own packages, which have them first.
    """
    modules = sorted({module for names in undeclared.values() for module in names})
    options = " ".join(f"--no-build-isolation-package {shlex.quote(name)}" for name in sorted(undeclared))
    first = f". {_SETTINGS}\nuv pip install --python {VENV} --quiet setuptools wheel {shlex.join(modules)}\n"
    return (first if modules else "") + _INSTALL.replace("OPTIONS ", f"{options} " if options else "")


def finish(rubbish: Sequence[str]) -> str:
    """The script that lists what is there, and removes `rubbish`, what builds leave in the tree."""
    return f"""\
. {_SETTINGS}
uv pip freeze --python {VENV} > {PACKAGES_FILE}
find . -type d -name __pycache__ -prune -exec rm -rf {{}} +
rm -rf {shlex.join(rubbish)} {_UV}
"""


CHECK: Final = f"""\
{VENV}/bin/python -I {FOLDER}/{_PROGRAM} {TREE_FOLDER} {FOLDER}/facts.json
rm -rf {FOLDER}
"""
"""The last script of all, which fails when the project that is installed is not the tree's own."""


def throwaway_repository(version: str) -> tuple[str, str]:
    """Scripts that make a git repository of the tree, for backends that run git, and that remove it."""
    make = f"""\
command -v git > /dev/null || {{ apt-get update -qq; apt-get install -qq -y --no-install-recommends git; }}
git init --quiet .
git add --all
git -c user.name=evalpipe -c user.email=evalpipe@localhost commit --quiet --no-verify -m base
git tag {shlex.quote(f"v{version}")}
"""
    return make, "rm -rf .git\n"


def files(
    *,
    day: dt.date,
    requirements: Sequence[str],
    locals_: Sequence[LocalProject],
    constraints: Sequence[str],
    locked: Sequence[str],
    overrides: Sequence[str],
    names: Mapping[str, str],
    modules: Sequence[str],
    variables: Mapping[str, str],
) -> dict[str, bytes]:
    """The files of FOLDER, by their absolute paths.

    `names` are those of the distributions of `locals_` that are known, by folder: each takes the place of every
    requirement for it, of whatever version. Packages must have been uploaded before the end of `day`, in UTC, but for
    those that are `locked`.
    """
    places = {local.folder: editable(local, names.get(local.folder)) for local in locals_}
    settings = {
        "PATH": f"{_UV}/bin:$PATH",
        "UV_EXCLUDE_NEWER": f"{day + dt.timedelta(days=1):%Y-%m-%d}T00:00:00Z",
        "UV_PYTHON_DOWNLOADS": "never",
        # A project's own settings of uv, such as another date or a version of uv, are for its developers.
        "UV_NO_CONFIG": "1",
        "UV_NO_PROGRESS": "1",
        # Tests run as somebody who may not write bytecode into the environment.
        "UV_COMPILE_BYTECODE": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        **variables,
    }
    program = resources.files("evalpipe.environments.templates").joinpath("inside", _PROGRAM).read_bytes()
    facts = json.dumps({"names": sorted(names.values()), "modules": list(modules)}, indent=1)
    return {
        _SETTINGS: "".join(f'export {name}="{value}"\n' for name, value in settings.items()).encode(),
        f"{FOLDER}/requirements.txt": _lines([*places.values(), *requirements]),
        f"{FOLDER}/constraints.txt": _lines(constraints),
        f"{FOLDER}/locked.txt": _lines(locked),
        f"{FOLDER}/locked.args": _locked_arguments(locked),
        f"{FOLDER}/overrides.txt": _lines([*(places[folder] for folder in places if folder in names), *overrides]),
        f"{FOLDER}/compiler.sh": COMPILER.encode(),
        f"{FOLDER}/facts.json": facts.encode(),
        f"{FOLDER}/{_PROGRAM}": program,
    }


def added_files(requirements: Sequence[str], locked: Sequence[str]) -> dict[str, bytes]:
    """The files that ADD reads, by their absolute paths; `locked` are the versions of the change's lock file."""
    return {
        f"{FOLDER}/added.txt": _lines(requirements),
        f"{FOLDER}/added_locked.txt": _lines(locked),
        f"{FOLDER}/added_locked.args": _locked_arguments(locked),
    }


def _locked_arguments(locked: Sequence[str]) -> bytes:
    # What a commit locks was released before it, and so may be newer than the day.
    return _lines([f"--exclude-newer-package {name}=false" for name in sorted({Requirement(t).name for t in locked})])


def editable(local: LocalProject, name: str | None) -> str:
    """The line of a requirements file that installs a project of the tree in place, by its name where it is known."""
    place = f"{TREE_FOLDER}/{local.folder}".rstrip("/")
    extras = f"[{','.join(local.extras)}]" if local.extras else ""
    return f"-e {name}{extras} @ file://{quote(place)}" if name else f"-e {place}{extras}"


def _lines(texts: Sequence[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()
