"""What a source file imports, as files of the same tree: Python, JavaScript and TypeScript, Go, Java and Kotlin.

Only names that a file of the tree answers to count; what comes from elsewhere cannot have changed. An import of a
package counts for its `__init__.py` (or `index.js`) and, where that hands a name on, for the file that it is from.
"""

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

Tree = Mapping[str, bytes]

PYTHON = (".py",)
JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte")
GO = (".go",)
JVM = (".java", ".kt", ".groovy", ".scala")

_JS_IMPORT = re.compile(
    r"""(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*|\bmock\s*\(\s*)(['"])(?P<name>[^'"\n]+)\1"""
)
_JS_HANDS_ON = re.compile(r"""\bexport\b[^;'"]*?\bfrom\s*(['"])(?P<name>[^'"\n]+)\1""")
_GO_IMPORTS = re.compile(r'^\s*import\s*(?:\((?P<block>[^)]*)\)|(?:[\w.]+\s+)?"(?P<one>[^"]+)")', re.MULTILINE)
_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
_JVM_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)", re.MULTILINE)
_JVM_IMPORT = re.compile(r"^\s*import\s+(?:static\s+)?([\w.]*\w)(\.\*)?", re.MULTILINE)


class Imports:
    """Answers what the files of one tree import. `tree` maps paths (UTF-8, surrogates escaped) to contents."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def of(self, path: str) -> frozenset[str]:
        """The files of the tree that a file imports, itself left out."""
        text = self._tree[path].decode("utf-8", "replace")
        if path.endswith(PYTHON):
            found: Iterable[str] = self._python(path, text)
        elif path.endswith(JAVASCRIPT):
            found = self._javascript(path, text)
        elif path.endswith(GO):
            found = self._go(path, text)
        elif path.endswith(JVM):
            found = self._jvm(path, text)
        else:
            return frozenset()
        return frozenset(found) - {path}

    # Python

    @cached_property
    def _modules(self) -> dict[str, list[str]]:
        """Files by every dotted name that they may have: `src/shop/till.py` is `src.shop.till`, `shop.till`, `till`."""
        modules: dict[str, list[str]] = {}
        for path in self._tree:
            if not path.endswith(PYTHON):
                continue
            parts = path.removesuffix(".py").split("/")
            if parts[-1] == "__init__":
                parts.pop()
            for start in range(len(parts)):
                modules.setdefault(".".join(parts[start:]), []).append(path)
        return modules

    def _python(self, path: str, text: str) -> Iterator[str]:
        for module, names in _python_imports(path, text):
            yield from self._module(module)
            for name in names:
                yield from self._module(f"{module}.{name}")
                for package in self._module(module):
                    if package.endswith("/__init__.py"):
                        yield from self._handed_on(package, name)

    def _module(self, module: str) -> list[str]:
        """The files that a module may be; of several of one name all count."""
        if module.startswith("/"):
            place = module[1:].replace(".", "/")
            return [one for one in (f"{place}.py", f"{place}/__init__.py") if one in self._tree]
        return self._modules.get(module, [])

    def _handed_on(self, package: str, name: str) -> Iterator[str]:
        """The file that a package's `__init__.py` has a name from, one step far."""
        text = self._tree[package].decode("utf-8", "replace")
        for module, names in _python_imports(package, text):
            if name in names or "*" in names:
                yield from self._module(module)

    # JavaScript and TypeScript

    def _javascript(self, path: str, text: str) -> Iterator[str]:
        for match in _JS_IMPORT.finditer(text):
            for file in self._js_file(path, match["name"]):
                yield file
                if posixpath.basename(file).startswith("index."):
                    handed_on = _JS_HANDS_ON.finditer(self._tree[file].decode("utf-8", "replace"))
                    for one in handed_on:
                        yield from self._js_file(file, one["name"])

    def _js_file(self, importer: str, name: str) -> Iterator[str]:
        if not name.startswith("."):
            return
        place = posixpath.normpath(posixpath.join(posixpath.dirname(importer), name))
        stem, suffix = posixpath.splitext(place)
        # TypeScript imports `till.ts` by the name that it will have when it is compiled.
        stems = [place, stem] if suffix in JAVASCRIPT else [place]
        for one in [place, *(f"{base}{end}" for base in stems for end in JAVASCRIPT)]:
            if one in self._tree:
                yield one
        yield from (one for end in JAVASCRIPT if (one := f"{place}/index{end}") in self._tree)

    # Go: whoever imports a package imports all its files but the tests

    @cached_property
    def _packages(self) -> dict[str, list[str]]:
        """The files of each package by its import path."""
        roots = {
            posixpath.dirname(path): match[1].strip('"')
            for path, data in self._tree.items()
            if posixpath.basename(path) == "go.mod" and (match := _GO_MODULE.search(data.decode("utf-8", "replace")))
        }
        packages: dict[str, list[str]] = {}
        for path in self._tree:
            if not path.endswith(GO) or path.endswith("_test.go"):
                continue
            folder = posixpath.dirname(path)
            above = [root for root in roots if not root or folder == root or folder.startswith(f"{root}/")]
            if above:
                root = max(above, key=len)
                inner = folder[len(root) :].strip("/")
                packages.setdefault("/".join(filter(None, (roots[root], inner))), []).append(path)
        return packages

    def _go(self, path: str, text: str) -> Iterator[str]:
        # A package is compiled as one, so a file has what any of its package imports.
        package = self._go_folders.get(posixpath.dirname(path), [])
        yield from package
        for source in [text, *(self._tree[one].decode("utf-8", "replace") for one in package)]:
            for match in _GO_IMPORTS.finditer(source):
                for name in [match["one"]] if match["one"] else re.findall(r'"([^"]+)"', match["block"] or ""):
                    yield from self._packages.get(name, ())

    @cached_property
    def _go_folders(self) -> dict[str, list[str]]:
        folders: dict[str, list[str]] = {}
        for path in self._tree:
            if path.endswith(GO) and not path.endswith("_test.go"):
                folders.setdefault(posixpath.dirname(path), []).append(path)
        return folders

    # Java and its relatives: a file sees its own package without an import

    @cached_property
    def _classes(self) -> dict[str, dict[str, list[str]]]:
        """Files by package and by the class that they are named for."""
        classes: dict[str, dict[str, list[str]]] = {}
        for path, data in self._tree.items():
            if path.endswith(JVM):
                package = _package_of(data.decode("utf-8", "replace"))
                stem = posixpath.splitext(posixpath.basename(path))[0]
                classes.setdefault(package, {}).setdefault(stem, []).append(path)
        return classes

    def _jvm(self, path: str, text: str) -> Iterator[str]:
        words = set(re.findall(r"\w+", text))
        for name, wildcard in [(_package_of(text), ".*"), *_JVM_IMPORT.findall(text)]:
            if wildcard:
                found = self._classes.get(name, {})
                yield from (file for stem, files in found.items() if stem in words for file in files)
            # An import may name a member, or a class inside of another.
            package, _, stem = name.rpartition(".")
            while package:
                yield from self._classes.get(package, {}).get(stem, ())
                package, _, stem = package.rpartition(".")


def _python_imports(path: str, text: str) -> Iterator[tuple[str, list[str]]]:
    """Each import as module and names, of a text that parses; a relative module has a `/` in front."""
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    folder = posixpath.dirname(path)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if not node.level:
                yield node.module or "", names
                continue
            base = folder
            for _ in range(node.level - 1):
                base = posixpath.dirname(base)
            yield "/" + ".".join(filter(None, (base.replace("/", "."), node.module))), names


def _package_of(text: str) -> str:
    match = _JVM_PACKAGE.search(text)
    return match[1] if match else ""
