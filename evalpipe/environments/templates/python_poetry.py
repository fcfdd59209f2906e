"""Poetry's and Pipenv's ways to write dependencies, as requirements of PEP 508."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evalpipe.environments.templates.python_parts import Folder, Group, Use, Wanted, use_of, wanted_of


def poetry_groups(poetry: Mapping[str, Any], folder: Folder) -> Iterator[Group]:
    """The dependency groups of a `tool.poetry` table."""
    tables = {"dev": poetry.get("dev-dependencies", {})} if "dev-dependencies" in poetry else {}
    groups = {name: group for name, group in poetry.get("group", {}).items() if isinstance(group, dict)}
    tables |= {name: group.get("dependencies", {}) for name, group in groups.items()}
    wanted = {name: table_wanted(table, f"the Poetry group {name}", folder) for name, table in tables.items()}
    for name, own in wanted.items():
        for included in groups.get(name, {}).get("include-groups", ()):
            own += wanted.get(included, Wanted())
        yield Group("Poetry group", name, own, use_of(name))


def poetry_runtime(poetry: Mapping[str, Any], folder: Folder) -> Wanted:
    """What a project needs to run, for one that is no package."""
    return table_wanted(poetry.get("dependencies", {}), "the Poetry dependencies", folder)


def pipfile_groups(pipfile: Mapping[str, Any], folder: Folder) -> Iterator[Group]:
    """The two sections of a Pipfile: what it runs with, and what it is developed with."""
    yield Group("Pipfile", "packages", table_wanted(pipfile.get("packages", {}), "Pipfile", folder), Use.EVERYTHING)
    packages = table_wanted(pipfile.get("dev-packages", {}), "Pipfile", folder)
    yield Group("Pipfile", "dev-packages", packages, Use.DEVELOPMENT)


def table_wanted(table: Mapping[str, Any], source: str, folder: Folder) -> Wanted:
    """What a table of names and constraints asks for, as Poetry and Pipenv write them."""
    found = Wanted()
    for name, value in table.items():
        if name.lower() == "python":
            continue
        # A package may have one entry for each Python.
        for entry in value if isinstance(value, list) else [value]:
            found += wanted_of(_requirements(name, entry), source, folder)
    return found


def _requirements(name: str, entry: object) -> list[str]:
    if isinstance(entry, str):
        return [f"{name}{_specifier(entry)}"]
    if not isinstance(entry, dict) or entry.get("optional"):
        return []
    extras = f"[{','.join(entry['extras'])}]" if entry.get("extras") else ""
    if "path" in entry:
        return [f"-e ./{entry['path']}{extras}"]
    for kind in ("git", "url", "file", "hg", "svn"):
        if kind in entry:
            return [f"{name} @ {entry[kind] if '://' in str(entry[kind]) else f'git+ssh://{entry[kind]}'}"]
    markers = [f"({entry['markers']})"] if entry.get("markers") else []
    markers += _python_markers(str(entry["python"])) if entry.get("python") else []
    marker = f" ; {' and '.join(markers)}" if markers else ""
    return [f"{name}{extras}{_specifier(str(entry.get('version', '*')))}{marker}"]


def _python_markers(constraint: str) -> list[str]:
    # Either of several ranges has no simple form; the package is then wanted on every Python.
    if "|" in constraint:
        return []
    parts = _specifier(constraint).split(",")
    return [f'python_full_version {part[:2]} "{part[2:].strip()}"' for part in map(_spaced, parts) if part]


def _spaced(part: str) -> str:
    match = re.match(r"\s*(===|==|!=|>=|<=|~=|>|<)\s*(.+)", part)
    return f"{match[1]:<2}{match[2]}" if match and not match[2].endswith("*") else ""


def _specifier(constraint: str) -> str:
    """Poetry's constraint as PEP 440 writes it; one that PEP 440 cannot say allows everything."""
    if "|" in constraint:
        return ""
    parts = [part for part in re.split(r"\s*,\s*|(?<=[\w.*])\s+(?=[<>=!~^])", constraint.strip()) if part]
    return ",".join(filter(None, map(_part, parts)))


def _part(part: str) -> str:
    if part in ("*", "latest", ""):
        return ""
    match = re.fullmatch(r"(\^|~(?!=)|===|==|=|!=|>=|<=|~=|>|<)?\s*v?(.+)", part)
    if match is None:
        return ""
    sign, version = match[1] or "==", match[2].strip()
    if sign == "^":
        return f">={version},<{_next(version, caret=True)}"
    if sign == "~":
        return f">={version},<{_next(version, caret=False)}"
    return f"{'==' if sign == '=' else sign}{version}"


def _next(version: str, *, caret: bool) -> str:
    """The first version that Poetry's `^version` or `~version` no longer allows.

    A caret lets everything vary after the first number that is not zero, a tilde after the second (or the only one).
    """
    numbers = [int(number) for number in re.findall(r"\d+", re.split(r"[a-zA-Z+-]", version)[0])] or [0]
    if caret:
        place = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
    else:
        place = min(1, len(numbers) - 1)
    return ".".join(map(str, [*numbers[:place], numbers[place] + 1]))
