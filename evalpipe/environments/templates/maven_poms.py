"""Reads Maven's poms: which builds a tree has, and the artifacts that each of them makes."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from evalpipe.environments.recipe import NoRecipe, ProjectTree
from evalpipe.environments.templates.manifests import files_named, folder_of, joined, outermost

POM = b"pom.xml"


@dataclass(frozen=True, slots=True)
class MavenProject:
    """A folder in which Maven is run. `own` are the versions of what it makes, by `group:artifact`."""

    folder: bytes
    own: Mapping[str, str]
    deciding: tuple[bytes, ...]


def maven_projects(tree: ProjectTree) -> list[MavenProject]:
    """The outermost folders with a pom.xml: the top as a rule, several where the top is something else.

    Raises NoRecipe for a pom that is not XML.
    """
    folders = {folder_of(path) for path in files_named(tree.paths, POM)}
    return [_project(tree, folder) for folder in outermost(folders)]


def _project(tree: ProjectTree, folder: bytes) -> MavenProject:
    poms: dict[bytes, ElementTree.Element] = {}
    wanted = [posixpath.join(folder, POM)]
    while wanted:
        path = wanted.pop()
        if path in poms or path not in tree.paths:
            continue
        poms[path] = _read(tree, path)
        wanted += _named(path, poms[path])
    settings = posixpath.join(folder, b".mvn/")
    deciding = {*poms, *(path for path in tree.paths if path.startswith(settings) and b"/wrapper/" not in path)}
    own = dict(filter(None, map(_artifact, poms.values())))
    return MavenProject(folder, dict(sorted(own.items())), tuple(sorted(deciding)))


def _named(path: bytes, pom: ElementTree.Element) -> Iterator[bytes]:
    """The poms that a pom names: modules, those of profiles too, and the parent that lies in the tree."""
    names = [element.text or "" for element in pom.iter() if element.tag in ("module", "subproject")]
    parent = pom.find("parent")
    if parent is not None:
        names.append(parent.findtext("relativePath", "../pom.xml"))
    for name in names:
        place = joined(folder_of(path), name.strip().encode())
        if name.strip() and place is not None:
            yield place if place.endswith(b".xml") else posixpath.join(place, POM)


def _artifact(pom: ElementTree.Element) -> tuple[str, str] | None:
    group, version = (pom.findtext(name) or pom.findtext(f"parent/{name}") for name in ("groupId", "version"))
    artifact = pom.findtext("artifactId")
    if not group or not artifact:
        return None
    return f"{group.strip()}:{artifact.strip()}", (version or "0").strip()


def _read(tree: ProjectTree, path: bytes) -> ElementTree.Element:
    content = tree.read(path)
    name = path.decode(errors="replace")
    if b"<!DOCTYPE" in content:
        # Entities can make a small file large; Maven has no use for a document type.
        raise NoRecipe(f"template `maven` does not read {name}, which has a document type: remove that")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise NoRecipe(f"template `maven` cannot read {name}: {error}") from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root
