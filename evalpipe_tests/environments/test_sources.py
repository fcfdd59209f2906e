"""The key under which candidates share an environment: everything that decides it, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalpipe.environments import DockerfileSource, ImageSource, Recipe, RecipeSource, build_key, definition_text
from evalpipe_tests.environments.trees import TextTree

TREE = TextTree({b"pyproject.toml": b"[project]\n", b"src/shop.py": b"x = 1\n", b"name \xff": b"1"})
RECIPE = Recipe(
    "python",
    3,
    steps=("pip install pytest\n", "touch 'a b'"),
    env={"PATH": "/opt/evalpipe/venv/bin:$PATH", "SAY": "it's"},
    files={"/opt/evalpipe/x": b"1"},
    decided_by=(b"pyproject.toml", b"name \xff"),
    keeps=("src/*.so",),
)
SOURCE = RecipeSource("python:3.12-slim", RECIPE, TREE, ("pytest",), ("true",))
DOCKERFILE = DockerfileSource("Dockerfile", {"Dockerfile": b"FROM x\n", "a/b": b"1"})


def _with_file(path: bytes, data: bytes) -> RecipeSource:
    return replace(SOURCE, tree=TextTree({**TREE.contents, path: data}))


def test_build_key_is_stable() -> None:
    # A new value means that every environment is built again and every validation repeated.
    assert build_key(SOURCE, "docker", "sha256:base") == (
        "5e1ad2b1a62875fb2bfdc5ab5ae08f1c4a9e99c29bcc780892c260f10b70be46"
    )


@pytest.mark.parametrize(
    "other",
    [
        replace(SOURCE, recipe=replace(RECIPE, template="go")),
        replace(SOURCE, recipe=replace(RECIPE, version=4)),
        replace(SOURCE, recipe=replace(RECIPE, steps=RECIPE.steps[::-1])),
        replace(SOURCE, recipe=replace(RECIPE, env={"SAY": "it's"})),
        replace(SOURCE, recipe=replace(RECIPE, files={"/opt/evalpipe/x": b"2"})),
        replace(SOURCE, recipe=replace(RECIPE, files={"/opt/evalpipe/y": b"1"})),
        replace(SOURCE, recipe=replace(RECIPE, decided_by=())),
        replace(SOURCE, recipe=replace(RECIPE, keeps=())),
        replace(SOURCE, recipe=replace(RECIPE, check="true")),
        replace(SOURCE, packages=()),
        replace(SOURCE, setup=()),
        replace(SOURCE, packages=(), setup=("pytest", "true")),
        _with_file(b"pyproject.toml", b"[project]\n\n"),
        _with_file(b"name \xff", b"2"),
        DOCKERFILE,
        ImageSource("x"),
    ],
)
def test_build_key_depends_on_all_that_decides(other: RecipeSource) -> None:
    assert build_key(other, "docker", "sha256:base") != build_key(SOURCE, "docker", "sha256:base")


def test_build_key_depends_on_the_content_of_the_base_and_not_on_its_name() -> None:
    key = build_key(SOURCE, "docker", "sha256:base")
    assert build_key(replace(SOURCE, base="other:name"), "docker", "sha256:base") == key
    assert build_key(SOURCE, "docker", "sha256:other") != key
    assert build_key(SOURCE, "process", "sha256:base") != key


def test_candidates_whose_trees_differ_elsewhere_share_a_key() -> None:
    key = build_key(SOURCE, "docker", "sha256:base")
    assert build_key(_with_file(b"src/shop.py", b"x = 2\n"), "docker", "sha256:base") == key
    assert build_key(_with_file(b"README.md", b"new"), "docker", "sha256:base") == key


def test_file_that_decides_may_be_absent_and_then_appear() -> None:
    lock = replace(SOURCE, recipe=replace(RECIPE, decided_by=(b"uv.lock",)))
    there = replace(lock, tree=TextTree({b"uv.lock": b"1"}))
    assert build_key(lock, "docker", "b") != build_key(there, "docker", "b")


@pytest.mark.parametrize(
    "other",
    [
        replace(DOCKERFILE, context={**DOCKERFILE.context, "Dockerfile": b"FROM y\n"}),
        replace(DOCKERFILE, context={**DOCKERFILE.context, "a/b": b"2"}),
        replace(DOCKERFILE, context={"Dockerfile": b"FROM x\n"}),
        replace(DOCKERFILE, dockerfile="a/b"),
    ],
)
def test_build_key_of_a_dockerfile_depends_on_its_whole_folder(other: DockerfileSource) -> None:
    assert build_key(other, "docker", "") != build_key(DOCKERFILE, "docker", "")


def test_definition_is_what_a_person_would_run() -> None:
    assert definition_text(SOURCE) == (
        "# template python, version 3\n"
        "export PATH='/opt/evalpipe/venv/bin:$PATH'\n"
        "export SAY='it'\"'\"'s'\n"
        "# file /opt/evalpipe/x\n"
        "pip install pytest\n"
        "touch 'a b'\n"
    )
    assert definition_text(DOCKERFILE) == "FROM x\n"
    assert definition_text(ImageSource("x")) == ""
