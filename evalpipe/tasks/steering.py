"""Files that steer a test run though their own names do not say so.

Two kinds: what the tests' settings name as their set-up (a plug-in of pytest, a `setupFiles` of Jest), and new modules
that would be found in the place of a library that the tests import. Honest work has no reason to touch either.
"""

import json
import posixpath
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from evalpipe.history import Tree
from evalpipe.history.objects import SYMLINK, folders_above

ReadFiles = Callable[[Iterable[bytes]], Mapping[bytes, bytes]]
"""The contents of files of the reference change's tree, by their paths."""

_SETUP_KEYS = (
    "setupFiles|setupFilesAfterEnv|setupTestFrameworkScriptFile|globalSetup|globalTeardown|testEnvironment|testRunner"
    "|runner|reporters?|snapshotSerializers|resolver|transform|testSequencer|sequencer"
)
_JS_SETTING = re.compile(
    rf"\b(?:{_SETUP_KEYS})[\"']?\s*:\s*(\[[^\]]{{0,2000}}\]|\{{[^}}]{{0,2000}}\}}|[\"'][^\"'\n]+[\"'])"
)
_JS_CONFIG = re.compile(rb"(?:^|/)(?:jest|vitest|vite)(?:\.\w+)?\.(?:[cm]?[jt]s|json)\Z")
_SETTINGS = re.compile(
    rb"(?:^|/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|pyproject\.toml|tox\.ini|setup\.cfg|package\.json|\.mocharc(?:\..*)?"
    rb"|mocha\.opts)\Z|" + _JS_CONFIG.pattern
)
_SECTIONS_OF_PACKAGE = ("jest", "mocha", "vitest", "ava")
_WORD = re.compile(r"[\w@$<>./-]+")
_PLUGINS = re.compile(r"^pytest_plugins\b[^=\n]*=\s*([\[(][^\])]*[\])]|[\"'][^\"'\n]+[\"'])", re.MULTILINE)
_SETUP_ARGUMENT = re.compile(
    r"(?:-r|--require|--import|--(?:experimental-)?loader|--file|-p|-c|--config|--setupFiles\w*|--globalSetup)(?:=(.+))?"
)
_OPTION = re.compile(r"(?:^|[\s\"'=\[,])-p[\s\"',]*([A-Za-z_][\w.]*)", re.MULTILINE)
_ENDINGS = ("", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".json", ".py", "/index.js", "/index.ts", "/__init__.py")
_ROOTS = ("", "src/", "lib/")

_PYTHON_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))", re.MULTILINE)
_JVM_IMPORT = re.compile(rb"^\s*import\s+(?:static\s+)?([a-z_]\w*\.[a-z_]\w*)", re.MULTILINE)
_JVM_SOURCE = re.compile(rb"(?:^|/)src/main/(?:java|kotlin|groovy|scala)/([^/]+/[^/]+)/.+\.(?:java|kt|groovy|scala)\Z")
# Whatever a test imports, these judge it.
_JVM_LIBRARIES = frozenset(
    b"org/junit junit/framework org/opentest4j org/hamcrest org/assertj org/testng org/mockito org/gradle "
    b"org/apache/maven kotlin/test io/kotest spock/lang org/spockframework".split()
)
_JVM_ENDINGS = (b".java", b".kt", b".groovy", b".scala")


def setup_files(
    base: Tree, reference: Tree, trusted: Collection[bytes], read: ReadFiles, arguments: Sequence[str]
) -> frozenset[bytes]:
    """Files that the `trusted` settings, or `arguments` of the test command, name as the set-up of the tests.

    Those whose folder the reference change works in are product (a plug-in that is itself under test), and are left
    out; so are, at the top of the repository, those that it changes.
    """
    links = {path for path in trusted if reference[path].mode == SYMLINK}
    contents = read([path for path in trusted if path in links or _SETTINGS.search(path)])
    named = {*_named_by_arguments(arguments)}
    for path, content in contents.items():
        folder = path.rpartition(b"/")[0].decode("utf-8", "surrogateescape")
        for name in _named_by(path, path in links, content):
            named |= {name, posixpath.join(folder, name)}
    found = {path for name in named for path in _places_of(name) if path in reference and path not in trusted}
    changed = {path for path in {*base, *reference} if base.get(path) != reference.get(path) and path not in trusted}
    worked_in = {folder for path in changed for folder in folders_above(path)}
    return frozenset(path for path in found - changed if path.rpartition(b"/")[0] not in worked_in)


def shadowing_files(
    added: Iterable[bytes], there: Collection[bytes], tests: Collection[bytes], read: ReadFiles
) -> frozenset[bytes]:
    """Those of `added`, new files of a patch, that Python or a JVM would load in the place of a library of the tests.

    `there` are the files of the project before and after the reference change: what they provide is the project's own.
    A name is a library's if the `tests` import it, if Python itself has it, or if it is known to judge tests.
    """
    modules = [path for path in added if path.endswith((b".py", b".so", b".pyd"))]
    packages = {path: found[1] for path in added if (found := _JVM_SOURCE.search(path))}
    shadowing: set[bytes] = set()
    if modules:
        imported = _imported_by_python(read([path for path in tests if path.endswith(b".py")]).values())
        libraries = imported | {name.encode() for name in sys.stdlib_module_names}
        roots = _import_roots(tests, there, imported)
        own = {name for path in there for name in _module_names(path, roots)}
        shadowing |= {path for path in modules if _module_names(path, roots) & libraries - own}
    if packages:
        sources = read([path for path in tests if path.endswith(_JVM_ENDINGS)]).values()
        imports = _JVM_LIBRARIES | {
            name.replace(b".", b"/") for content in sources for name in _JVM_IMPORT.findall(content)
        }
        own = {found[1] for path in there if (found := _JVM_SOURCE.search(path))}
        shadowing |= {path for path, package in packages.items() if package in imports - own}
    return frozenset(shadowing)


def _named_by_arguments(arguments: Sequence[str]) -> Iterator[str]:
    for argument, following in pairwise([*arguments, ""]):
        if found := _SETUP_ARGUMENT.fullmatch(argument):
            named = found[1] or following
            yield from (named, named.replace(".", "/"))


def _named_by(path: bytes, is_link: bool, content: bytes) -> Iterator[str]:
    name = path.rpartition(b"/")[2]
    text = content.decode("utf-8", "surrogateescape")
    if is_link:
        yield text
    elif name == b"package.json":
        yield from _of_package(text)
    elif name == b"conftest.py":
        yield from _dotted(word for found in _PLUGINS.findall(text) for word in _WORD.findall(found))
    elif b"moch" in name:
        yield from _words([text])
    elif _JS_CONFIG.search(path):
        yield from _words(_JS_SETTING.findall(text))
    else:
        yield from _dotted(_OPTION.findall(text))


def _of_package(text: str) -> Iterator[str]:
    try:
        document: Any = json.loads(text)
    except ValueError:
        return
    for section in _SECTIONS_OF_PACKAGE:
        settings = document.get(section) if isinstance(document, dict) else None
        if section == "mocha":
            yield from _words([json.dumps(settings)])
        elif settings is not None:
            yield from _words(_JS_SETTING.findall(json.dumps(settings)))


def _words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for word in _WORD.findall(text):
            yield word.replace("<rootDir>/", "")


def _dotted(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name.replace(".", "/")


def _places_of(name: str) -> Iterator[bytes]:
    plain = posixpath.normpath(name)
    for root in _ROOTS:
        for ending in _ENDINGS:
            yield f"{root}{plain}{ending}".encode("utf-8", "surrogateescape")


def _imported_by_python(sources: Iterable[bytes]) -> set[bytes]:
    """The first names of the modules that Python sources import."""
    found = (match for content in sources for match in _PYTHON_IMPORT.findall(content))
    modules = (module.split() for source, listed in found for module in (source, *listed.split(b",")))
    return {words[0].partition(b".")[0] for words in modules if words}


def _import_roots(tests: Iterable[bytes], there: Collection[bytes], imported: Collection[bytes]) -> set[bytes]:
    """Folders from which Python may import: those above tests that are no package, and the usual ones."""
    above = {folder for path in tests if path.endswith(b".py") for folder in folders_above(path)} | {b"src", b"lib"}
    outer = {folder for folder in above if folder + b"/__init__.py" not in there}
    return {b""} | {folder for folder in outer if folder.rpartition(b"/")[2] not in imported}


def _module_names(path: bytes, roots: Collection[bytes]) -> set[bytes]:
    """The names of the modules or packages by which a file is imported, or belongs to what is."""
    names = set()
    for root in roots:
        inner = path[len(root) + 1 :] if root and path.startswith(root + b"/") else (b"" if root else path)
        if inner:
            names.add(inner.partition(b"/")[0].partition(b".")[0])
    return names
