"""Template `python`: a virtual environment with the project installed in place and what its tests need, as of a day."""

import shlex
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from evalpipe.environments.recipe import NoRecipe, Project, ProjectTree, Recipe
from evalpipe.environments.templates import python_backends as backends
from evalpipe.environments.templates import python_steps as steps
from evalpipe.environments.templates.python_additions import Added, added_requirements, may_ask_for_more
from evalpipe.environments.templates.python_choice import Choice, choose
from evalpipe.environments.templates.python_locks import locked_versions
from evalpipe.environments.templates.python_parts import Folder
from evalpipe.environments.templates.python_project import MANIFESTS, PythonProject, read_project

NAME = "python"
VERSION = 1
_RUNNER = "pytest"
_OTHER_RUNNER = "unittest"
_ASIDE = {"test", "tests", "testing", "doc", "docs", "example", "examples", "benchmark", "benchmarks", "vendor"}
_PROJECTS = 50


class PythonTemplate:
    """See `Template`. Reads the manifests of a tree; `python_choice` says which of their groups are installed."""

    name = NAME

    def recipe(self, project: Project) -> Recipe:
        """The recipe for a tree with Python in it. Raises NoRecipe for one without, and for unreadable manifests."""
        if not any(path.endswith(b".py") for path in project.tree.paths):
            raise NoRecipe(
                "no Python project: the tree has no .py file; name another template in data/repos/NAME.yaml, or an "
                "image of your own with `template: dockerfile`"
            )
        packages = _packages(project.packages)
        found = _read(project.tree, packages)
        added = Added()
        if project.change is not None and may_ask_for_more(project.change.altered):
            changed = _read(project.change, packages)
            added = added_requirements(
                (found.projects, found.choice), (changed.projects, changed.choice), Folder(project.change)
            )
        return _recipe(project, found.projects, found.choice, found.top, added)


class _Read(NamedTuple):
    """The projects of a tree, and what is installed of them."""

    top: Folder
    projects: list[PythonProject]
    choice: Choice


def _read(tree: ProjectTree, packages: tuple[str, ...]) -> _Read:
    top = Folder(tree)
    projects = [read_project(top.below(folder or ".")) for folder in _folders(top)]
    return _Read(top, *_with_neighbours(projects, packages, top))


def _packages(packages: tuple[str, ...]) -> tuple[str, ...]:
    for text in packages:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            raise NoRecipe(f"packages: {text!r} is no requirement that pip knows: {error}") from error
    return packages


def _folders(top: Folder) -> list[str]:
    """Where the projects of a tree are: at its top, and if that is none in the nearest folders that have a manifest."""
    if _has_project(top):
        return [""]
    found = [
        name.rpartition("/")[0]
        for name in top.names()
        if "/" in name
        and name.rpartition("/")[2] in MANIFESTS
        and not _ASIDE.intersection(name.lower().split("/"))
        and _has_project(top.below(name.rpartition("/")[0]))
    ]
    depth = min((folder.count("/") for folder in found), default=0)
    # Requirements files and the settings of tools may lie above the projects.
    return ["", *sorted({folder for folder in found if folder.count("/") == depth})[:_PROJECTS]]


def _has_project(folder: Folder) -> bool:
    """Whether a folder has more than settings of tools, for which many repositories have a pyproject.toml."""
    if any(folder.has(name) for name in ("setup.py", "Pipfile", "requirements.txt")):
        return True
    return any(folder.has(name) for name in MANIFESTS) and read_project(folder).is_project


def _with_neighbours(
    projects: list[PythonProject], packages: tuple[str, ...], top: Folder
) -> tuple[list[PythonProject], Choice]:
    """All projects of the tree that the first ones need in place, and what is installed."""
    while True:
        choice = choose(projects, packages)
        known = {project.folder for project in projects}
        needed = [local.folder for local in choice.wanted.locals]
        needed += [folder for project in projects for folder in project.neighbours]
        new = [folder for folder in dict.fromkeys(needed) if folder not in known and _is_project(top.below(folder))]
        if not new or len(projects) + len(new) > _PROJECTS:
            return projects, choice
        projects = [*projects, *(read_project(top.below(folder)) for folder in new)]


def _is_project(folder: Folder) -> bool:
    return any(folder.has(name) for name in MANIFESTS[:3])


def _recipe(project: Project, projects: list[PythonProject], choice: Choice, top: Folder, added: Added) -> Recipe:
    wanted = choice.wanted
    installable = {found.folder: found for found in projects if found.installable}
    locals_ = [local for local in wanted.locals if local.folder in installable]
    notes = [*wanted.notes, *(f"{local.folder} is no project" for local in wanted.locals if local not in locals_)]
    lock = locked_versions(top)
    own = {found.name for found in installable.values() if found.name}
    own_names = backends.requirement_names(sorted(own))
    locked = [line for line in (lock[1] if lock else ()) if not own_names & backends.requirement_names([line])]
    version = backends.version_of(project.version)
    variables: dict[str, str] = {}
    for found in installable.values():
        variables |= backends.version_variables(found.build_names, found.name, version)
    needless = _RUNNER in own_names or project.runner == _OTHER_RUNNER
    runner = () if needless else (_RUNNER,)
    files = steps.files(
        day=project.day,
        requirements=tuple(dict.fromkeys((*wanted.requirements, *runner))),
        locals_=locals_,
        constraints=wanted.constraints,
        locked=locked,
        overrides=[line for found in projects for line in found.overrides],
        names={folder: found.name for folder, found in installable.items() if found.name},
        modules=sorted({module for found in installable.values() for module in found.modules}),
        variables=variables,
    )
    files |= steps.added_files(added.requirements, added.locked) if added.requirements else {}
    sources = {path for found in installable.values() for path in found.native_sources}
    reads = {path for found in installable.values() for path in found.reads}
    reads |= sources | set(wanted.files) | ({lock[0]} if lock else set())
    return Recipe(
        template=NAME,
        version=VERSION,
        steps=_steps(project, list(installable.values()), choice, notes, version, top, bool(sources), added),
        env={"PATH": f"{steps.VENV}/bin:$PATH", "VIRTUAL_ENV": steps.VENV},
        files=files,
        decided_by=tuple(sorted(path.encode() for path in reads)),
        keeps=("**",) if installable else (),
        check=steps.CHECK,
    )


def _steps(
    project: Project,
    installable: list[PythonProject],
    choice: Choice,
    notes: list[str],
    version: str,
    top: Folder,
    compiles: bool,
    added: Added,
) -> tuple[str, ...]:
    said = [f"evalpipe: installing the {group.source} {group.name}" for group in choice.groups]
    said += [f"evalpipe: {note}" for note in notes]
    install = [f"echo {shlex.quote(line)}\n" for line in said]
    install += [steps.COMPILER] if compiles else []
    undeclared = {found.name: found.undeclared for found in installable if found.name and found.undeclared}
    git = any(backends.asks_git(found.build_names) for found in installable)
    make, remove = steps.throwaway_repository(version)
    install += [make] if git else []
    install += [steps.install(undeclared)]
    install += [steps.ADD] if added.requirements else []
    install += [remove] if git else []
    rubbish = [name for found in installable for name in _rubbish(found, top)]
    return (steps.PREPARE, *project.setup, "".join(install), steps.finish(rubbish))


def _rubbish(found: PythonProject, top: Folder) -> list[str]:
    """Folders that a build leaves beside the project: nothing reads them, and tests in copies would be collected."""
    # An editable install of meson-python lives in its build folder.
    names = ["dist", ".eggs", ".pdm-build", *([] if "meson-python" in found.build_names else ["build"])]
    folder = top.below(found.folder or ".")
    tracked = {name.partition("/")[0] for name in folder.names()}
    return [folder.path(name) for name in names if name not in tracked]
