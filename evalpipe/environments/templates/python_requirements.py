"""Requirements files of pip: which of a repository are for what, and what one asks for with those that it includes."""

import re
from typing import Final

from evalpipe.environments.templates.python_parts import Folder, Group, Use, Wanted, use_of, wanted_of

_FOLDERS: Final = frozenset(
    {"", "requirements", "requirement", "reqs", "req", "deps", "dependencies", "test", "tests", "testing", "ci"}
)
_INCLUDE: Final = re.compile(r"(?:-r|--requirement|-c|--constraint)(?:\s+|=|(?=\S))(?P<path>[^\s#]+)")
_DEPTH: Final = 10


def requirements_file(folder: Folder, name: str, *, depth: int = 0) -> Wanted:
    """What the file `name` asks for. Options of pip are left out; includes are followed, from the file's own place."""
    text = folder.text(name)
    if text is None:
        return Wanted(notes=(f"{name} is named and not there",))
    found = Wanted(files=(folder.path(name),))
    here = folder.below(name.rpartition("/")[0] or ".")
    for line in _lines(text):
        include = _INCLUDE.match(line)
        if include and depth < _DEPTH:
            found += _included(include, line.startswith(("-c", "--c")), here, depth)
        elif line.startswith("-") and not line.startswith(("-e", "--editable")):
            found += Wanted(notes=(f"left out of {name}: {line}",))
        elif not include:
            # Paths in it are from where pip is run, which is the top.
            found += wanted_of([line], name, folder)
    return found


def _included(include: re.Match[str], constraint: bool, here: Folder, depth: int) -> Wanted:
    try:
        here.path(include["path"])
    except ValueError as error:
        return Wanted(notes=(str(error),))
    found = requirements_file(here, include["path"], depth=depth + 1)
    if not constraint:
        return found
    return Wanted(constraints=found.requirements + found.constraints, notes=found.notes, files=found.files)


def _lines(text: str) -> list[str]:
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def requirements_groups(folder: Folder) -> list[Group]:
    """The requirements files at their usual places that are for tests, for development, or for all."""
    groups = []
    names = folder.names()
    for name in names:
        use = _use_of_file(name)
        # What was compiled from it is exact.
        compiled = name.endswith(".in") and f"{name.removesuffix('.in')}.txt" in names
        if use is not Use.OTHER and not compiled:
            groups.append(Group("requirements file", name, requirements_file(folder, name), use))
    return groups


def _use_of_file(name: str) -> Use:
    place, _, file = name.rpartition("/")
    stem = re.sub(r"\.(?:txt|in|pip)\Z", "", file)
    if place not in _FOLDERS or stem == file:
        return Use.OTHER
    in_own_folder = place in ("requirements", "requirement", "reqs", "req", "deps", "dependencies")
    plain = re.fullmatch(r"requirements?|reqs", stem) is not None
    if plain and place in ("", "requirements"):
        return Use.EVERYTHING
    if plain:
        return use_of(place)
    if not in_own_folder and re.search(r"req", stem) is None:
        return Use.OTHER
    return use_of(re.sub(r"[-_.]?(?:requirements?|reqs)[-_.]?", "", stem) or stem)
