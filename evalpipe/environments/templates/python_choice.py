"""Which groups of a project its tests need, and all that an environment for them is to hold."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from evalpipe.environments.templates.python_parts import Group, LocalProject, Use, Wanted
from evalpipe.environments.templates.python_pipelines import PIPELINE
from evalpipe.environments.templates.python_project import PythonProject


@dataclass(frozen=True, slots=True)
class Choice:
    """What is installed: `groups` for people, `wanted` with every project of the tree in `locals`."""

    groups: tuple[Group, ...]
    wanted: Wanted


def chosen_groups(groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups that the tests need.

    Of each kind of source those that are named for tests, else those of which the name says so among other words.
    Where no source has any, the development groups; where there are none either, the plain requirements files.
    Development groups that bring pytest come along when nothing else does. What a pipeline installs is added to all
    this: one that runs a part of the tests is not told from one that runs them all.
    """
    found: list[Group] = []
    pipelines = [group for group in groups if group.source == PIPELINE]
    groups = [group for group in groups if group.source != PIPELINE]
    for source in dict.fromkeys(group.source for group in groups):
        of_source = [group for group in groups if group.source == source]
        best = min(group.use for group in of_source)
        if best <= Use.SOME_TESTS:
            found += [group for group in of_source if group.use is best]
    for use in (Use.DEVELOPMENT, Use.EVERYTHING):
        if not found:
            found = [group for group in groups if group.use is use]
    if found and not any(map(_brings_pytest, found)):
        found += [
            group for group in groups if group.use is Use.DEVELOPMENT and group not in found and _brings_pytest(group)
        ]
    return (*found, *pipelines)


def _brings_pytest(group: Group) -> bool:
    # What an extra holds is not in the group; it is asked for by its name.
    return bool(group.wanted.locals) or any(re.match("pytest", name) for name in group.wanted.names())


def choose(projects: Sequence[PythonProject], packages: Iterable[str]) -> Choice:
    """What the tests of `projects`, the projects of one tree, need, with the team's own `packages`.

    A requirement that names one of them is that project in place, with its extras: the released one must not come.
    """
    groups = tuple(group for project in projects for group in chosen_groups(project.groups))
    wanted = Wanted(requirements=tuple(packages))
    for project in projects:
        wanted += project.runtime + Wanted(constraints=project.constraints)
    for group in groups:
        wanted += group.wanted
    installable = [project for project in projects if project.installable]
    wanted += Wanted(locals=tuple(LocalProject(project.folder) for project in installable))
    return Choice(groups, _in_place(wanted, installable))


def _in_place(wanted: Wanted, projects: Sequence[PythonProject]) -> Wanted:
    by_name: dict[str, PythonProject] = {
        canonicalize_name(project.name): project for project in projects if project.name
    }
    requirements, locals_ = _split(wanted.requirements, by_name)
    extras: dict[str, list[str]] = {}
    for local in (*wanted.locals, *locals_):
        extras.setdefault(local.folder, []).extend(local.extras)
    _follow(extras, projects, by_name)
    constraints, _ = _split(wanted.constraints, by_name)
    places = [LocalProject(folder, tuple(dict.fromkeys(names))) for folder, names in extras.items()]
    return replace(wanted, requirements=requirements, locals=tuple(places), constraints=constraints)


def _split(
    texts: Iterable[str], by_name: Mapping[str, PythonProject]
) -> tuple[tuple[str, ...], tuple[LocalProject, ...]]:
    """The requirements that name no project of the tree, and the others as what they mean."""
    foreign, own = [], []
    for text in texts:
        requirement = Requirement(text)
        project = by_name.get(canonicalize_name(requirement.name))
        if project is None:
            foreign.append(text)
        else:
            own.append(LocalProject(project.folder, tuple(sorted(requirement.extras))))
    return tuple(foreign), tuple(own)


def _follow(
    extras: dict[str, list[str]], projects: Sequence[PythonProject], by_name: Mapping[str, PythonProject]
) -> None:
    """Add the extras that chosen extras name in turn, as `dev = ["name[tests]"]` does."""
    by_folder = {project.folder: project for project in projects}
    queue = [(folder, extra) for folder, names in extras.items() for extra in names]
    while queue:
        folder, extra = queue.pop()
        project = by_folder.get(folder)
        known = {canonicalize_name(name): texts for name, texts in project.extras.items()} if project else {}
        for local in _split(_sound(known.get(canonicalize_name(extra), ())), by_name)[1]:
            place = extras.setdefault(local.folder, [])
            for name in local.extras:
                if name not in place:
                    place.append(name)
                    queue.append((local.folder, name))


def _sound(texts: Iterable[str]) -> list[str]:
    sound = []
    for text in texts:
        try:
            sound.append(str(Requirement(text)))
        except ValueError:
            continue
    return sound
