"""What a change of a Node project asks for beyond its base: one set of packages for both, by manifests made of the two.

A folder node_modules has one version of a package where the project looks for it, so the environment is that of the
change, and what the change no longer asks for stays beside it.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from evalpipe.environments.recipe import Project, ProjectTree
from evalpipe.environments.templates.node_manifests import MANIFEST, node_projects, read_manifest

_DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies")
_ASKS = (*_DEPENDENCIES, "peerDependencies", "overrides", "resolutions", "pnpm", "workspaces", "packageManager")


class LaidOver:
    """A tree with other files laid over it."""

    def __init__(self, tree: ProjectTree, laid: Mapping[bytes, bytes]) -> None:
        self._tree, self._laid = tree, laid

    @property
    def paths(self) -> Collection[bytes]:
        return {*self._tree.paths, *self._laid} if self._laid else self._tree.paths

    def read(self, path: bytes) -> bytes:
        return self._laid[path] if path in self._laid else self._tree.read(path)


def merged_manifests(project: Project) -> dict[bytes, bytes]:
    """The manifests, locks and settings that are to lie over the base's tree; none when the change asks for no more.

    Raises NoRecipe for a manifest that is no JSON.
    """
    change = project.change
    if change is None:
        return {}
    deciding = {path for one in node_projects(change) for path in one.deciding}
    altered = sorted(deciding.intersection(change.altered))
    manifests = [path for path in altered if path.rpartition(b"/")[2] == MANIFEST]
    others = {path: change.read(path) for path in altered if path not in manifests}
    merged = {path: _merged(_read(project.tree, path), read_manifest(change, path)) for path in manifests}
    if not others and all(_asks(merged[path]) == _asks(_read(project.tree, path)) for path in manifests):
        return {}
    return others | {path: json.dumps(content, indent=2).encode() for path, content in merged.items()}


def _read(tree: ProjectTree, path: bytes) -> dict[str, Any]:
    return read_manifest(tree, path) if path in tree.paths else {}


def _merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    known = {name for kind in _DEPENDENCIES for name in change.get(kind) or ()}
    merged = dict(change)
    for kind in _DEPENDENCIES:
        gone = {name: version for name, version in (base.get(kind) or {}).items() if name not in known}
        if gone:
            merged[kind] = {**(change.get(kind) or {}), **gone}
    return merged


def _asks(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {key: manifest.get(key) for key in _ASKS}
