"""Reads the manifests of Node projects: which tool installs them, by which lock, and what their workspaces are."""

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from evalpipe.environments.recipe import NoRecipe, ProjectTree
from evalpipe.environments.templates.manifests import files_named, folder_of, outermost
from evalpipe.history.paths import compiled_globs

MANIFEST = b"package.json"
_PACKAGE_MANAGER = re.compile(r"(npm|pnpm|yarn)@(\d+\.\d+\.\d+[\w.-]*)")
_PNPM_LOCK = re.compile(rb"^lockfileVersion:\s*['\"]?(\d+\.\d+)", re.MULTILINE)
_YARN_METADATA = re.compile(rb"^__metadata:\s*\n\s+version:\s*(\d+)", re.MULTILINE)
_SETTINGS = (b".npmrc", b".yarnrc", b".yarnrc.yml", b".pnpmfile.cjs", b"pnpm-workspace.yaml")
_SETTINGS_FOLDERS = (b".yarn/releases/", b".yarn/plugins/", b".yarn/patches/", b"patches/")
# The last of each line of versions that reads a lock of this format.
_PNPM_FOR_LOCK = {"5": "7.33.7", "6": "8.15.9", "9": "10.34.9"}
_YARN_CLASSIC, _YARN_3, _YARN_4 = "1.22.22", "3.8.7", "4.18.1"


class Tool(StrEnum):
    """What installs the packages of a project."""

    NPM = "npm"
    PNPM = "pnpm"
    YARN_CLASSIC = "yarn classic"
    YARN_BERRY = "yarn berry"


LOCKS = {
    b"pnpm-lock.yaml": Tool.PNPM,
    b"yarn.lock": Tool.YARN_CLASSIC,
    b"package-lock.json": Tool.NPM,
    b"npm-shrinkwrap.json": Tool.NPM,
}


@dataclass(frozen=True, slots=True)
class NodeProject:
    """A folder in which packages are installed. `version` is that of the tool, None for the npm of the image.

    `own` are the packages that the project itself makes, with their versions.
    """

    folder: bytes
    tool: Tool
    version: str | None
    lock: bytes | None
    deciding: tuple[bytes, ...]
    own: Mapping[str, str]


def node_projects(tree: ProjectTree) -> list[NodeProject]:
    """The project at the top of the tree; where there is none, the outermost ones below. Raises NoRecipe."""
    manifests = [path for path in files_named(tree.paths, MANIFEST) if b"node_modules/" not in path]
    folders = {folder_of(path) for path in manifests}
    return [_project(tree, folder) for folder in outermost(folders)]


def _project(tree: ProjectTree, folder: bytes) -> NodeProject:
    manifest = read_manifest(tree, posixpath.join(folder, MANIFEST))
    named = _PACKAGE_MANAGER.match(str(manifest.get("packageManager", "")))
    locks = {name: posixpath.join(folder, name) for name in LOCKS}
    present = {name: path for name, path in locks.items() if path in tree.paths}
    if named:
        # A lock that another tool left is not the one that the project is installed by.
        present = {name: path for name, path in present.items() if LOCKS[name].startswith(named[1])}
    lock = next(iter(present.values()), None)
    tool, version = _tool(tree, lock, named, pnpm=posixpath.join(folder, b"pnpm-workspace.yaml") in tree.paths)
    members = _workspace_manifests(tree, folder, manifest)
    own = dict(_name_and_version(inner) for inner in (manifest, *(read_manifest(tree, path) for path in members)))
    return NodeProject(folder, tool, version, lock, _deciding(tree, folder, members, lock), own)


def _name_and_version(manifest: dict[str, Any]) -> tuple[str, str]:
    return str(manifest.get("name", "")), str(manifest.get("version", "0"))


def _tool(tree: ProjectTree, lock: bytes | None, named: re.Match[str] | None, *, pnpm: bool) -> tuple[Tool, str | None]:
    if named and named[1] != Tool.NPM:
        classic = named[2].startswith("1.")
        yarn = Tool.YARN_CLASSIC if classic else Tool.YARN_BERRY
        return (Tool.PNPM if named[1] == Tool.PNPM else yarn), named[2]
    tool = LOCKS[posixpath.basename(lock)] if lock else Tool.NPM
    content = tree.read(lock) if lock else b""
    if tool is Tool.PNPM or (pnpm and not lock):
        found = _PNPM_LOCK.search(content)
        return Tool.PNPM, _PNPM_FOR_LOCK.get(found[1].decode().partition(".")[0] if found else "9", "10.34.9")
    if tool is Tool.YARN_CLASSIC:
        metadata = _YARN_METADATA.search(content)
        if metadata:
            return Tool.YARN_BERRY, _YARN_4 if int(metadata[1]) >= 7 else _YARN_3
        return tool, _YARN_CLASSIC
    return Tool.NPM, None


def _deciding(tree: ProjectTree, folder: bytes, members: list[bytes], lock: bytes | None) -> tuple[bytes, ...]:
    settings = (posixpath.join(folder, name) for name in _SETTINGS)
    kept_folders = tuple(posixpath.join(folder, name) for name in _SETTINGS_FOLDERS)
    found = {posixpath.join(folder, MANIFEST), *members}
    found.update(path for path in settings if path in tree.paths)
    found.update(path for path in tree.paths if path.startswith(kept_folders))
    return tuple(sorted(found | ({lock} if lock else set())))


def _workspace_manifests(tree: ProjectTree, folder: bytes, manifest: dict[str, Any]) -> list[bytes]:
    globs = manifest.get("workspaces") or []
    if isinstance(globs, dict):
        globs = globs.get("packages") or []
    pnpm = posixpath.join(folder, b"pnpm-workspace.yaml")
    if pnpm in tree.paths:
        globs = [*globs, *_pnpm_packages(tree, pnpm)]
    inner = [str(glob) for glob in globs if not str(glob).startswith("!")]
    if not inner:
        return []
    prefix = folder.decode(errors="surrogateescape")
    pattern = compiled_globs([posixpath.normpath(posixpath.join(prefix, glob, "package.json")) for glob in inner])
    return [path for path in tree.paths if pattern.match(path) and b"node_modules/" not in path]


def _pnpm_packages(tree: ProjectTree, path: bytes) -> list[str]:
    try:
        content = YAML(typ="safe", pure=True).load(tree.read(path))
    except YAMLError as error:
        raise NoRecipe(f"template `node` cannot read {path.decode(errors='replace')}: {error}") from error
    return list((content or {}).get("packages") or [])


def read_manifest(tree: ProjectTree, path: bytes) -> dict[str, Any]:
    """The object that a JSON file holds. Raises NoRecipe for anything else."""
    try:
        content = json.loads(tree.read(path))
    except ValueError as error:
        raise NoRecipe(f"template `node` cannot read {path.decode(errors='replace')}: {error}") from error
    if not isinstance(content, dict):
        raise NoRecipe(f"template `node` finds no manifest in {path.decode(errors='replace')}")
    return content
