"""What setup.cfg and setup.py say. setup.py is a program: it is read as a syntax tree and never run."""

import ast
import configparser
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from evalpipe.environments.templates.python_parts import Folder

_SETUPTOOLS: Final = frozenset({"setuptools", "distutils", "pkg_resources", "_distutils_hack", "wheel", "pip"})


@dataclass(frozen=True, slots=True)
class SetuptoolsProject:
    """What can be seen without running anything. `paths` are files of the tree that the two name."""

    name: str | None = None
    extras: dict[str, tuple[str, ...]] = field(default_factory=dict)
    install_requires: tuple[str, ...] = ()
    tests_require: tuple[str, ...] = ()
    setup_requires: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    extensions: bool = False
    packages: bool = False
    paths: tuple[str, ...] = ()


def read_setuptools(folder: Folder) -> SetuptoolsProject:
    """What setup.cfg and setup.py of `folder` say, the second over the first."""
    config, script = _read_config(folder), _read_script(folder)
    return SetuptoolsProject(
        name=script.name or config.name,
        extras=config.extras | script.extras,
        install_requires=config.install_requires + script.install_requires,
        tests_require=config.tests_require + script.tests_require,
        setup_requires=config.setup_requires + script.setup_requires,
        imports=script.imports,
        extensions=script.extensions,
        packages=config.packages,
        paths=config.paths + script.paths,
    )


def read_ini(folder: Folder, name: str) -> configparser.ConfigParser:
    """An INI file; empty when it is not there or is none."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=", ":"))
    try:
        parser.read_string(folder.text(name) or "")
    except configparser.Error:
        # setup.cfg and tox.ini are read by several tools, some of which are less strict.
        return configparser.ConfigParser(interpolation=None)
    return parser


def _read_config(folder: Folder) -> SetuptoolsProject:
    config = read_ini(folder, "setup.cfg")
    extras = config["options.extras_require"].items() if config.has_section("options.extras_require") else ()
    version = config.get("metadata", "version", fallback="")
    return SetuptoolsProject(
        name=config.get("metadata", "name", fallback=None),
        extras={name: _lines(text) for name, text in extras},
        install_requires=_lines(config.get("options", "install_requires", fallback="")),
        tests_require=_lines(config.get("options", "tests_require", fallback="")),
        setup_requires=_lines(config.get("options", "setup_requires", fallback="")),
        packages=config.has_option("options", "packages") or config.has_option("options", "py_modules"),
        paths=version_files(folder, version),
    )


def version_files(folder: Folder, version: str) -> tuple[str, ...]:
    """The files of the tree that `attr: package.module.name` or `file: name` of setuptools reads."""
    kind, _, value = version.partition(":")
    if kind.strip() == "file":
        return tuple(name.strip() for name in value.split(",") if folder.has(name.strip()))
    if kind.strip() != "attr":
        return ()
    parts = value.strip().split(".")[:-1]
    found = []
    for start in ("", "src/", "lib/"):
        for count in range(1, len(parts) + 1):
            place = start + "/".join(parts[:count])
            found += [name for name in (f"{place}.py", f"{place}/__init__.py") if folder.has(name)]
    return tuple(found)


def _lines(text: str) -> tuple[str, ...]:
    lines = (line.partition(" #")[0].strip() for line in text.replace(";\n", "\n").splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _read_script(folder: Folder) -> SetuptoolsProject:
    text = folder.text("setup.py")
    try:
        tree = ast.parse(text or "")
    except (SyntaxError, ValueError):
        return SetuptoolsProject()  # Written for Python 2; building it will say more.
    values = _Values(tree)
    arguments = {
        keyword.arg: keyword.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _called(call) == "setup"
        for keyword in call.keywords
        if keyword.arg
    }
    known = {name: values.of(node) for name, node in arguments.items()}
    name, extras = known.get("name"), known.get("extras_require")
    return SetuptoolsProject(
        name=name if isinstance(name, str) else None,
        extras={key: _texts(found) for key, found in extras.items()} if isinstance(extras, dict) else {},
        install_requires=_texts(known.get("install_requires")),
        tests_require=_texts(known.get("tests_require")),
        setup_requires=_texts(known.get("setup_requires")),
        imports=_undeclared_imports(tree, folder),
        extensions=bool({"ext_modules", "cffi_modules", "rust_extensions"}.intersection(arguments)),
        paths=_named_files(tree, folder),
    )


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return _lines(value)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, (list, tuple)) else ()


class _Values:
    """Values of simple expressions of a module: literals, names bound to them, sums of lists, `dict(...)`."""

    def __init__(self, tree: ast.Module) -> None:
        self._names: dict[str, object] = {}
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assign(statement.targets[0], self.of(statement.value))

    def _assign(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            # `extras["all"] = ...` after the dictionary was made.
            container, key = self._names.get(target.value.id), self.of(target.slice)
            if isinstance(container, dict) and isinstance(key, str):
                container[key] = value

    def of(self, node: ast.expr) -> object:
        """The value of an expression; None when it cannot be seen, and an item that cannot be seen is left out."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [item for item in map(self.of, node.elts) if item is not None]
        if isinstance(node, ast.Dict):
            items = [(self.of(key), self.of(value)) for key, value in zip(node.keys, node.values, strict=True) if key]
            return {key: value for key, value in items if isinstance(key, str)}
        if isinstance(node, ast.Call) and _called(node) == "dict":
            return {keyword.arg: self.of(keyword.value) for keyword in node.keywords if keyword.arg}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.of(node.left) or [], self.of(node.right) or []
            if isinstance(left, str) and isinstance(right, str):
                return left + right
            return [*left, *right] if isinstance(left, list) and isinstance(right, list) else None
        return None


def _undeclared_imports(tree: ast.Module, folder: Folder) -> tuple[str, ...]:
    """What the script imports at its top beyond Python, setuptools and its own repository."""
    names: list[str] = []
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names += [alias.name.partition(".")[0] for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            names.append(statement.module.partition(".")[0])
    own = {name.partition("/")[0].removesuffix(".py") for name in folder.names()}
    foreign = (name for name in names if name not in sys.stdlib_module_names and name not in own | _SETUPTOOLS)
    return tuple(dict.fromkeys(foreign))


def _named_files(tree: ast.Module, folder: Folder) -> tuple[str, ...]:
    """Python and text files of the tree that the script names, whole or by the parts of a joined path."""
    texts: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
        elif isinstance(node, ast.Call) and _called(node) in ("join", "joinpath", "Path", "read"):
            parts = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            texts.append("/".join(parts))
    return tuple(dict.fromkeys(text for text in texts if _may_decide(text) and folder.has(text)))


def _may_decide(text: str) -> bool:
    # Long descriptions change often and decide nothing that a test could see.
    documents: Iterable[str] = (".md", ".rst", "LICENSE", "COPYING", "NOTICE", "AUTHORS")
    return 0 < len(text) < 200 and "\0" not in text and not text.endswith(tuple(documents))
