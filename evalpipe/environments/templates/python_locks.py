"""Lock files: the exact versions they name, as constraints for a resolution.

As constraints they decide every package that the lock knows, and leave alone what it does not: the runner, the team's
own packages. Each format is TOML or JSON with one entry a package.
"""

import json
import tomllib
from collections import defaultdict
from typing import Any, Final

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from evalpipe.environments.templates.python_parts import Folder, unreadable

LOCK_FILES: Final = ("uv.lock", "pdm.lock", "poetry.lock", "pylock.toml", "Pipfile.lock")
"""In the order in which they are looked for; the first that is there is used."""


def locked_versions(folder: Folder) -> tuple[str, tuple[str, ...]] | None:
    """The path of a project's lock file, and its versions as constraints; None without one.

    A package with several versions, each for its own platform or Python, is constrained by the markers of each, and
    not at all where the lock has no markers. Raises NoRecipe for a lock file that cannot be parsed.
    """
    for name in LOCK_FILES:
        text = folder.text(name)
        if text is not None:
            try:
                entries = _pipfile(json.loads(text)) if name == "Pipfile.lock" else _toml(tomllib.loads(text))
            except (ValueError, AttributeError, TypeError, KeyError) as error:
                raise unreadable(folder.path(name), error) from error
            return folder.path(name), _constraints(entries)
    return None


_Entry = tuple[str, str, tuple[str, ...]]


def _toml(document: dict[str, Any]) -> list[_Entry]:
    entries = []
    for package in [*document.get("package", ()), *document.get("packages", ())]:
        source = package.get("source") or {}
        # A version of git, of a URL or of a folder is not the one that an index has.
        elsewhere = {"git", "url", "directory", "file", "path", "editable", "virtual", "workspace"}
        local = elsewhere.intersection(source) or source.get("type") in elsewhere
        local = local or elsewhere.intersection(package) or package.get("vcs") or package.get("archive")
        if "version" in package and not local:
            markers = package.get("resolution-markers") or package.get("marker") or package.get("markers") or ()
            if isinstance(markers, dict):  # Poetry names one for each group.
                markers = tuple(dict.fromkeys(markers.values()))
            entries.append((package["name"], package["version"], (markers,) if isinstance(markers, str) else markers))
    return entries


def _pipfile(document: dict[str, Any]) -> list[_Entry]:
    entries: list[_Entry] = []
    for section in ("default", "develop"):
        for name, package in document.get(section, {}).items():
            version = str(package.get("version", ""))
            if version.startswith("=="):
                entries.append((name, version.removeprefix("=="), ()))
    return entries


def _constraints(entries: list[_Entry]) -> tuple[str, ...]:
    versions: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for name, version, markers in entries:
        versions[canonicalize_name(name)].setdefault(version, []).extend(markers)
    lines = []
    for name in sorted(versions):
        if len(versions[name]) == 1:
            lines += [f"{name}=={version}" for version in versions[name]]
        elif all(versions[name].values()):
            lines += [f"{name}=={version} ; {marker}" for version, found in versions[name].items() for marker in found]
    return tuple(line for line in lines if _is_sound(line))


def _is_sound(line: str) -> bool:
    try:
        requirement = Requirement(line)
        return requirement.marker is None or bool(Marker(str(requirement.marker)))
    except (InvalidRequirement, InvalidMarker):
        return False
