"""Commands that install: what pip, uv, PDM and Poetry bring when a script, a session or a pipeline calls them."""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Final

from packaging.utils import canonicalize_name

from evalpipe.environments.templates.python_parts import Folder, LocalProject, Use, Wanted, use_of, wanted_of
from evalpipe.environments.templates.python_requirements import requirements_file

# They make an environment or look at its results; what runs in one does not need them.
_TOOLS: Final = frozenset(
    {"pip", "setuptools", "wheel", "uv", "tox", "tox-uv", "tox-gh-actions", "nox", "poetry", "pdm", "hatch", "pipenv"}
    | {"virtualenv", "build", "twine", "pre-commit", "codecov", "coveralls", "poetry-core", "poetry-dynamic-versioning"}
)
_TAKE_A_VALUE: Final = frozenset({"-r", "-c", "-e", "--requirement", "--constraint", "--editable", "--group"})
# Their values would be taken for packages.
_DROPPED: Final = frozenset(
    {"-i", "--index-url", "--extra-index-url", "--index", "--default-index", "-f", "--find-links", "--upgrade-strategy"}
    | {"--only-binary", "--no-binary", "--python", "-p", "--python-version", "--platform", "--abi", "--implementation"}
    | {
        "-t",
        "--target",
        "--prefix",
        "--root",
        "--src",
        "--cache-dir",
        "--progress-bar",
        "--root-user-action",
        "--timeout",
    }
    | {"--retries", "--trusted-host", "--proxy", "--cert", "--client-cert", "--log", "--report", "--exists-action"}
    | {"--config-settings", "-C", "--config-setting", "--resolution", "--prerelease", "--link-mode", "--exclude-newer"}
    | {"--index-strategy", "--keyring-provider", "--torch-backend", "--override", "--overrides", "--build-constraint"}
    | {"--build-constraints", "-b", "--no-build-isolation-package", "--refresh-package", "--reinstall-package", "-P"}
    | {"--upgrade-package", "--extra", "--use-feature", "--use-deprecated", "--global-option", "--hash"}
)
_GROUPS: Final = frozenset({"-G", "--group", "--with", "--only", "--only-group", "--dependency-group"})
_EXTRAS: Final = frozenset({"--extra", "--extras", "-E"})
_TESTS_RUN: Final = re.compile(r"\b(?:pytest|py\.test|unittest|nosetests|stestr|trial|coverage run)\b")


@dataclass(frozen=True, slots=True)
class Installer:
    """Knows the groups and extras of the project in `folder`, which commands name."""

    folder: Folder
    groups: Mapping[str, Wanted]
    extras: Collection[str]

    def commands(self, lines: Iterable[str], source: str) -> Wanted:
        """What command lines install before the first that runs tests; later ones prepare other runs."""
        found = Wanted()
        for line in lines:
            for part in re.split(r"&&|;|\|\|", line):
                # `pip install pytest` runs none.
                installs = self.command(_words(part), source)
                if installs is None and _TESTS_RUN.search(part):
                    return found
                found += installs or Wanted()
        return found

    def command(self, words: Sequence[str], source: str) -> Wanted | None:
        """What one command installs; None for one that installs nothing."""
        for index, (tool, verb) in enumerate(pairwise(words)):
            rest = words[index + 2 :]
            if tool in ("pip", "pip3") and verb == "install":
                return self.arguments(pip_arguments(rest), source)
            if (tool, verb) in (("pdm", "install"), ("pdm", "sync"), ("poetry", "install"), ("uv", "sync")):
                return self._synced(rest)
        return None

    def arguments(self, lines: Iterable[str], source: str) -> Wanted:
        """What arguments of `pip install` ask for, an option with its value as one line."""
        found = Wanted()
        for line in lines:
            file = re.match(r"(-r|--requirement|-c|--constraint)[\s=]*([^\s;]+)", line)
            if file:
                found += self._file(file[1], file[2])
            elif line.startswith("--group "):
                found += self.named(line.removeprefix("--group "))
            elif not re.match(r"-(?!e|-editable)", line):
                found += wanted_of([line], source, self.folder)
        return found

    def named(self, names: str) -> Wanted:
        """Groups by name, else extras; several are apart by commas or spaces."""
        found = Wanted()
        for name in map(canonicalize_name, re.split(r"[,\s]+", names.strip())):
            if name in self.groups:
                found += self.groups[name]
            elif name in map(canonicalize_name, self.extras):
                found += Wanted(locals=(LocalProject(self.folder.folder, (name,)),))
        return found

    def _file(self, option: str, path: str) -> Wanted:
        read = requirements_file(self.folder, path) if self.folder.has(path) else Wanted()
        if option in ("-r", "--requirement"):
            return read
        return Wanted(constraints=read.requirements, notes=read.notes, files=read.files)

    def _synced(self, words: Sequence[str]) -> Wanted:
        """What a tool installs that knows the project: named groups and extras, and unasked those for developers."""
        found = Wanted()
        if not {"--prod", "--production", "--no-dev", "--only", "--only-group", "--without"}.intersection(words):
            for name, wanted in self.groups.items():
                found += wanted if use_of(name) is not Use.OTHER else Wanted()
        for option, following in zip_longest(words, words[1:], fillvalue=""):
            name, _, joined = option.partition("=")
            value = joined or following
            if name == "--all-extras" or (name in _GROUPS and value == ":all"):
                extras = tuple(filter(_is_feature, self.extras))
                found += Wanted(locals=(LocalProject(self.folder.folder, extras),))
            elif name in _GROUPS | _EXTRAS:
                found += self.named(value)
        return found


def _is_feature(extra: str) -> bool:
    return not {"docs", "doc", "lint", "typing", "mypy", "release", "benchmark"} & set(
        re.split(r"[-_.]", extra.lower())
    )


def pip_arguments(words: Iterable[str]) -> list[str]:
    """Arguments of pip, an option with its value as one line; options that name nothing to install are left out."""
    lines = []
    rest = iter(words)
    for word in rest:
        if word in _DROPPED:
            next(rest, None)
        else:
            lines.append(f"{word} {next(rest, '')}" if word in _TAKE_A_VALUE else word)
    return lines


def without_tools(wanted: Wanted) -> Wanted:
    """`wanted` without tools that make environments, and without exact versions, which pipelines choose in turn."""
    kept = []
    for text in wanted.requirements:
        name = re.split(r"[^\w.-]", text)[0]
        if canonicalize_name(name) not in _TOOLS and not re.search(r"[=<]=|<", text.partition(";")[0]):
            kept.append(text)
    return Wanted(tuple(kept), wanted.locals, wanted.constraints, wanted.notes, wanted.files)


def _words(command: str) -> list[str]:
    """The words of one command, without what a pipeline fills in later and without redirections."""
    fixed = re.sub(r"\$\{\{.*?\}\}", "$", command)
    try:
        words = shlex.split(fixed, comments=True)
    except ValueError:
        words = fixed.split()
    found = []
    rest = iter(words)
    for word in rest:
        if word in ("|", "&", "|&"):
            break
        redirection = re.match(r"[\d&]?[<>]{1,2}(&?\S*)", word)
        if redirection and not redirection[1]:
            next(rest, None)
        elif not redirection and "$" not in word:
            found.append(word)
    return found
