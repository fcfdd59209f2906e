from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.environments.templates.python_commands import Installer, without_tools
from evalpipe.environments.templates.python_parts import Folder, LocalProject, Wanted
from evalpipe.environments.templates.python_pipelines import pipeline_groups
from evalpipe_tests.environments.templates.memory_tree import MemoryTree

GROUPS = {"test": Wanted(("pytest",)), "dev-tools": Wanted(("tox",))}


def installer(files: dict[str, str] | None = None) -> Installer:
    return Installer(Folder(MemoryTree(files or {})), GROUPS, ("toc", "codehilite", "docs"))


def extras(*names: str) -> tuple[LocalProject, ...]:
    return (LocalProject("", names),)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python -m pip install --upgrade pip mock -e '.[toc]'", Wanted(("pip", "mock"), extras("toc"))),
        ("uv pip install --system -r reqs.txt", Wanted(("attrs",), files=("reqs.txt",))),
        ("pip install -U --upgrade-strategy eager --only-binary :all: -i https://example.com mock", Wanted(("mock",))),
        ("pip install mock 2>&1 > install.log | tee other.log", Wanted(("mock",))),
        ("pip install --group test", Wanted(("pytest",))),
        # `dev-tools` is none of the names for developers.
        ("pdm install -G toc -G codehilite", Wanted(("pytest",), (*extras("toc"), *extras("codehilite")))),
        ("pdm install --prod -G toc", Wanted(locals=extras("toc"))),
        ("pdm sync -G :all", Wanted(("pytest",), locals=extras("toc", "codehilite"))),
        ("poetry install --with test,dev_tools --extras='toc codehilite'",
         Wanted(("pytest", "tox"), (*extras("toc"), *extras("codehilite")))),
        ("uv sync --all-extras --group=test", Wanted(("pytest",), extras("toc", "codehilite"))),
        ("uv sync --frozen", Wanted(("pytest",))),
        ("poetry install", Wanted(("pytest",))),
        ("pip install $EXTRA ${{ matrix.django }} mock", Wanted(("mock",))),
    ],
)  # fmt: skip
def test_commands_that_install(command: str, expected: Wanted) -> None:
    assert installer({"reqs.txt": "attrs"}).commands([command], "here") == expected


def test_what_comes_after_the_tests_is_for_other_runs() -> None:
    lines = ["pip install pytest && pip install mock", "coverage run -m pytest", "pip install sphinx"]
    assert installer().commands(lines, "here").requirements == ("pytest", "mock")


def test_tools_and_versions_that_a_pipeline_chooses_are_left_out() -> None:
    found = without_tools(
        Wanted(("tox", "Pre_Commit>=3", "numpy==1.20", "django<5", "mock>=4", 'x ; python_version<"3"'))
    )
    assert found.requirements == ("mock>=4", 'x ; python_version<"3"')


WORKFLOW = """\
name: tests
on: [push]
jobs:
  lint:
    steps:
      - run: pip install ruff
  tests:
    strategy: {matrix: {python: ["3.9", "3.12"]}}
    steps:
      - uses: actions/checkout@v4
      - run: |
          python -m pip install --upgrade pip \\
            wheel
          pdm install -G toc
      - name: Test
        run: pdm run pytest tests
  oldest:
    steps:
      - run: pip install attrs==17.1 && pytest
"""
GITLAB = """\
before_script: ["pip install -e .[toc]"]
stages: [test]
test:
  script:
    - pip install mock
    - python -m unittest
"""


def test_the_first_job_that_runs_tests_says_what_they_need() -> None:
    files = {".github/workflows/ci.yml": WORKFLOW, ".gitlab-ci.yml": GITLAB, ".github/workflows/tests.yml": "{"}
    files[".github/workflows/release-tests.yml"] = files[".github/workflows/aiohttp.yml"] = WORKFLOW
    found = {group.name: group.wanted for group in pipeline_groups(Folder(MemoryTree(files)), installer())}
    assert found == {
        ".github/workflows/ci.yml": Wanted(("pytest",), extras("toc")),
        ".gitlab-ci.yml": Wanted(("mock",), extras("toc")),
    }


@given(st.text(max_size=150))
def test_any_pipeline_can_be_read(text: str) -> None:
    files = {".github/workflows/ci.yml": text.encode("utf-8", "replace").decode()}
    list(pipeline_groups(Folder(MemoryTree(files)), installer()))
