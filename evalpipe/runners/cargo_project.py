"""The packages and targets of a Cargo project, read from its manifests: cargo itself runs only in the box.

The rules are those of https://doc.rust-lang.org/cargo/reference/cargo-targets.html and .../workspaces.html.
"""

import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_DEPENDENCIES = ("dependencies", "dev-dependencies", "build-dependencies")
_Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CargoTarget:
    """Something that `cargo test` makes a program of. `kind` is lib, bin or test; `root` its first file."""

    kind: str
    name: str
    root: bytes
    harness: bool = True

    @property
    def label(self) -> str:
        """How ids name it: a package has one library at most."""
        return self.kind if self.kind == "lib" else f"{self.kind}/{self.name}"

    @property
    def option(self) -> tuple[str, ...]:
        """The option that chooses it."""
        return ("--lib",) if self.kind == "lib" else (f"--{self.kind}", self.name)


@dataclass(frozen=True, slots=True)
class CargoPackage:
    """A package in `folder` with the targets that have tests."""

    name: str
    folder: bytes
    targets: tuple[CargoTarget, ...]


@dataclass(frozen=True, slots=True)
class CargoWorkspace:
    """A folder in which `cargo test --workspace` is called, and the packages that it then tests."""

    folder: bytes
    packages: tuple[CargoPackage, ...]


def workspaces(tree: Mapping[bytes, bytes]) -> list[CargoWorkspace]:
    """The workspace at the top of the tree, or those nearest to it where the top has no manifest."""
    manifests = sorted(path for path in tree if path == b"Cargo.toml" or path.endswith(b"/Cargo.toml"))
    folders: list[bytes] = []
    for path in manifests:
        folder = path[: -len(b"/Cargo.toml")]
        if not any(_is_within(folder, above) for above in folders):
            folders.append(folder)
    return [_workspace(tree, folder) for folder in folders]


def under(folder: bytes, name: bytes) -> bytes:
    """A path below a folder; the top is the empty folder."""
    return folder + b"/" + name if folder else name


def _workspace(tree: Mapping[bytes, bytes], top: bytes) -> CargoWorkspace:
    root = _manifest(tree, top)
    names = {path[: -len(b"/Cargo.toml")] for path in tree if path.endswith(b"/Cargo.toml")}
    below = sorted(folder for folder in names if _is_within(folder, top) and folder != top)
    table = _table(root, "workspace")
    left_out = [under(top, _normal(pattern)) for pattern in _texts(table, "exclude")]
    patterns = [_glob(under(top, _normal(pattern))) for pattern in _texts(table, "members")]
    members = {folder for folder in below if any(pattern.fullmatch(folder) for pattern in patterns)}
    todo = [top, *sorted(members)] if "package" in root else sorted(members)
    seen: list[bytes] = []
    while todo:
        folder = todo.pop(0)
        if folder in seen or any(_is_within(folder, other) for other in left_out):
            continue
        seen.append(folder)
        # What members depend on by a path below the workspace is a member too, even if no pattern names it.
        todo.extend(found for found in _path_dependencies(_manifest(tree, folder), folder, top) if found in below)
    packages = (_package(tree, folder) for folder in seen)
    return CargoWorkspace(top, tuple(package for package in packages if package is not None))


def _package(tree: Mapping[bytes, bytes], folder: bytes) -> CargoPackage | None:
    manifest = _manifest(tree, folder)
    name = _table(manifest, "package").get("name")
    if not isinstance(name, str):
        return None
    programs = _usual_places(tree, folder, b"src/bin")
    if (main := under(folder, b"src/main.rs")) in tree:
        programs[main] = name
    tests = _usual_places(tree, folder, b"tests")
    targets = [
        *_library(tree, folder, manifest, name),
        *_found(tree, folder, manifest, "bin", programs),
        *_found(tree, folder, manifest, "test", tests),
    ]
    return CargoPackage(name, folder, tuple(targets))


def _library(tree: Mapping[bytes, bytes], folder: bytes, manifest: _Table, package: str) -> Iterator[CargoTarget]:
    table = _table(manifest, "lib")
    root = under(folder, _normal(str(table.get("path", "src/lib.rs"))))
    if root in tree and table.get("test", True):
        name = str(table.get("name", package.replace("-", "_")))
        yield CargoTarget("lib", name, root, bool(table.get("harness", True)))


def _found(
    tree: Mapping[bytes, bytes], folder: bytes, manifest: _Table, kind: str, looked_for: Mapping[bytes, str]
) -> Iterator[CargoTarget]:
    """Targets that the manifest names, and those that lie where cargo looks for them (`looked_for`, with names)."""
    named = _tables(manifest, kind)
    taken = {str(table["name"]) for table in named if "name" in table}
    for table in named:
        name = str(table.get("name", ""))
        usual = [root for root, target in looked_for.items() if target == name]
        roots = [under(folder, _normal(str(table["path"])))] if "path" in table else usual
        if roots and roots[0] in tree and table.get("test", True):
            yield CargoTarget(kind, name, roots[0], bool(table.get("harness", True)))
    package = _table(manifest, "package")
    # The first edition looks for no more targets where the manifest names some.
    names_all = bool(named) and package.get("edition", "2015") == "2015"
    if package.get(f"auto{kind}s", not names_all):
        for root, name in looked_for.items():
            if name not in taken:
                yield CargoTarget(kind, name, root)


def _usual_places(tree: Mapping[bytes, bytes], folder: bytes, place: bytes) -> dict[bytes, str]:
    """The files in which cargo looks for targets in a folder such as `tests`, with the names that they give."""
    pattern = re.compile(re.escape(under(folder, place)) + rb"/([^/]+?)(?:\.rs|/main\.rs)")
    matches = {path: pattern.fullmatch(path) for path in sorted(tree)}
    return {path: found[1].decode("utf-8", "backslashreplace") for path, found in matches.items() if found}


def _path_dependencies(manifest: _Table, folder: bytes, top: bytes) -> Iterator[bytes]:
    tables = [manifest, *(table for table in _table(manifest, "target").values() if isinstance(table, dict))]
    for table in tables:
        for kind in _DEPENDENCIES:
            yield from _paths_of(_table(table, kind), folder)
    yield from _paths_of(_table(_table(manifest, "workspace"), "dependencies"), top)


def _paths_of(dependencies: _Table, folder: bytes) -> Iterator[bytes]:
    for value in dependencies.values():
        if isinstance(value, dict) and isinstance(value.get("path"), str):
            yield _normal(posixpath.join(folder.decode("utf-8", "surrogateescape"), value["path"]))


def _manifest(tree: Mapping[bytes, bytes], folder: bytes) -> _Table:
    """A manifest as a table; an empty one for what cargo could not read either."""
    try:
        return tomllib.loads(tree[under(folder, b"Cargo.toml")].decode())
    except (KeyError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}


def _table(table: _Table, key: str) -> _Table:
    value = table.get(key)
    return value if isinstance(value, dict) else {}


def _tables(table: _Table, key: str) -> list[dict[str, Any]]:
    value = table.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(table: _Table, key: str) -> list[str]:
    value = table.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _normal(path: str) -> bytes:
    normal = posixpath.normpath(path)
    return b"" if normal == "." else normal.encode("utf-8", "surrogateescape")


def _glob(pattern: bytes) -> re.Pattern[bytes]:
    """The globs of workspace members: `*` and `?` stay within a folder, `**` does not."""
    parts = re.split(rb"(\*\*/?|\*|\?)", pattern)
    meaning = {b"**/": rb"(?:.*/)?", b"**": rb".*", b"*": rb"[^/]*", b"?": rb"[^/]"}
    return re.compile(b"".join(meaning.get(part) or re.escape(part) for part in parts), re.DOTALL)


def _is_within(folder: bytes, above: bytes) -> bool:
    return not above or folder == above or folder.startswith(above + b"/")
