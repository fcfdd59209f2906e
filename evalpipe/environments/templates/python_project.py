"""One Python project of a tree, as its manifests describe it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from evalpipe.environments.templates import python_backends as backends
from evalpipe.environments.templates.python_commands import Installer
from evalpipe.environments.templates.python_parts import Folder, Group, LocalProject, Use, Wanted, use_of, wanted_of
from evalpipe.environments.templates.python_pipelines import pipeline_groups
from evalpipe.environments.templates.python_poetry import pipfile_groups, poetry_runtime
from evalpipe.environments.templates.python_pyproject import (
    Table,
    extras_of,
    groups_of,
    local_sources,
    project_name,
    read_toml,
    table,
)
from evalpipe.environments.templates.python_pytest import plugins_of_settings
from evalpipe.environments.templates.python_requirements import requirements_groups
from evalpipe.environments.templates.python_sessions import session_groups
from evalpipe.environments.templates.python_setuptools import SetuptoolsProject, read_setuptools

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt")


@dataclass(frozen=True, slots=True)
class PythonProject:
    """What there is to know of the project in `folder` (empty for the top) before anything is run.

    `installable` says whether a backend can install it. `runtime` is what comes in any case: the plugins that pytest's
    settings need, and the dependencies of a project that no backend installs; `dependencies` are those of every
    project, as far as they are written down. `extras`
    are those that are written down, a computed one is not among them. `neighbours` are folders of other projects of
    the tree that it is developed with. `undeclared` are modules that setup.py imports and no manifest asks for.
    """

    folder: str
    name: str | None
    installable: bool
    extras: Mapping[str, tuple[str, ...]]
    groups: tuple[Group, ...]
    runtime: Wanted
    dependencies: Wanted
    neighbours: tuple[str, ...]
    build_names: frozenset[str]
    undeclared: tuple[str, ...]
    constraints: tuple[str, ...]
    overrides: tuple[str, ...]
    native_sources: tuple[str, ...]
    reads: tuple[str, ...]
    modules: tuple[str, ...]

    @property
    def is_project(self) -> bool:
        """Whether the manifests describe a project, and not only settings of tools."""
        return self.installable or self.name is not None or bool(self.neighbours)


def read_project(folder: Folder) -> PythonProject:
    """The project of `folder`, which has one of MANIFESTS. Raises NoRecipe for a manifest that cannot be read."""
    document, setuptools = read_toml(folder, "pyproject.toml"), read_setuptools(folder)
    name = project_name(document) or setuptools.name
    if name is not None and re.fullmatch(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?", name, re.ASCII) is None:
        name = None  # Some backends make a name of it.
    extras = setuptools.extras | extras_of(document)
    requires = table(document, "build-system").get("requires")
    declared = [text for text in requires if isinstance(text, str)] if isinstance(requires, list) else []
    build_names = backends.requirement_names((*declared, *setuptools.setup_requires))
    uv = table(document, "tool", "uv")
    installable = _is_installable(document, setuptools, folder)
    dependencies = _runtime(document, folder)
    return PythonProject(
        folder=folder.folder,
        name=name,
        installable=installable,
        extras=extras,
        groups=tuple(_groups(document, setuptools, extras, folder)),
        runtime=plugins_of_settings(folder) + (Wanted() if installable else dependencies),
        dependencies=dependencies + wanted_of(setuptools.install_requires, "install_requires", folder),
        neighbours=local_sources(document, folder),
        build_names=build_names,
        undeclared=() if declared else setuptools.imports,
        constraints=tuple(map(str, uv.get("constraint-dependencies", ()))),
        overrides=tuple(map(str, uv.get("override-dependencies", ()))),
        native_sources=backends.native_sources(build_names, setuptools, folder) if installable else (),
        reads=backends.files_read(document, setuptools, folder) if installable else (),
        modules=_modules(name, folder),
    )


def _is_installable(document: Table, setuptools: SetuptoolsProject, folder: Folder) -> bool:
    if table(document, "tool", "uv").get("package") is False:
        return False
    if table(document, "tool", "poetry").get("package-mode") is False:
        return False
    if table(document, "tool", "pdm").get("distribution") is False:
        return False
    if folder.has("setup.py") or "build-system" in document:
        return True
    if setuptools.packages or table(document, "tool", "uv").get("package") is True:
        return True
    # Without a named backend it is setuptools, which finds a package below `src` or one that has the project's name.
    return bool(table(document, "project")) and bool(_modules(project_name(document), folder))


def _runtime(document: Table, folder: Folder) -> Wanted:
    dependencies = table(document, "project").get("dependencies")
    listed = dependencies if isinstance(dependencies, list) else ()
    return wanted_of(listed, "the project's dependencies", folder) + poetry_runtime(
        table(document, "tool", "poetry"), folder
    )


def _groups(
    document: Table, setuptools: SetuptoolsProject, extras: Mapping[str, tuple[str, ...]], folder: Folder
) -> list[Group]:
    groups = list(groups_of(document, folder))
    by_name: dict[str, Wanted] = {
        canonicalize_name(group.name): group.wanted for group in groups if group.source != "Hatch environment"
    }
    installer = Installer(folder, by_name, extras.keys())
    groups += [*session_groups(document, installer), *pipeline_groups(folder, installer)]
    for extra in extras:
        # Versions of an extra are the backend's to read; the extra is what is installed.
        wanted = Wanted(locals=(LocalProject(folder.folder, (extra,)),))
        groups.append(Group("extra", extra, wanted, use_of(extra)))
    if setuptools.tests_require:
        wanted = wanted_of(setuptools.tests_require, "tests_require", folder)
        groups.append(Group("setuptools", "tests_require", wanted, Use.TESTS))
    groups += pipfile_groups(read_toml(folder, "Pipfile"), folder) if folder.has("Pipfile") else ()
    return [*groups, *requirements_groups(folder)]


def _modules(name: str | None, folder: Folder) -> tuple[str, ...]:
    """The names by which the project is imported, as far as its layout shows them."""
    found = set()
    for path in folder.names():
        match = re.fullmatch(r"src/([A-Za-z_]\w*)(?:\.py|/__init__\.pyi?)", path)
        if match:
            found.add(match[1])
        match = re.fullmatch(r"([A-Za-z_]\w*)(?:\.py|/__init__\.py)", path)
        if match and name and canonicalize_name(match[1]) == canonicalize_name(name):
            found.add(match[1])
    return tuple(sorted(found))
