from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.environments.templates.python_parts import Folder
from evalpipe.environments.templates.python_pytest import plugins_of_settings
from evalpipe_tests.environments.templates.memory_tree import MemoryTree


def plugins(files: dict[str, str]) -> tuple[str, ...]:
    return plugins_of_settings(Folder(MemoryTree(files))).requirements


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-ra --strict-markers -m 'not slow' -p no:cacheprovider", ()),
        ("--cov=shop --cov-report term --no-cov-on-fail", ("pytest-cov",)),
        ("-n auto --dist=loadscope", ("pytest-xdist",)),
        ("-n4", ("pytest-xdist",)),
        ("-nauto", ("pytest-xdist",)),
        ("--timeout 30 --benchmark-skip", ("pytest-timeout", "pytest-benchmark")),
        ("--doctest-modules --doctest-plus", ("pytest-doctestplus",)),
        ("--durations=10 --noconftest --import-mode=importlib", ()),
        ("--strict 'unclosed", ()),
    ],
)
def test_options_that_a_plugin_brings(options: str, expected: tuple[str, ...]) -> None:
    assert plugins({"pytest.ini": f"[pytest]\naddopts = {options}\n"}) == expected


def test_settings_that_a_plugin_reads_and_plugins_that_are_required() -> None:
    toml = '[tool.pytest.ini_options]\nasyncio_mode = "auto"\naddopts = ["--cov", "-q"]\n'
    assert plugins({"pyproject.toml": toml}) == ("pytest-asyncio", "pytest-cov")
    ini = "[tool:pytest]\nDJANGO_SETTINGS_MODULE = shop.settings\nrequired_plugins = pytest-httpx>=0.30 pytest-mock\n"
    assert plugins({"setup.cfg": ini}) == ("pytest-django", "pytest-httpx>=0.30", "pytest-mock")
    listed = '[pytest]\nrequired_plugins = ["pytest-httpx"]\n'
    assert plugins({"pytest.toml": listed}) == ("pytest-httpx",)


def test_only_the_file_that_pytest_takes_is_read() -> None:
    files = {"pytest.ini": "", "tox.ini": "[pytest]\naddopts = --cov\n", "setup.cfg": "[tool:pytest]\ntimeout = 3\n"}
    assert plugins(files) == ()
    del files["pytest.ini"]
    assert plugins(files) == ("pytest-cov",)


@given(st.text(max_size=100))
def test_any_options_can_be_read(text: str) -> None:
    plugins({"pytest.ini": "[pytest]\naddopts = " + text.encode("utf-8", "replace").decode()})
