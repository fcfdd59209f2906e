"""What pyproject.toml says: the project, its extras and its dependency groups, in each tool's own way of saying it."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from packaging.utils import canonicalize_name

from evalpipe.environments.recipe import NoRecipe
from evalpipe.environments.templates.python_parts import (
    Folder,
    Group,
    LocalProject,
    Wanted,
    unreadable,
    use_of,
    wanted_of,
)
from evalpipe.environments.templates.python_poetry import poetry_groups

Table = Mapping[str, Any]

# What Hatch brings to the environment of its `hatch test`, without being asked.
_HATCH_TEST: Final = ("coverage[toml]", "pytest", "pytest-mock", "pytest-rerunfailures", "pytest-xdist")


def read_toml(folder: Folder, name: str) -> Table:
    """The document `name`; empty when it is not there. Raises NoRecipe for one that cannot be parsed."""
    text = folder.text(name)
    try:
        return tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        raise unreadable(folder.path(name), error) from error


def table(document: Table, *keys: str) -> Table:
    """The table below `keys`; empty when there is none."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def project_name(document: Table) -> str | None:
    """The name of the distribution, where it is written and not computed."""
    flit = table(document, "tool", "flit", "metadata")
    places = (
        table(document, "project").get("name"),
        table(document, "tool", "poetry").get("name"),
        flit.get("dist-name") or flit.get("module"),
    )
    return next((name for name in places if isinstance(name, str)), None)


def extras_of(document: Table) -> dict[str, tuple[str, ...]]:
    """Each extra with its requirements, where they are written; Poetry's have names without versions."""
    places = (
        table(document, "project", "optional-dependencies"),
        table(document, "tool", "poetry", "extras"),
        table(document, "tool", "flit", "metadata", "requires-extra"),
        table(document, "tool", "setuptools", "dynamic", "optional-dependencies"),
    )
    return {
        name: tuple(text for text in texts if isinstance(text, str)) if isinstance(texts, list) else ()
        for place in places
        for name, texts in place.items()
    }


def groups_of(document: Table, folder: Folder) -> Iterator[Group]:
    """The dependency groups that are no extras. Raises NoRecipe when one includes a group that is not there."""
    for name, wanted in dependency_groups(table(document, "dependency-groups"), folder).items():
        yield Group("dependency group", name, wanted, use_of(name))
    yield from poetry_groups(table(document, "tool", "poetry"), folder)
    for name, texts in table(document, "tool", "pdm", "dev-dependencies").items():
        yield Group("PDM group", name, wanted_of(_list(texts), f"the PDM group {name}", folder), use_of(name))
    uv_dev = table(document, "tool", "uv").get("dev-dependencies")
    if isinstance(uv_dev, list):
        yield Group("uv group", "dev", wanted_of(uv_dev, "tool.uv.dev-dependencies", folder), use_of("dev"))
    hatch = {**table(document, "tool", "hatch", "envs"), **table(read_toml(folder, "hatch.toml"), "envs")}
    yield from _hatch_groups(hatch, table(document, "dependency-groups"), folder)


def dependency_groups(groups: Table, folder: Folder) -> dict[str, Wanted]:
    """The groups of PEP 735, each with those that it includes. Raises NoRecipe for an include that leads nowhere."""
    by_name = _by_name(groups)
    return {name: wanted_of(_group_texts(by_name, name, ()), f"the group {name}", folder) for name in by_name}


def _by_name(groups: Table) -> dict[str, Any]:
    return {canonicalize_name(name): entries for name, entries in groups.items()}


def _group_texts(groups: Table, name: str, above: tuple[str, ...]) -> list[object]:
    if name not in groups or name in above:
        path = " > ".join((*above, name))
        raise NoRecipe(
            f"pyproject.toml: the dependency group {path} {'includes itself' if name in above else 'is not there'}"
        )
    texts: list[object] = []
    for entry in _list(groups[name]):
        if isinstance(entry, Mapping) and "include-group" in entry:
            texts += _group_texts(groups, canonicalize_name(str(entry["include-group"])), (*above, name))
        else:
            texts.append(entry)
    return texts


def _hatch_groups(envs: Table, groups: Table, folder: Folder) -> Iterator[Group]:
    for name in envs:
        chain = _hatch_chain(envs, name)
        texts: list[object] = list(_HATCH_TEST) if name == "hatch-test" else []
        extras: list[str] = []
        for env in chain:
            texts += [*_list(env.get("dependencies")), *_list(env.get("extra-dependencies"))]
            extras += map(str, _list(env.get("features")))
            for group in _list(env.get("dependency-groups")):
                texts += _group_texts(_by_name(groups), canonicalize_name(str(group)), ())
        wanted = wanted_of(texts, f"the Hatch environment {name}", folder)
        if extras:
            wanted += Wanted(locals=(LocalProject(folder.folder, tuple(extras)),))
        # Hatch's own word for the environment of tests, and the one that all others build on.
        known = {"hatch-test": "test", "default": "dev"}
        if wanted != Wanted():
            yield Group("Hatch environment", name, wanted, use_of(known.get(name, name)))


def _hatch_chain(envs: Table, name: str) -> list[Table]:
    """The environment after those it builds on: the one it names, else `default`."""
    chain: list[Table] = []
    seen: set[str] = set()
    current: str | None = name
    while current and current not in seen:
        seen.add(current)
        env = table(envs, current)
        chain.insert(0, env)
        following = env.get("template", "default")
        current = None if env.get("detached") else str(following)
    return chain


def local_sources(document: Table, folder: Folder) -> tuple[str, ...]:
    """Folders of the tree that a project depends on, by uv's sources and workspace; from the top of the tree."""
    found = []
    for source in table(document, "tool", "uv", "sources").values():
        for entry in source if isinstance(source, list) else [source]:
            if isinstance(entry, Mapping) and isinstance(entry.get("path"), str):
                found.append(entry["path"])
    found += _members(table(document, "tool", "uv", "workspace"), folder)
    inside = []
    for path in found:
        try:
            inside.append(folder.path(path))
        except ValueError:
            continue
    return tuple(dict.fromkeys(inside))


def _members(workspace: Table, folder: Folder) -> Sequence[str]:
    manifests = [name for name in folder.names() if name.endswith("/pyproject.toml")]
    places = [name.removesuffix("/pyproject.toml") for name in manifests]
    wanted, unwanted = _list(workspace.get("members")), _list(workspace.get("exclude"))
    return [
        place
        for place in places
        if any(_same_depth(place, str(glob)) and fnmatchcase(place, str(glob)) for glob in wanted)
        and not any(fnmatchcase(place, str(glob)) for glob in unwanted)
    ]


def _same_depth(place: str, glob: str) -> bool:
    return "**" in glob or place.count("/") == glob.strip("/").count("/")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
