from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from evalpipe.environments.templates.python_backends import (
    UNKNOWN_VERSION,
    asks_git,
    requirement_names,
    version_of,
    version_variables,
)
from evalpipe.environments.templates.python_parts import Folder
from evalpipe.environments.templates.python_project import read_project
from evalpipe_tests.environments.templates.memory_tree import MemoryTree


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.2.3", "1.2.3"),
        ("v1.2.3", "1.2.3"),
        ("shop-2.0rc1", "2.0rc1"),
        ("release/2024.01", "2024.1"),
        ("nightly", UNKNOWN_VERSION),
        ("1.2.3-final-candidate", UNKNOWN_VERSION),
        (None, UNKNOWN_VERSION),
    ],
)
def test_versions_of_tags(text: str | None, version: str) -> None:
    assert version_of(text) == version


@given(st.text(max_size=30))
def test_any_tag_gives_a_version(text: str) -> None:
    Version(version_of(text))


def test_variables_of_each_tool_that_would_ask_git() -> None:
    names = requirement_names(["setuptools>=61", "setuptools_scm[toml]>=8", "hatch-vcs", "pdm-backend", "not a name"])
    assert version_variables(names, "My.Shop-app", "1.2") == {
        "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_MY_SHOP_APP": "1.2",
        "SETUPTOOLS_SCM_PRETEND_VERSION": "1.2",
        "PDM_BUILD_SCM_VERSION": "1.2",
    }
    assert version_variables(requirement_names(["setuptools-scm"]), None, "1.2") == {
        "SETUPTOOLS_SCM_PRETEND_VERSION": "1.2"
    }
    assert asks_git(requirement_names(["versioningit~=3.0"]))
    assert not asks_git(names)


def reads(files: dict[str, str]) -> set[str]:
    return set(read_project(Folder(MemoryTree(files))).reads)


def test_files_that_the_backend_takes_metadata_from() -> None:
    setuptools = """\
[build-system]
requires = ["setuptools"]
[project]
name = "shop"
dynamic = ["version", "readme"]
[tool.setuptools.dynamic]
version = {attr = "shop.meta.VERSION"}
readme = {file = ["README.md"]}
dependencies = {file = "requirements.txt"}
"""
    files = {"pyproject.toml": setuptools, "src/shop/meta.py": "", "src/shop/cart.py": "", "README.md": ""}
    assert reads({**files, "requirements.txt": "flask", "MANIFEST.in": ""}) == {
        "pyproject.toml",
        "MANIFEST.in",
        "requirements.txt",
        "src/shop/meta.py",
    }
    hatch = '[build-system]\nrequires = ["hatchling"]\n[tool.hatch.version]\npath = "shop/about.py"\n'
    assert reads({"pyproject.toml": hatch, "shop/about.py": ""}) == {"pyproject.toml", "shop/about.py"}
    flit = '[build-system]\nbuild-backend = "flit_core.buildapi"\n[project]\nname = "my-shop"\ndynamic = ["version"]\n'
    assert reads({"pyproject.toml": flit, "src/my_shop/__init__.py": ""}) == {
        "pyproject.toml",
        "src/my_shop/__init__.py",
    }


def test_sources_of_extension_modules_decide_only_where_something_is_compiled() -> None:
    files = {"shop/fast.c": "", "shop/fast.h": "", "shop/_x.pyx": "", "tests/hello.c": "", "shop/cart.py": ""}
    plain = read_project(Folder(MemoryTree({**files, "setup.py": "from setuptools import setup\nsetup(name='shop')"})))
    assert plain.native_sources == ()
    compiled = {**files, "pyproject.toml": '[build-system]\nrequires = ["setuptools", "Cython>=3"]\n'}
    found = read_project(Folder(MemoryTree(compiled))).native_sources
    assert set(found) == {"shop/fast.c", "shop/fast.h", "shop/_x.pyx"}
