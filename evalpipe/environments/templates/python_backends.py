"""Build backends: where each takes a version from that it would ask git for, what each reads, and what it needs."""

import re
from collections.abc import Iterable
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from evalpipe.environments.templates.python_parts import Folder
from evalpipe.environments.templates.python_pyproject import Table, table
from evalpipe.environments.templates.python_setuptools import SetuptoolsProject, version_files

UNKNOWN_VERSION: Final = "0+unknown"

# Read by the backend, for this project alone where the variable can name it: a dependency that is built from source
# may use the same tool.
_VERSION_VARIABLES: Final = {
    "setuptools-scm": "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_{name}",
    "vcs-versioning": "VCS_VERSIONING_PRETEND_VERSION",
    "flit-scm": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "hatch-vcs": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "scikit-build-core": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "pbr": "PBR_VERSION",
    "pdm-backend": "PDM_BUILD_SCM_VERSION",
    "pdm-pep517": "PDM_PEP517_SCM_VERSION",
    "poetry-dynamic-versioning": "POETRY_DYNAMIC_VERSIONING_BYPASS",
    "uv-dynamic-versioning": "UV_DYNAMIC_VERSIONING_BYPASS",
}
# These run git and nothing else.
_ASK_GIT: Final = frozenset(
    {
        "versioningit",
        "setuptools-git-versioning",
        "setuptools-git",
        "setuptools-vcs-version",
        "dunamai",
        "hatch-regex-commit",
        "katversion",
        "git-versioner",
        "better-setuptools-git-version",
    }
)
_COMPILERS: Final = frozenset(
    {"cython", "cffi", "meson-python", "scikit-build", "scikit-build-core", "pybind11", "nanobind", "mypy", "numpy"}
)
_SOURCES: Final = re.compile(
    r"\.(?:c|cc|cpp|cxx|h|hpp|hxx|pyx|pxd|pxi|rs|f|f90|cmake)\Z"
    r"|(?:\A|/)(?:CMakeLists\.txt|meson\.build|meson_options\.txt|Cargo\.(?:toml|lock)|build\.rs)\Z"
)


def version_of(text: str | None) -> str:
    """The version to pretend: `text` as PEP 440 knows it (a tag may begin with a name), else UNKNOWN_VERSION."""
    match = re.search(r"v?\d.*", text or "")
    try:
        return str(Version(match[0])) if match else UNKNOWN_VERSION
    except InvalidVersion:
        return UNKNOWN_VERSION


def requirement_names(texts: Iterable[str]) -> frozenset[str]:
    """The canonical names of requirements; what is none is left out."""
    names = set()
    for text in texts:
        try:
            names.add(canonicalize_name(Requirement(text).name))
        except InvalidRequirement:
            continue
    return frozenset(names)


def version_variables(build_names: frozenset[str], name: str | None, version: str) -> dict[str, str]:
    """Environment variables by which the tools among `build_names` take `version` and ask no git."""
    variables = {}
    for tool in sorted(build_names & _VERSION_VARIABLES.keys()):
        variable = _VERSION_VARIABLES[tool]
        if name is None:
            variable = variable.removesuffix("_FOR_{name}")
        variables[variable.format(name=re.sub(r"[-_.]+", "_", name or "").upper())] = version
    return variables


def asks_git(build_names: frozenset[str]) -> bool:
    """Whether the build needs a repository, because no variable tells it the version."""
    return bool(build_names & _ASK_GIT)


def native_sources(build_names: frozenset[str], setuptools: SetuptoolsProject, folder: Folder) -> tuple[str, ...]:
    """The sources of extension modules, from the top of the tree; empty for a project that compiles nothing."""
    rust = build_names & {"maturin", "setuptools-rust"}
    if not (setuptools.extensions or rust or build_names & _COMPILERS):
        return ()
    aside = re.compile(r"(?:\A|/)(?:tests?|docs?|examples?|benchmarks?)/")
    return tuple(folder.path(name) for name in folder.names() if _SOURCES.search(name) and not aside.search(name))


def files_read(document: Table, setuptools: SetuptoolsProject, folder: Folder) -> tuple[str, ...]:
    """The manifests of a project and the files that its backend takes metadata from, from the top of the tree."""
    names = ["pyproject.toml", "setup.cfg", "setup.py", "MANIFEST.in", "hatch.toml", "hatch_build.py", "build.py"]
    names += ["PKG-INFO", "versioneer.py", ".git_archival.txt", "pdm_build.py", *setuptools.paths]
    dynamic = table(document, "tool", "setuptools", "dynamic")
    for value in dynamic.values():
        if isinstance(value, dict) and "attr" in value:
            names += version_files(folder, f"attr:{value['attr']}")
        elif isinstance(value, dict) and "file" in value:
            found = value["file"]
            names += [found] if isinstance(found, str) else found
    for tool in (("hatch", "version"), ("pdm", "version")):
        path = table(document, "tool", *tool).get("path")
        names += [path] if isinstance(path, str) else []
    if "version" in table(document, "project").get("dynamic", ()) or table(document, "tool", "flit", "metadata"):
        names += _flit_modules(document)
    documents = (".md", ".rst")
    there = (name for name in names if folder.has(name) and not name.lower().endswith(documents))
    return tuple(dict.fromkeys(folder.path(name) for name in there))


def _flit_modules(document: Table) -> list[str]:
    if "flit" not in str(table(document, "build-system").get("build-backend", "")):
        return []
    module = table(document, "tool", "flit", "module").get("name") or table(document, "tool", "flit", "metadata").get(
        "module"
    )
    name = str(module or table(document, "project").get("name", "")).replace("-", "_").replace(".", "/")
    return [f"{start}{name}{end}" for start in ("", "src/") for end in (".py", "/__init__.py")]
