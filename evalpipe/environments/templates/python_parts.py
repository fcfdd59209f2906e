"""What the parts of a Python project ask for: requirements, folders of the tree, constraints; and how they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from posixpath import join, normpath
from typing import Final, TypeVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from evalpipe.environments.recipe import NoRecipe, ProjectTree

_Part = TypeVar("_Part")


class Use(IntEnum):
    """What a group of requirements is for, as its name says; the smallest number is the best source for a test run."""

    TESTS = 0
    SOME_TESTS = 1
    DEVELOPMENT = 2
    EVERYTHING = 3
    OTHER = 4


@dataclass(frozen=True, slots=True)
class LocalProject:
    """A project of the tree that is installed in place: its folder (empty for the top), and which of its extras."""

    folder: str
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be installed. `notes` say what was left out and why, `files` are the paths that were read for it."""

    requirements: tuple[str, ...] = ()
    locals: tuple[LocalProject, ...] = ()
    constraints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __add__(self, other: Wanted) -> Wanted:
        return Wanted(
            _joined(self.requirements, other.requirements),
            _joined(self.locals, other.locals),
            _joined(self.constraints, other.constraints),
            _joined(self.notes, other.notes),
            _joined(self.files, other.files),
        )

    def names(self) -> frozenset[str]:
        """The canonical names of the requirements."""
        return frozenset(canonicalize_name(Requirement(text).name) for text in self.requirements)


@dataclass(frozen=True, slots=True)
class Group:
    """Requirements under one name, as a dependency group, an extra or a file; `source` says where, for people."""

    source: str
    name: str
    wanted: Wanted
    use: Use


class Folder:
    """A folder of a tree. Paths are text from this folder; what is not UTF-8 is read with its wrong bytes replaced."""

    def __init__(self, tree: ProjectTree, folder: str = "") -> None:
        self._tree, self.folder = tree, folder

    def path(self, name: str) -> str:
        """The path of `name` from the top of the tree; raises ValueError for one outside of it."""
        path = normpath(join(self.folder, name))
        if path.startswith(("..", "/")):
            raise ValueError(f"{name} lies outside of the repository")
        return "" if path == "." else path

    def has(self, name: str) -> bool:
        """Whether there is a file `name`."""
        try:
            return self.path(name).encode() in self._tree.paths
        except ValueError:
            return False

    def text(self, name: str) -> str | None:
        """The content of the file `name`; None for nothing."""
        if not self.has(name):
            return None
        return self._tree.read(self.path(name).encode()).decode("utf-8", "replace").removeprefix("\ufeff")

    def names(self) -> list[str]:
        """Every file below this folder, sorted."""
        start = f"{self.folder}/" if self.folder else ""
        found = (path.decode("utf-8", "replace") for path in self._tree.paths)
        return sorted(path.removeprefix(start) for path in found if path.startswith(start))

    def below(self, name: str) -> Folder:
        """The folder `name`; raises ValueError for one outside of the tree."""
        return Folder(self._tree, self.path(name))


_TEST_NAMES: Final = frozenset({"test", "tests", "testing"})
_TEST_WORDS: Final = _TEST_NAMES | {"unittest", "unittests", "unit", "pytest", "tester"}
_DEVELOPMENT_NAMES: Final = frozenset({"dev", "develop", "development", "devel"})
# A group such as `tests-mypy` or `docs-test` checks something else than the code by its tests.
_OTHER_WORDS: Final = frozenset(
    [
        "doc",
        "docs",
        "documentation",
        "lint",
        "linting",
        "linters",
        "mypy",
        "type",
        "types",
        "typing",
        "typecheck",
        "style",
        "format",
        "formatting",
        "release",
        "publish",
        "build",
        "benchmark",
        "benchmarks",
        "bench",
        "perf",
        "gpu",
        "coverage",
        "codecov",
        "ci",
        "pre",
        "commit",
    ]
)


def use_of(name: str) -> Use:
    """What a group, extra or environment of this name is for."""
    words = re.split(r"[-_.\s/]+", name.lower())
    if "".join(words) in _TEST_NAMES:
        return Use.TESTS
    if _TEST_WORDS.intersection(words) and not _OTHER_WORDS.intersection(words):
        return Use.SOME_TESTS
    return Use.DEVELOPMENT if "".join(words) in _DEVELOPMENT_NAMES else Use.OTHER


def wanted_of(texts: Iterable[object], source: str, folder: Folder) -> Wanted:
    """What requirements of a manifest ask for, each as PEP 508 writes it or as pip's files do.

    `source` names the place of a note. A direct URL cannot be resolved as of a day, so it is left out with a note.
    """
    found = Wanted()
    for text in texts:
        found += _wanted_of_one(text, source, folder) if isinstance(text, str) else _left_out(str(text), source)
    return found


def _wanted_of_one(text: str, source: str, folder: Folder) -> Wanted:
    line = re.split(r"\s--[a-z]", text.strip(), maxsplit=1)[0].strip()
    if not line:
        return Wanted()
    editable = re.match(r"(?:-e|--editable)(?:\s+|=)(.+)", line)
    if editable or line.startswith((".", "/", "file:")):
        return _local(editable.group(1) if editable else line, source, folder)
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        return _left_out(f"{line}: {str(error).splitlines()[0]}", source)
    if requirement.url:
        if requirement.url.startswith("file:"):
            return _local(requirement.url, source, folder)
        return _left_out(f"{line}: a URL", source)
    return Wanted(requirements=(str(requirement),))


def _local(text: str, source: str, folder: Folder) -> Wanted:
    match = re.fullmatch(r"(?P<path>[^\[\]]*?)\s*(?:\[(?P<extras>[^\]]*)\])?", text.strip().strip("\"'"))
    path = match["path"].partition("#")[0] if match else text
    # PDM writes the project's own place as a variable.
    path = re.sub(r"^file:/*(?=\$\{PROJECT_ROOT\}|\.)", "", path).replace("${PROJECT_ROOT}", ".")
    if match is None or re.match(r"[a-z+]+:|/", path) or "$" in path:
        return _left_out(f"{text}: not a folder of this repository", source)
    extras = tuple(part.strip() for part in (match["extras"] or "").split(",") if part.strip())
    try:
        return Wanted(locals=(LocalProject(folder.path(path or "."), extras),))
    except ValueError as error:
        return _left_out(str(error), source)


def _left_out(what: str, source: str) -> Wanted:
    return Wanted(notes=(f"left out of {source}: {' '.join(what.split())}",))


def _joined(first: tuple[_Part, ...], second: tuple[_Part, ...]) -> tuple[_Part, ...]:
    return tuple(dict.fromkeys(first + second))


def unreadable(path: str, error: Exception) -> NoRecipe:
    """The refusal of a manifest that cannot be parsed."""
    return NoRecipe(
        f"{path} cannot be read: {error}; say in data/repos/NAME.yaml what the tests need, with "
        "`template: packages` and `packages`, or bring an image with `template: dockerfile`"
    )
