"""Reads Cargo's manifests: which workspaces a tree has, and the crates of its own that each is made of."""

import posixpath
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalpipe.environments.recipe import NoRecipe, ProjectTree
from evalpipe.environments.templates.manifests import files_named, folder_of, joined, outermost
from evalpipe.history.paths import compiled_globs

MANIFEST = b"Cargo.toml"
_SETTINGS = (b"Cargo.lock", b".cargo/config.toml", b".cargo/config", b"rust-toolchain.toml", b"rust-toolchain")
_DEPENDENCIES = ("dependencies", "dev-dependencies", "build-dependencies", "dev_dependencies", "build_dependencies")


@dataclass(frozen=True, slots=True)
class CargoWorkspace:
    """A folder in which Cargo is run: the manifests of its crates with its own, and these with their versions."""

    folder: bytes
    manifests: tuple[bytes, ...]
    versions: Mapping[str, str]

    @property
    def lock(self) -> bytes:
        """Where its lock file lies, or would lie."""
        return posixpath.join(self.folder, b"Cargo.lock")

    def deciding(self, paths: Collection[bytes]) -> list[bytes]:
        """The files whose content decides which crates are needed, and how they are compiled."""
        settings = (posixpath.join(self.folder, name) for name in _SETTINGS)
        return [*self.manifests, *(path for path in settings if path in paths)]


def cargo_workspaces(tree: ProjectTree) -> list[CargoWorkspace]:
    """The outermost folders with a manifest: one at the top as a rule, several where the top is something else.

    Raises NoRecipe for a manifest that is not TOML.
    """
    folders = {folder_of(path) for path in files_named(tree.paths, MANIFEST)}
    return [_workspace(tree, folder) for folder in outermost(folders)]


def ask_alike(base: ProjectTree, change: ProjectTree, path: bytes) -> bool:
    """Whether a manifest differs in nothing but what it says of its own package, such as the version or a text."""
    if path not in base.paths:
        return False
    first, second = ({**_read(tree, path), "package": None} for tree in (base, change))
    return first == second


def _workspace(tree: ProjectTree, top: bytes) -> CargoWorkspace:
    found: dict[bytes, Any] = {}
    wanted = [top]
    while wanted:
        folder = wanted.pop()
        path = posixpath.join(folder, MANIFEST)
        if path in found or path not in tree.paths:
            continue
        found[path] = manifest = _read(tree, path)
        wanted += _members(tree.paths, folder, manifest)
        wanted += [
            inner for inner in (joined(folder, name) for name in _path_dependencies(manifest)) if inner is not None
        ]
    versions = dict(filter(None, map(_name_and_version, found.values())))
    inherited = _table(_table(found.get(posixpath.join(top, MANIFEST)), "workspace"), "package").get("version", "0")
    versions = {name: version or str(inherited) for name, version in sorted(versions.items())}
    return CargoWorkspace(top, tuple(sorted(found)), versions)


def _name_and_version(manifest: dict[str, Any]) -> tuple[str, str] | None:
    """Those of the package of a manifest; the version is empty when it is that of the workspace."""
    package = _table(manifest, "package")
    version = package.get("version", "0")
    return (str(package["name"]), version if isinstance(version, str) else "") if "name" in package else None


def _table(table: object, key: str) -> dict[str, Any]:
    inner = table.get(key) if isinstance(table, dict) else None
    return inner if isinstance(inner, dict) else {}


def _read(tree: ProjectTree, path: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(tree.read(path).decode())
    except ValueError as error:
        raise NoRecipe(f"template `rust` cannot read {path.decode(errors='replace')}: {error}") from error


def _members(paths: Collection[bytes], folder: bytes, manifest: dict[str, Any]) -> list[bytes]:
    workspace = manifest.get("workspace")
    if not isinstance(workspace, dict):
        return []
    globs = [posixpath.normpath(posixpath.join(folder.decode(), str(glob))) for glob in workspace.get("members", [])]
    if not globs:
        return []
    # Anchored: a glob without a slash would match at every depth.
    pattern = compiled_globs([f"{glob}/{MANIFEST.decode()}" for glob in globs])
    excluded = {joined(folder, str(name).encode()) for name in workspace.get("exclude", [])}
    return [folder_of(path) for path in paths if pattern.match(path) and folder_of(path) not in excluded]


def _path_dependencies(manifest: dict[str, Any]) -> Iterator[bytes]:
    tables = [manifest, manifest.get("workspace"), *_values(manifest.get("target"))]
    for table in tables:
        for kind in _DEPENDENCIES:
            for dependency in _values(table.get(kind) if isinstance(table, dict) else None):
                if isinstance(dependency, dict) and "path" in dependency:
                    yield str(dependency["path"]).encode()
    for patches in _values(manifest.get("patch")):
        for patch in _values(patches):
            if isinstance(patch, dict) and "path" in patch:
                yield str(patch["path"]).encode()


def _values(table: object) -> list[Any]:
    return list(table.values()) if isinstance(table, dict) else []
