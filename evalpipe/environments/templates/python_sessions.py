"""What tox and nox install before they run a project's tests: the surest sign of what the tests need."""

import ast
import configparser
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from packaging.utils import canonicalize_name

from evalpipe.environments.templates.python_parts import Folder, Group, LocalProject, Use, Wanted, use_of, wanted_of
from evalpipe.environments.templates.python_pyproject import dependency_groups, read_toml, table
from evalpipe.environments.templates.python_requirements import requirements_file
from evalpipe.environments.templates.python_setuptools import read_ini

_FACTORS: Final = re.compile(r"(?P<factors>[!\w.,{}-]+)\s*:\s+(?P<rest>\S.*)|(?P<bare>[!\w.,{}-]+):(?P<tight>[^/\s].*)")
_PYTHON_FACTOR: Final = re.compile(r"!?(?:py|py3|py(?P<major>3)\.?(?P<minor>\d+)|pypy3?\d*|cpython)")
_SUBSTITUTION: Final = re.compile(r"\{\[(?P<section>[^\]]+)\](?P<key>[^}]+)\}|\{(?P<name>[^{}]*)\}")
_TOP: Final = frozenset({"toxinidir", "tox_root", "/", "tox_root}{/"})


def session_groups(document: Mapping[str, Any], folder: Folder) -> Iterator[Group]:
    """What the environments of tox and the sessions of nox that run tests install. `document` is pyproject.toml."""
    groups = dependency_groups(table(document, "dependency-groups"), folder)
    yield from _tox_ini(_tox_config(document, folder), groups, folder)
    native = {**table(document, "tool", "tox"), **read_toml(folder, "tox.toml")}
    yield from _tox_toml(native, groups, folder)
    yield from _nox(groups, folder)


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


def _tox_ini(config: configparser.ConfigParser, groups: Mapping[str, Wanted], folder: Folder) -> Iterator[Group]:
    for section in config.sections():
        kind, _, name = section.partition(":")
        use = Use.TESTS if section == "testenv" or re.fullmatch(r"py[\d{},*.x-]*", name) else use_of(name)
        if kind != "testenv" or use not in (Use.TESTS, Use.SOME_TESTS):
            continue
        texts = {key: _tox_lines(config, section, key) for key in ("deps", "extras", "dependency_groups")}
        commands = [*_tox_lines(config, section, "commands_pre"), *_tox_lines(config, section, "commands")]
        texts["deps"] += _pip_commands(commands)
        yield from _session("tox", section, texts, use, groups, folder)


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


def _pip_commands(commands: list[str]) -> list[str]:
    """What commands install before the first one that runs tests; later ones prepare other runs."""
    lines: list[str] = []
    for command in commands:
        if re.search(r"\b(?:pytest|unittest|nosetests|stestr|trial)\b", command):
            break
        found = re.search(r"\b(?:uv )?pip install\s+(.+)", command)
        lines += _arguments(found[1].replace("'", "").replace('"', "").split()) if found else []
    return lines


def _session(
    tool: str, name: str, texts: Mapping[str, list[str]], use: Use, groups: Mapping[str, Wanted], folder: Folder
) -> Iterator[Group]:
    wanted = _installed(texts.get("deps", []), f"{tool} {name}", folder)
    extras = tuple(name for line in texts.get("extras", []) for name in re.split(r"[,\s]+", line) if name)
    if extras:
        wanted += Wanted(locals=(LocalProject(folder.folder, extras),))
    for line in texts.get("dependency_groups", []):
        for group in re.split(r"[,\s]+", line):
            wanted += groups.get(canonicalize_name(group), Wanted())
    if wanted.requirements or wanted.locals:
        yield Group(tool, name, wanted, use)


def _installed(arguments: list[str], source: str, folder: Folder) -> Wanted:
    """What arguments of `pip install`, a line each, ask for."""
    found = Wanted()
    for line in arguments:
        file = re.match(r"(-r|--requirement|-c|--constraint)[\s=]*([^\s;]+)", line)
        if file is None:
            found += wanted_of([line], source, folder) if not re.match(r"-(?!e|-editable)", line) else Wanted()
            continue
        read = requirements_file(folder, file[2]) if folder.has(file[2]) else Wanted()
        if file[1] in ("-c", "--constraint"):
            read = Wanted(constraints=read.requirements, notes=read.notes, files=read.files)
        found += read
    return found


def _tox_toml(native: Mapping[str, Any], groups: Mapping[str, Wanted], folder: Folder) -> Iterator[Group]:
    envs = {"env_run_base": table(native, "env_run_base"), **table(native, "env")}
    for name, env in envs.items():
        use = Use.TESTS if name == "env_run_base" or re.fullmatch(r"(py)?3?[\d.]*", name) else use_of(name)
        if use in (Use.TESTS, Use.SOME_TESTS) and isinstance(env, Mapping):
            texts = {
                key: [text for text in env.get(key, ()) if isinstance(text, str)]
                for key in ("deps", "extras", "dependency_groups")
            }
            yield from _session("tox", name, texts, use, groups, folder)


def _nox(groups: Mapping[str, Wanted], folder: Folder) -> Iterator[Group]:
    try:
        tree = ast.parse(folder.text("noxfile.py") or "")
    except (SyntaxError, ValueError):
        return
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or use_of(function.name) not in (Use.TESTS, Use.SOME_TESTS):
            continue
        lines: list[str] = []
        wanted_groups: list[str] = []
        for call in ast.walk(function):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            words = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            if call.func.attr == "install":
                for line in _arguments(words):
                    (wanted_groups if line.startswith("--group ") else lines).append(line.removeprefix("--group "))
            elif call.func.attr == "dependency_groups":
                wanted_groups += words
        texts = {"deps": lines, "dependency_groups": wanted_groups}
        yield from _session("nox", function.name, texts, use_of(function.name), groups, folder)


def _arguments(words: list[str]) -> list[str]:
    """Arguments of pip, an option with its value as one line."""
    lines = []
    rest = iter(words)
    for word in rest:
        if word in ("-r", "-c", "-e", "--requirement", "--constraint", "--editable", "--group"):
            word = f"{word} {next(rest, '')}"
        lines.append(word)
    return lines
