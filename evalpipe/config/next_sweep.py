"""Writes the file of the next sweep from that of the last one: every word and comment stays, but for its task set."""

from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node

from evalpipe.config.problems import ConfigError, Problem
from evalpipe.config.values import SLUG_RULE, is_slug
from evalpipe.config.workspace import Workspace


def write_next_sweep(workspace: Workspace, name: str, earlier: str) -> Path:
    """Write `data/sweeps/<name>.yaml` as a copy of the sweep `earlier` over the task set `name`, and not archived.

    Comments, order and spelling stay, because only the two values are exchanged in the text. Raises ConfigError when
    the name is none, when there is such a file already, and when `earlier` is missing or wrong.
    """
    target = workspace.sweeps_dir / f"{name}.yaml"
    if not is_slug(name):
        raise ConfigError([Problem(workspace.shown(target), f"{name!r} cannot name a sweep; use {SLUG_RULE}")])
    workspace.load_sweep(earlier)
    source = workspace.sweeps_dir / f"{earlier}.yaml"
    text = source.read_bytes().decode("utf-8-sig")
    # Backwards, so that the places of what comes before stay as they are.
    for field, node in sorted(_values(text).items(), key=lambda item: -item[1].start_mark.index):
        value = "false" if field == "archived" else _spelled(name)
        text = text[: node.start_mark.index] + value + text[node.end_mark.index :]
    try:
        # Bytes, because line ends are the team's own.
        with target.open("xb") as file:
            file.write(text.encode())
    except FileExistsError as error:
        message = "is there already and is not overwritten; choose another name, or remove it first"
        raise ConfigError([Problem(workspace.shown(target), message)]) from error
    return target


def _values(text: str) -> dict[str, Node]:
    """The nodes of the values that the next sweep does not share, as far as they are written."""
    root = YAML(typ="rt").compose(text)
    assert isinstance(root, MappingNode)  # the sweep was loaded from it
    return {key.value: value for key, value in root.value if key.value in ("task_set", "archived")}


def _spelled(name: str) -> str:
    # A name as 2027 is a number to YAML unless it is quoted.
    return name if YAML(typ="safe").load(name) == name else f'"{name}"'
