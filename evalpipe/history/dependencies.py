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
# The lines that name a dependency, in manifests that are programs, or lists of a project's own files and settings too.
_LINES: Final = (
    (
        re.compile(rb"setup\.(?:py|cfg)\Z"),
        re.compile(rb"(?:install|setup|tests|python|extras)_requires?\b|[A-Za-z0-9_.\]-]\s*[=<>~!]=\s*\d"),
    ),
    (
        re.compile(rb".*\.(?:cs|fs|vb)proj\Z"),
        re.compile(
            rb"(?i)<(?:Package|Project|DotNetCliTool)Reference\b"
            rb"|<Reference\s+Include=\"(?!System\b|Microsoft\.CSharp\b|mscorlib\b)"
            rb"|<PackageVersion\b|<HintPath\b|<TargetFrameworks?\b"
        ),
    ),
    (
        re.compile(rb".*\.gemspec\Z"),
        re.compile(rb"\badd_(?:runtime_|development_)?dependency\b|\brequired_ruby(?:gems)?_version\b"),
    ),
    (
        re.compile(rb"(?:build|settings)\.gradle(?:\.kts)?\Z"),
        re.compile(
            rb"\b(?:\w*[iI]mplementation|api|\w*[cC]ompile(?:Only)?|\w*[rR]untime(?:Only)?|classpath|kapt|ksp"
            rb"|annotationProcessor|platform)\b[ (]|\bid\b.*\bversion\b|\b\w+Version\b"
            rb"|[\"'][\w.-]+:[\w.-]+:[^\"']+[\"']"
        ),
    ),
)
# Maven says what it needs in these elements, and much else beside them.
_POM_PLACES: Final = re.compile(rb"(?s)<(dependencies|dependencyManagement|plugins|parent|properties)>.*?</\1>")


def holds_more_than_dependencies(path: bytes) -> bool:
    """Whether a manifest of this name says other things too, so that its content tells what a change of it was."""
    name = _name_of(path)
    return name in (*_MIXED_TOML, *_MIXED_JSON, b"pom.xml") or _lines_of(name) is not None


def dependencies_changed(path: bytes, old: bytes, new: bytes) -> bool:
    """Whether a manifest of this name says something else about dependencies; empty content is a missing file.

    Manifests that hold nothing but dependencies, and those that cannot be parsed, count as changed.
    """
    name = _name_of(path)
    lines = _lines_of(name)
    if lines is not None:
        return any(lines.search(line) for line in changed_lines(old, new))
    if name == b"pom.xml":
        return _pom_places(old) != _pom_places(new)
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


def _name_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[2].lower()


def _lines_of(name: bytes) -> re.Pattern[bytes] | None:
    return next((lines for names, lines in _LINES if names.match(name)), None)


def _pom_places(content: bytes) -> list[bytes]:
    return [b"".join(found[0].split()) for found in _POM_PLACES.finditer(content)]


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
