"""Where the canary of a JavaScript test tool lies and how it is written: as the test files around it are.

A tool finds its tests by patterns that a team may have changed, and compiles them as it was told to. A file beside an
existing test, with the same endings and the same kind of imports, is found and compiled as that one is, and whatever
turns failures into passes there turns the canary too.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from evalpipe.runners.plan import SuiteTree

_SCRIPT = re.compile(rb"\.[cm]?[jt]sx?\Z")
# What stands between the name of a test file and the end, as `.test.ts`, `_spec.js`, `-test.mjs` or `Test.js`.
_ENDING = re.compile(rb"(?:[._-](?:tests?|specs?)|(?<=[a-z0-9])(?:Tests?|Specs?))(?:\.[A-Za-z0-9]+)+\Z")
_BEGINNING = re.compile(rb"\Atests?[._-](?=.+\.)")
_TEST_FOLDERS = frozenset((b"__tests__", b"test", b"tests", b"spec", b"specs"))
# What lies here is seldom of the suite itself: the input of its tests, what was built, the suites of other tools.
_ASIDE = frozenset(
    (
        *(b"node_modules", b"fixtures", b"__fixtures__", b"fixture", b"__mocks__", b"__snapshots__", b"testdata"),
        *(b"helpers", b"support", b"utils", b"dist", b"build", b"out", b"coverage", b"examples", b"example"),
        *(b"e2e", b"cypress", b"playwright", b"bench", b"benchmark", b"benchmarks", b"docs"),
    )
)
_PLACES = 2
_IMPORTS = re.compile(r"^(?:import|export)\b", re.MULTILINE)
_READ_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Canary:
    """One canary file: its path from the top of the repository, and whether it is written with `import`.

    `names` are the modules that the test beside it takes its functions from, among those that were asked for.
    """

    path: bytes
    has_imports: bool
    is_typescript: bool
    names: frozenset[str]

    def content(self, lines: Iterable[str]) -> bytes:
        """The file with these lines. TypeScript wants a module, or its names would be those of the whole project."""
        module = ["export {};"] if self.is_typescript and self.has_imports else []
        return "\n".join([*module, *lines, ""]).encode()

    def imported(self, what: str, module: str) -> str:
        """The line that takes `what` from `module`."""
        return f'import {what} from "{module}";' if self.has_imports else f'const {what} = require("{module}");'


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a test file has around its own name."""

    beginning: bytes
    ending: bytes


def choose_canaries(
    tree: SuiteTree, stem: str, chosen: Collection[bytes] | None, arguments: Sequence[str], modules: Sequence[str]
) -> list[Canary]:
    """Canary files named `stem`, beside test files of the most common kinds; at least one, and at most two.

    They lie beside the `chosen` files, or else below the files and folders that `arguments` name, or else anywhere.
    `modules` are the names of which `Canary.names` tells.
    """
    paths = set(tree) if chosen is None else tree.keys() & set(chosen)
    named = [argument.rstrip("/").removeprefix("./").encode() for argument in arguments if argument[:1] != "-"]
    below = {path for path in paths if any(path == name or path.startswith(name + b"/") for name in named)}
    shapes = {path: shape for path in below or paths if (shape := _shape_of(path))}
    if not shapes:
        return [_beside(b"test/index.js", _Shape(b"", b".test.js"), stem, tree, modules)]
    counts = Counter(shapes.values())

    def rank(path: bytes) -> tuple[bool, int, int, bytes]:
        return bool(_ASIDE.intersection(path.split(b"/"))), -counts[shapes[path]], path.count(b"/"), path

    best: dict[tuple[_Shape, bytes], bytes] = {}
    for path in sorted(shapes, key=rank):
        best.setdefault((shapes[path], path.split(b"/")[0]), path)
    return [_beside(path, shapes[path], stem, tree, modules) for path in list(best.values())[:_PLACES]]


def _shape_of(path: bytes) -> _Shape | None:
    *folders, name = path.split(b"/")
    if not _SCRIPT.search(name) or name.endswith(b".d.ts"):
        return None
    if found := _ENDING.search(name):
        return _Shape(b"", found[0])
    if found := _BEGINNING.search(name):
        return _Shape(found[0], b"".join(name.partition(b".")[1:]))
    if re.fullmatch(rb"(?:tests?|specs?)(?:\.[A-Za-z0-9]+)+", name):
        return _Shape(b"", b".test." + name.rpartition(b".")[2])
    if _TEST_FOLDERS.intersection(folders):
        return _Shape(b"", b"." + name.rpartition(b".")[2])
    return None


def _beside(path: bytes, shape: _Shape, stem: str, tree: SuiteTree, modules: Sequence[str]) -> Canary:
    folder, slash, name = path.rpartition(b"/")
    text = tree.get(path, b"")[:_READ_BYTES].decode("utf-8", "replace")
    extension = name.rpartition(b".")[2]
    if extension in (b"mjs", b"mts"):
        has_imports = True
    elif extension in (b"cjs", b"cts"):
        has_imports = False
    else:
        has_imports = bool(_IMPORTS.search(text)) or ("require(" not in text and _is_module(folder, tree))
    return Canary(
        path=folder + slash + shape.beginning + stem.encode() + shape.ending,
        has_imports=has_imports,
        is_typescript=extension in (b"ts", b"tsx", b"mts", b"cts"),
        names=frozenset(module for module in modules if re.search(rf"""["']{re.escape(module)}["']""", text)),
    )


def _is_module(folder: bytes, tree: SuiteTree) -> bool:
    """Whether the nearest package.json says that a file ending in .js is a module."""
    while True:
        package = tree.get(folder + b"/package.json" if folder else b"package.json")
        if package is not None:
            return re.search(rb'"type"\s*:\s*"module"', package) is not None
        if not folder:
            return False
        folder = folder.rpartition(b"/")[0]
