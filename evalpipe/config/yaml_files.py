"""Reads one YAML file into plain values, with the line of every field and no surprises from YAML's types.

The node graph is turned into values here and not by the library, because three things must survive: the line
of each field, the text as written (a version 1.10 is not 1.1), and the second of two equal keys.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from evalpipe.config.problems import ConfigError, Problem

FieldPath = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A mapping read from `name`; `lines` and `texts` tell line and written text of a field by its path."""

    name: str
    value: dict[str, Any]
    lines: dict[FieldPath, int]
    texts: dict[FieldPath, str]

    def line_of(self, path: FieldPath) -> int | None:
        """Return the line of a field, or of the nearest field around it when it was not written."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def read_yaml(path: Path, name: str) -> YamlDocument:
    """Read the YAML mapping in `path`; errors call the file `name`.

    Raises ConfigError when the file is missing, unreadable, not UTF-8, not YAML, empty, or no mapping, and
    for equal keys, aliases and tags.
    """
    text = _read_text(path, name)
    root = _compose(text, name)
    if root is None or (isinstance(root, ScalarNode) and root.tag == _TAG + "null"):
        raise ConfigError([Problem(name, "the file is empty; write `field: value` lines")])
    if not isinstance(root, MappingNode):
        kind = "a list" if isinstance(root, SequenceNode) else "a single value"
        line = root.start_mark.line + 1
        raise ConfigError([Problem(name, f"{kind} stands at the top; write `field: value` lines", line)])
    reader = _Reader(name)
    reader.lines[()] = root.start_mark.line + 1
    value = reader.mapping(root, ())
    if reader.problems:
        raise ConfigError(reader.problems)
    return YamlDocument(name, value, reader.lines, reader.texts)


def _read_text(path: Path, name: str) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError([Problem(name, "there is no such file")]) from error
    except IsADirectoryError as error:
        raise ConfigError([Problem(name, "this is a folder; a YAML file belongs here")]) from error
    except OSError as error:
        raise ConfigError([Problem(name, f"cannot be read: {error.strerror}")]) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise ConfigError([Problem(name, message, line)]) from error


def _compose(text: str, name: str) -> Node | None:
    try:
        node: Node | None = YAML(typ="rt").compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise ConfigError([Problem(name, _syntax_message(error, text, line), line)]) from error
    except YAMLError as error:
        raise ConfigError([Problem(name, f"is not YAML: {' '.join(str(error).split())}")]) from error
    except RecursionError as error:
        raise ConfigError([Problem(name, "is nested too deeply")]) from error
    return node


def _syntax_message(error: MarkedYAMLError, text: str, line: int | None) -> str:
    if line is not None:
        lines = text.splitlines()
        written = lines[line - 1] if line <= len(lines) else ""
        if "\t" in written[: len(written) - len(written.lstrip())]:
            return "a tab in the indentation; use spaces"
    if "another document" in (error.problem or ""):
        return "a second document begins here; remove the `---` line and what follows"
    if "mapping values are not allowed" in (error.problem or ""):
        return "is not YAML: a second `:` in one line, or a wrong indentation; put text with `: ` in quotes"
    return f"is not YAML: {error.problem}"


@dataclass(slots=True)
class _Reader:
    """Walks a node graph; collects lines, texts and problems on the way."""

    name: str
    lines: dict[FieldPath, int] = field(default_factory=dict)
    texts: dict[FieldPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)

    def mapping(self, node: MappingNode, path: FieldPath) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self._problem("a field's name must be plain text", line, path)
                continue
            key = str(key_node.value)
            here = (*path, key)
            if key in value:
                first = self.lines[here]
                self._problem(f"is written twice (first in line {first}); keep one", line, here)
                continue
            # An empty value has its mark at the next token, so a field's line is the line of its name.
            self.lines[here] = line
            value[key] = self.value(value_node, here, line)
        return value

    def value(self, node: Node, path: FieldPath, line: int) -> Any:
        if id(node) in self.seen:
            self._problem("anchors and aliases are not supported; write the value out", line, path)
            return None
        self.seen.add(id(node))
        if not str(node.tag).startswith(_TAG):
            self._problem(f"the tag {node.tag} is not supported; remove it", line, path)
            return None
        if isinstance(node, MappingNode):
            return self.mapping(node, path)
        if isinstance(node, SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                item_line = item.start_mark.line + 1
                self.lines[(*path, index)] = item_line
                items.append(self.value(item, (*path, index), item_line))
            return items
        self.texts[path] = node.value
        return scalar(str(node.tag).removeprefix(_TAG), node.value)

    def _problem(self, message: str, line: int, path: FieldPath) -> None:
        self.problems.append(Problem(self.name, message, line, dotted(path) or None))


def scalar(kind: str, text: str) -> str | int | float | bool | None:
    """Return the value of a scalar of YAML type `kind`; what is no clear number or switch stays text."""
    if kind == "null":
        return None
    if kind == "bool":
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in ("int", "float"):
        try:
            return _number(kind, text)
        except ValueError:
            return text
    return text


def _number(kind: str, text: str) -> int | float:
    if kind == "int":
        return int(text, 0) if text.lstrip("+-").startswith(("0x", "0o")) else int(text)
    special = text.lower().lstrip("+-")
    if special in (".inf", ".nan"):
        return float(text.replace(".", "", 1))
    return float(text)


def dotted(path: FieldPath) -> str:
    """Return a field path as text: `comparisons[0][1]`, `runner.name`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
