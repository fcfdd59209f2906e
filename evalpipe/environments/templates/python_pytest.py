"""Plugins that a project's settings of pytest need: pytest stops at an option it does not know, whoever asks for it."""

import configparser
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from evalpipe.environments.templates.python_parts import Folder, Wanted, wanted_of
from evalpipe.environments.templates.python_pyproject import Table, read_toml, table
from evalpipe.environments.templates.python_setuptools import read_ini

# By the first words of options on the command line, and of settings in the file.
_OPTIONS: Final = {
    "--cov": "pytest-cov",
    "--no-cov": "pytest-cov",
    "-n": "pytest-xdist",
    "--numprocesses": "pytest-xdist",
    "--dist": "pytest-xdist",
    "--maxprocesses": "pytest-xdist",
    "--timeout": "pytest-timeout",
    "--benchmark": "pytest-benchmark",
    "--reruns": "pytest-rerunfailures",
    "--asyncio-mode": "pytest-asyncio",
    "--ds": "pytest-django",
    "--reuse-db": "pytest-django",
    "--nomigrations": "pytest-django",
    "--no-migrations": "pytest-django",
    "--flake8": "pytest-flake8",
    "--mypy": "pytest-mypy",
    "--black": "pytest-black",
    "--isort": "pytest-isort",
    "--pylint": "pytest-pylint",
    "--html": "pytest-html",
    "--random-order": "pytest-random-order",
    "--randomly": "pytest-randomly",
    "--instafail": "pytest-instafail",
    "--testmon": "pytest-testmon",
    "--doctest-plus": "pytest-doctestplus",
    "--mpl": "pytest-mpl",
    "--nbval": "nbval",
    "--snapshot": "syrupy",
    "--block-network": "pytest-recording",
    "--disable-socket": "pytest-socket",
    "--allow-hosts": "pytest-socket",
    "--count": "pytest-repeat",
    "--durations-path": "pytest-split",
}
_SETTINGS: Final = {
    "asyncio_mode": "pytest-asyncio",
    "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "django_settings_module": "pytest-django",
    "timeout": "pytest-timeout",
    "timeout_method": "pytest-timeout",
    "env": "pytest-env",
    "qt_api": "pytest-qt",
    "flask_settings": "pytest-flask",
    "mock_use_standalone_module": "pytest-mock",
}


def plugins_of_settings(folder: Folder) -> Wanted:
    """The plugins that the first file with settings of pytest asks for, in the order in which pytest looks."""
    source, settings = _settings(folder)
    names = [_SETTINGS[name.lower()] for name in settings if name.lower() in _SETTINGS]
    names += _option_plugins(_words(settings.get("addopts", "")))
    required = settings.get("required_plugins", "")
    names += required if isinstance(required, list) else _words(required)
    return wanted_of(dict.fromkeys(names), f"pytest's settings in {source}", folder)


def _settings(folder: Folder) -> tuple[str, Mapping[str, object]]:
    for name in ("pytest.toml", ".pytest.toml"):
        if folder.has(name):
            return name, table(read_toml(folder, name), "pytest")
    for name in ("pytest.ini", ".pytest.ini"):
        if folder.has(name):
            return name, _section(read_ini(folder, name), "pytest")
    document: Table = read_toml(folder, "pyproject.toml")
    for keys in (("tool", "pytest", "ini_options"), ("tool", "pytest")):
        if table(document, *keys):
            return "pyproject.toml", table(document, *keys)
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        found = _section(read_ini(folder, name), section)
        if found:
            return name, found
    return "", {}


def _section(config: configparser.ConfigParser, name: str) -> dict[str, object]:
    return dict(config[name]) if config.has_section(name) else {}


def _words(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(word) for word in value]
    try:
        return shlex.split(str(value), comments=True)
    except ValueError:
        return str(value).split()


def _option_plugins(words: list[str]) -> Iterator[str]:
    for word in words:
        name = "-n" if re.fullmatch(r"-n(?:\d+|auto|logical)?", word) else word.partition("=")[0]
        # Options of a plugin share their beginning, as `--cov-report` and `--cov`.
        parts = name.split("-")
        beginnings = ["-".join(parts[:count]) for count in range(len(parts), 2, -1)]
        yield from [_OPTIONS[start] for start in (name, *beginnings) if start in _OPTIONS][:1]
