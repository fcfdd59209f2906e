"""What tox and nox install before they run a project's tests: the surest sign of what the tests need."""

import ast
import configparser
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evalpipe.environments.templates.python_commands import Installer, pip_arguments
from evalpipe.environments.templates.python_parts import Folder, Group, LocalProject, Use, Wanted, use_of
from evalpipe.environments.templates.python_pyproject import read_toml, table
from evalpipe.environments.templates.python_setuptools import read_ini

_FACTORS: Final = re.compile(r"(?P<factors>[!\w.,{}-]+)\s*:\s+(?P<rest>\S.*)|(?P<bare>[!\w.,{}-]+):(?P<tight>[^/\s].*)")
_PYTHON_FACTOR: Final = re.compile(r"!?(?:py|py3|py(?P<major>3)\.?(?P<minor>\d+)|pypy3?\d*|cpython)")
_SUBSTITUTION: Final = re.compile(r"\{\[(?P<section>[^\]]+)\](?P<key>[^}]+)\}|\{(?P<name>[^{}]*)\}")
_SETTINGS: Final = ("deps", "extras", "dependency_groups", "commands_pre", "commands")
_TOP: Final = frozenset({"toxinidir", "tox_root", "/", "tox_root}{/"})


def session_groups(document: Mapping[str, Any], installer: Installer) -> Iterator[Group]:
    """What the environments of tox and the sessions of nox that run tests install. `document` is pyproject.toml."""
    yield from _tox_ini(_tox_config(document, installer.folder), installer)
    native = {**table(document, "tool", "tox"), **read_toml(installer.folder, "tox.toml")}
    yield from _tox_toml(native, installer)
    yield from _nox(installer)


def _tox_config(document: Mapping[str, Any], folder: Folder) -> configparser.ConfigParser:
    if folder.has("tox.ini"):
        return read_ini(folder, "tox.ini")
    legacy = table(document, "tool", "tox").get("legacy_tox_ini")
    if not isinstance(legacy, str):
        return read_ini(folder, "setup.cfg")
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(legacy)
    except configparser.Error:
        return configparser.ConfigParser(interpolation=None)
    return parser


def _tox_ini(config: configparser.ConfigParser, installer: Installer) -> Iterator[Group]:
    for section in config.sections():
        kind, _, name = section.partition(":")
        use = Use.TESTS if section == "testenv" or re.fullmatch(r"py[\d{},*.x-]*", name) else use_of(name)
        if kind == "testenv" and use in (Use.TESTS, Use.SOME_TESTS):
            yield from _session(
                "tox", section, {key: _tox_lines(config, section, key) for key in _SETTINGS}, use, installer
            )


def _tox_lines(config: configparser.ConfigParser, section: str, key: str) -> list[str]:
    """The lines of a setting that hold for plain Python environments, with references to other sections replaced."""
    text = config.get(section, key, fallback="")
    for _ in range(5):
        text = _SUBSTITUTION.sub(lambda match: _substituted(match, config), text)
    lines = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = re.sub(r"(?:^|\s)#.*", "", line).strip()
        factors = _FACTORS.fullmatch(line)
        marker = ""
        if factors:
            named = re.split(r"[-,{}]+", (factors["factors"] or factors["bare"]).strip("{}"))
            matches = [_PYTHON_FACTOR.fullmatch(factor) for factor in named if factor]
            # Other factors choose between rivals, such as two versions of a framework.
            if not all(matches):
                continue
            pythons = [match for match in matches if match]
            line = factors["rest"] or factors["tight"]
            marker = _python_marker(pythons)
        lines += [f"{line.strip()}{marker}"] if line.strip() else []
    return lines


def _python_marker(factors: list[re.Match[str]]) -> str:
    versions = [factor for factor in factors if factor["minor"]]
    if not versions or any(factor[0].startswith("!") for factor in factors):
        return ""
    return " ; " + " or ".join(f'python_version == "3.{factor["minor"]}"' for factor in versions)


def _substituted(match: re.Match[str], config: configparser.ConfigParser) -> str:
    if match["section"]:
        return config.get(match["section"], match["key"], fallback="")
    name = match["name"] or ""
    if name in _TOP:
        return "." if name != "/" else "/"
    if name.startswith("env:"):
        return name.split(":", 2)[2] if name.count(":") > 1 else ""
    return "" if name.startswith("posargs") else match[0].replace("{", "(").replace("}", ")")


def _session(tool: str, name: str, env: Mapping[str, list[str]], use: Use, installer: Installer) -> Iterator[Group]:
    source = f"{tool} {name}"
    wanted = installer.arguments(env.get("deps", []), source)
    extras = tuple(name for line in env.get("extras", []) for name in re.split(r"[,\s]+", line) if name)
    if extras:
        wanted += Wanted(locals=(LocalProject(installer.folder.folder, extras),))
    for line in env.get("dependency_groups", []):
        wanted += installer.named(line)
    wanted += installer.commands([*env.get("commands_pre", []), *env.get("commands", [])], source)
    if wanted.requirements or wanted.locals:
        yield Group(tool, name, wanted, use)


def _tox_toml(native: Mapping[str, Any], installer: Installer) -> Iterator[Group]:
    envs = {"env_run_base": table(native, "env_run_base"), **table(native, "env")}
    for name, env in envs.items():
        use = Use.TESTS if name == "env_run_base" or re.fullmatch(r"(py)?3?[\d.]*", name) else use_of(name)
        if use in (Use.TESTS, Use.SOME_TESTS) and isinstance(env, Mapping):
            yield from _session("tox", name, {key: _texts(env.get(key)) for key in _SETTINGS}, use, installer)


def _texts(value: object) -> list[str]:
    """The texts of a list; a command is a list of words itself."""
    if not isinstance(value, list):
        return []
    return [shlex.join(map(str, item)) if isinstance(item, list) else str(item) for item in value]


def _nox(installer: Installer) -> Iterator[Group]:
    try:
        tree = ast.parse(installer.folder.text("noxfile.py") or "")
    except (SyntaxError, ValueError):
        return
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and use_of(function.name) in (Use.TESTS, Use.SOME_TESTS):
            wanted = Wanted()
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    wanted += _call(call.func.attr, call, installer, f"nox {function.name}")
            if wanted.requirements or wanted.locals:
                yield Group("nox", function.name, wanted, use_of(function.name))


def _call(name: str, call: ast.Call, installer: Installer, source: str) -> Wanted:
    words = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    if name == "install":
        return installer.arguments(pip_arguments(words), source)
    if name in ("run", "run_install", "run_always"):
        return installer.command(words, source) or Wanted()
    return installer.named(" ".join(words)) if name == "dependency_groups" else Wanted()
