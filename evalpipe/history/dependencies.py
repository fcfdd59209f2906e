"""Whether a change to a dependency manifest changed a dependency, or only something else that the file also holds."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from typing import Any, Final

# Where TOML manifests keep dependencies: Cargo, PEP 621, PEP 735, Poetry, PDM, uv.
_TOML_PLACES: Final = (
    ("project", "dependencies"),
    ("project", "optional-dependencies"),
    ("project", "requires-python"),
    ("build-system", "requires"),
    ("dependency-groups",),
    ("tool", "poetry", "dependencies"),
    ("tool", "poetry", "dev-dependencies"),
    ("tool", "poetry", "group"),
    ("tool", "pdm", "dev-dependencies"),
    ("tool", "uv", "dev-dependencies"),
    ("dependencies",),
    ("dev-dependencies",),
    ("build-dependencies",),
    ("target",),
    ("workspace", "dependencies"),
)
_JSON_PLACES: Final = (
    ("dependencies",),
    ("devDependencies",),
    ("peerDependencies",),
    ("optionalDependencies",),
    ("overrides",),
    ("resolutions",),
    ("require",),
    ("require-dev",),
)
_MIXED_TOML: Final = (b"pyproject.toml", b"cargo.toml")
_MIXED_JSON: Final = (b"package.json", b"composer.json")
_MIXED_LINES: Final = (b"setup.py", b"setup.cfg")
_REQUIREMENT_LINE: Final = re.compile(
    rb"(?:install|setup|tests|python|extras)_requires?\b|[A-Za-z0-9_.\]-]\s*[=<>~!]=\s*\d"
)


# MSBuild projects list their own files and settings too.
_PROJECT_FILE: Final = re.compile(rb".*\.(?:cs|fs|vb)proj\Z")
_PROJECT_LINE: Final = re.compile(
    rb"(?i)<(?:Package|Project|DotNetCliTool)Reference\b|<Reference\s+Include=\"(?!System\b|Microsoft\.CSharp\b|mscorlib\b)"
    rb"|<PackageVersion\b|<HintPath\b|<TargetFrameworks?\b"
)


def dependencies_changed(path: bytes, old: bytes, new: bytes) -> bool:
    """Whether a manifest of this name says something else about dependencies; empty content is a missing file.

    Manifests that hold nothing but dependencies, and those that cannot be parsed, count as changed.
    """
    name = path.rpartition(b"/")[2].lower()
    if name in _MIXED_LINES:
        return any(_REQUIREMENT_LINE.search(line) for line in changed_lines(old, new))
    if _PROJECT_FILE.match(name):
        return any(_PROJECT_LINE.search(line) for line in changed_lines(old, new))
    try:
        if name in _MIXED_TOML:
            return _places(_toml(old), _TOML_PLACES) != _places(_toml(new), _TOML_PLACES)
        if name in _MIXED_JSON:
            return _places(_json(old), _JSON_PLACES) != _places(_json(new), _JSON_PLACES)
    except ValueError:
        return True
    return True


def changed_lines(old: bytes, new: bytes) -> list[bytes]:
    """Lines that one side has more often than the other."""
    before, after = Counter(old.splitlines()), Counter(new.splitlines())
    return [*(before - after).elements(), *(after - before).elements()]


def _toml(content: bytes) -> Any:
    return tomllib.loads(content.decode("utf-8"))


def _json(content: bytes) -> Any:
    return json.loads(content or b"{}")


def _places(document: Any, places: tuple[tuple[str, ...], ...]) -> list[Any]:
    found = []
    for place in places:
        value = document
        for key in place:
            value = value.get(key) if isinstance(value, dict) else None
        found.append(value)
    return found
