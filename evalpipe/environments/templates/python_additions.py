"""What a change of a Python project asks for beyond its base: requirements that only its own manifests have."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from evalpipe.environments.templates.python_backends import requirement_names
from evalpipe.environments.templates.python_choice import Choice
from evalpipe.environments.templates.python_locks import locked_versions
from evalpipe.environments.templates.python_parts import Folder, Use, Wanted, wanted_of
from evalpipe.environments.templates.python_project import PythonProject

_NAMES = (b"setup.py", b"noxfile.py", b"Pipfile")
_SUFFIXES = (b".toml", b".cfg", b".ini", b".txt", b".in")

ReadTree = tuple[Sequence[PythonProject], Choice]


@dataclass(frozen=True, slots=True)
class Added:
    """Requirements, and the versions of the change's lock file for what they bring."""

    requirements: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()


def may_ask_for_more(altered: Iterable[bytes]) -> bool:
    """Whether any of the files that a change alters may be a manifest."""
    return any(path.rpartition(b"/")[2] in _NAMES or path.endswith(_SUFFIXES) for path in altered)


def added_requirements(base: ReadTree, change: ReadTree, top: Folder) -> Added:
    """What the manifests of `change` ask for and those of `base` do not; `top` is the change's tree.

    A requirement whose text differs counts: the version that is there may satisfy it, and is then left alone.
    """
    own = requirement_names(sorted({project.name for read in (base, change) for project in read[0] if project.name}))
    known = _asked(*base, top)
    requirements = [text for text in _asked(*change, top) if text not in known and not _is_of(text, own)]
    if not requirements:
        return Added()
    lock = locked_versions(top)
    locked = [text for text in (lock[1] if lock else ()) if not _is_of(text, own)]
    return Added(tuple(requirements), tuple(locked))


def _asked(projects: Sequence[PythonProject], choice: Choice, top: Folder) -> tuple[str, ...]:
    wanted = choice.wanted
    by_folder = {project.folder: project for project in projects}
    for project in projects:
        wanted += project.dependencies
        # setup.py often reads the project's dependencies from there, which nobody sees without running it.
        for group in project.groups:
            wanted += group.wanted if group.use is Use.EVERYTHING else Wanted()
    for local in choice.wanted.locals:
        extras = by_folder[local.folder].extras if local.folder in by_folder else {}
        chosen = {canonicalize_name(extra) for extra in local.extras}
        for name, texts in extras.items():
            if canonicalize_name(name) in chosen:
                wanted += wanted_of(texts, f"the extra {name}", top)
    return wanted.requirements


def _is_of(text: str, names: Collection[str]) -> bool:
    return not requirement_names([text]).isdisjoint(names)
