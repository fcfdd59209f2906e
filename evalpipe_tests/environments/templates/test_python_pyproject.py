from __future__ import annotations

import tomllib

import pytest

from evalpipe.environments.recipe import NoRecipe
from evalpipe.environments.templates.python_parts import Folder, LocalProject, Use
from evalpipe.environments.templates.python_pyproject import (
    extras_of,
    groups_of,
    local_sources,
    project_name,
    read_toml,
)
from evalpipe_tests.environments.templates.memory_tree import MemoryTree

TOP = Folder(MemoryTree({}))


def groups(toml: str, **files: str) -> dict[str, tuple[str, ...]]:
    folder = Folder(MemoryTree({name.replace("_toml", ".toml"): text for name, text in files.items()}))
    return {group.name: group.wanted.requirements for group in groups_of(tomllib.loads(toml), folder)}


def test_dependency_groups_include_others_by_normalized_name() -> None:
    found = groups("""\
[dependency-groups]
Test_Base = ["pytest"]
tests = [{include-group = "test.base"}, "hypothesis>=6"]
dev = [{include-group = "tests"}, {set-phasers-to = "stun"}, "ruff"]
""")
    assert found == {
        "test-base": ("pytest",),
        "tests": ("pytest", "hypothesis>=6"),
        "dev": ("pytest", "hypothesis>=6", "ruff"),
    }


@pytest.mark.parametrize("entry", ['{include-group = "gone"}', '{include-group = "tests"}'])
def test_an_include_that_leads_nowhere_is_refused(entry: str) -> None:
    with pytest.raises(NoRecipe, match="tests"):
        groups(f"[dependency-groups]\ntests = [{entry}]\n")


def test_groups_of_pdm_uv_and_hatch() -> None:
    found = groups(
        """\
[tool.pdm.dev-dependencies]
test = ["pytest", "-e file:///${PROJECT_ROOT}/libs/core#egg=core"]
[tool.uv]
dev-dependencies = ["ruff"]
[tool.hatch.envs.default]
dependencies = ["pytest"]
features = ["cli"]
[tool.hatch.envs.tests]
extra-dependencies = ["pytest-xdist"]
[tool.hatch.envs.lint]
detached = true
dependencies = ["ruff"]
[tool.hatch.envs.py-tests]
template = "tests"
dependencies = ["coverage"]
"""
    )
    assert found == {
        "test": ("pytest",),
        "dev": ("ruff",),
        "default": ("pytest",),
        "tests": ("pytest", "pytest-xdist"),
        "lint": ("ruff",),
        "py-tests": ("pytest", "pytest-xdist", "coverage"),
    }


def test_an_environment_of_hatch_takes_extras_and_groups_and_has_a_file_of_its_own() -> None:
    folder = Folder(MemoryTree({"hatch.toml": '[envs.hatch-test]\nfeatures = ["cli"]\ndependency-groups = ["t"]\n'}))
    _, group = groups_of(tomllib.loads('[dependency-groups]\nt = ["hypothesis"]\n'), folder)
    assert group.use is Use.TESTS
    # Hatch brings these itself.
    assert {"pytest", "pytest-mock", "hypothesis"} <= set(group.wanted.requirements)
    assert group.wanted.locals == (LocalProject("", ("cli",)),)


def test_names_and_extras_in_every_table_that_has_them() -> None:
    assert project_name(tomllib.loads('[tool.poetry]\nname = "shop"')) == "shop"
    assert project_name(tomllib.loads('[tool.flit.metadata]\nmodule = "shop"\ndist-name = "the-shop"')) == "the-shop"
    assert project_name({"project": {"dynamic": ["version"]}}) is None
    assert extras_of(tomllib.loads('[project.optional-dependencies]\ntests = ["pytest"]')) == {"tests": ("pytest",)}
    assert extras_of(tomllib.loads('[tool.poetry.extras]\ncli = ["click"]')) == {"cli": ("click",)}
    assert extras_of(
        tomllib.loads('[tool.setuptools.dynamic.optional-dependencies]\ntest = {file = ["test.txt"]}')
    ) == {"test": ()}


def test_neighbours_are_sources_with_a_path_and_members_of_the_workspace() -> None:
    places = ("packages/a", "packages/b", "packages/b/c")
    files = {f"{place}/pyproject.toml": "" for place in places}
    document = tomllib.loads("""\
[tool.uv.workspace]
members = ["packages/*"]
exclude = ["packages/b"]
[tool.uv.sources]
core = {path = "libs/core", editable = true}
out = {path = "../out"}
forked = {git = "https://example.com/forked.git"}
""")
    assert local_sources(document, Folder(MemoryTree(files))) == ("libs/core", "packages/a")


def test_a_damaged_manifest_is_named_with_what_to_do() -> None:
    folder = Folder(MemoryTree({"pyproject.toml": "<<<<<<< HEAD\n"}))
    with pytest.raises(NoRecipe, match=r"pyproject\.toml.*template: packages"):
        read_toml(folder, "pyproject.toml")
    assert read_toml(TOP, "pyproject.toml") == {}
