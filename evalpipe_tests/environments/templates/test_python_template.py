from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.environments.recipe import NoRecipe, Project, Recipe
from evalpipe.environments.templates.python import PythonTemplate
from evalpipe.environments.templates.python_steps import FOLDER
from evalpipe_tests.environments.templates.memory_tree import MemoryTree

PYPROJECT = """\
[build-system]
requires = ["setuptools", "setuptools_scm"]
[project]
name = "iniconfig"
dynamic = ["version"]
[dependency-groups]
testing = ["pytest", "iniconfig"]
"""
SHOP = {
    "pyproject.toml": PYPROJECT,
    "uv.lock": '[[package]]\nname = "pytest"\nversion = "8.3.4"\n[[package]]\nname = "iniconfig"\nversion = "2.0"\n',
    "src/iniconfig/__init__.py": "",
    "testing/test_it.py": "",
}


def project(files: dict[str, str], **changes: object) -> Project:
    made = Project(MemoryTree(files), dt.date(2024, 12, 31), "v2.0.0")
    return replace(made, **changes)  # type: ignore[arg-type]


def recipe(files: dict[str, str], **changes: object) -> Recipe:
    return PythonTemplate().recipe(project(files, **changes))


def file(made: Recipe, name: str) -> list[str]:
    return made.files[f"{FOLDER}/{name}"].decode().splitlines()


def test_a_project_on_which_its_own_runner_depends() -> None:
    made = recipe(SHOP)
    assert file(made, "requirements.txt") == ["-e iniconfig @ file:///work/repo", "pytest"]
    # Whatever asks for the project, of whatever version, gets the one in place.
    assert file(made, "overrides.txt") == ["-e iniconfig @ file:///work/repo"]
    assert file(made, "locked.txt") == ["pytest==8.3.4"]
    assert file(made, "locked.args") == ["--exclude-newer-package pytest=false"]
    assert json.loads(made.files[f"{FOLDER}/facts.json"]) == {"names": ["iniconfig"], "modules": ["iniconfig"]}
    settings = file(made, "settings.sh")
    assert 'export UV_EXCLUDE_NEWER="2025-01-01T00:00:00Z"' in settings
    assert 'export SETUPTOOLS_SCM_PRETEND_VERSION_FOR_INICONFIG="2.0.0"' in settings
    assert made.decided_by == (b"pyproject.toml", b"uv.lock")
    assert made.keeps == ("**",)
    assert made.env == {"PATH": "/opt/evalpipe/venv/bin:$PATH", "VIRTUAL_ENV": "/opt/evalpipe/venv"}


def test_the_same_tree_gives_the_same_recipe_and_the_day_and_the_version_are_in_the_settings_alone() -> None:
    made = recipe(SHOP)
    assert recipe(dict(reversed(SHOP.items()))) == made
    later = recipe(SHOP, day=dt.date(2025, 3, 1), version="3.0")
    assert later.steps == made.steps
    assert {path for path in made.files if later.files[path] != made.files[path]} == {f"{FOLDER}/settings.sh"}


def test_what_the_sources_and_the_tests_say_decides_nothing() -> None:
    assert recipe({**SHOP, "src/iniconfig/__init__.py": "x = 1", "testing/test_new.py": ""}) == recipe(SHOP)


def test_the_teams_packages_and_commands() -> None:
    made = recipe(SHOP, packages=("freezegun>=1", "pytest==7.4.0"), setup=("apt-get install -y libpq5",))
    assert file(made, "requirements.txt") == [
        "-e iniconfig @ file:///work/repo",
        "freezegun>=1",
        "pytest==7.4.0",
        "pytest",
    ]
    # Before the installation, which may need what they bring, and after the environment is there.
    assert made.steps[1] == "apt-get install -y libpq5"
    with pytest.raises(NoRecipe, match="packages: '--pre x' is no requirement"):
        recipe(SHOP, packages=("--pre x",))


def test_a_tree_of_scripts_has_the_runner_and_nothing_installed_in_place() -> None:
    made = recipe({"cart.py": "", "test_cart.py": ""})
    assert file(made, "requirements.txt") == ["pytest"]
    assert made.keeps == ()
    assert made.decided_by == ()


def test_a_tree_without_python_has_no_recipe() -> None:
    with pytest.raises(NoRecipe, match="template: dockerfile"):
        recipe({"main.go": "", "go.mod": "module x"})


def test_pytest_is_not_installed_for_a_suite_that_unittest_runs() -> None:
    assert file(recipe({"shop.py": ""}, runner="unittest"), "requirements.txt") == []
    assert file(recipe({"shop.py": ""}, runner="generic"), "requirements.txt") == ["pytest"]


def test_pytest_itself_is_not_installed_beside_itself() -> None:
    files = {"pyproject.toml": '[build-system]\n[project]\nname = "pytest"\n', "src/pytest/__init__.py": ""}
    assert file(recipe(files), "requirements.txt") == ["-e pytest @ file:///work/repo"]


def test_a_project_whose_name_is_computed_is_installed_by_its_place() -> None:
    for name in ("open('NAME').read()", "'My Shop'"):
        made = recipe({"setup.py": f"from setuptools import setup\nsetup(name={name})\n"})
        assert file(made, "requirements.txt") == ["-e /work/repo", "pytest"]
        assert file(made, "overrides.txt") == []


def test_projects_in_folders_are_all_installed_in_place() -> None:
    made = recipe(
        {
            "pyproject.toml": "[tool.ruff]\nline-length = 100\n",
            "services/api/pyproject.toml": '[build-system]\n[project]\nname = "api"\n',
            "services/core/setup.py": "from setuptools import setup\nsetup(name='core')\n",
            "services/core/examples/x/setup.py": "",
            "examples/demo/setup.py": "",
            "services/api/api.py": "",
        }
    )
    assert file(made, "requirements.txt") == [
        "-e api @ file:///work/repo/services/api",
        "-e core @ file:///work/repo/services/core",
        "pytest",
    ]


def test_a_workspace_and_what_a_member_depends_on_in_the_tree() -> None:
    made = recipe(
        {
            "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n[dependency-groups]\ndev = ["core"]\n',
            "packages/core/pyproject.toml": '[build-system]\n[project]\nname = "core"\n'
            '[tool.uv.sources]\nbase = {path = "../../base"}\n',
            "base/pyproject.toml": '[build-system]\n[project]\nname = "base"\n',
            "packages/core/core.py": "",
        }
    )
    assert set(file(made, "requirements.txt")) == {
        "-e core @ file:///work/repo/packages/core",
        "-e base @ file:///work/repo/base",
        "pytest",
    }


def test_a_requirement_that_was_left_out_is_said_while_the_image_is_built() -> None:
    made = recipe({"requirements-test.txt": "tool @ git+https://example.com/tool\n", "test_x.py": ""})
    assert any("left out of requirements-test.txt: tool" in step for step in made.steps)


def test_a_backend_that_asks_git_has_a_repository_while_it_runs() -> None:
    files = {"pyproject.toml": '[build-system]\nrequires = ["versioningit"]\n[project]\nname = "shop"\n', "a.py": ""}
    (step,) = [step for step in recipe(files).steps if "git init" in step]
    assert "git tag v2.0.0" in step
    assert step.rstrip().endswith("rm -rf .git")


def test_modules_that_setup_py_imports_undeclared_are_there_when_it_runs() -> None:
    files = {"setup.py": "import numpy\nfrom setuptools import setup\nsetup(name='shop')\n"}
    (step,) = [step for step in recipe(files).steps if "--no-build-isolation-package shop" in step]
    assert "setuptools wheel numpy" in step


_NAMES = st.sampled_from(
    ["pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "Pipfile", "requirements.txt", "uv.lock",
     "poetry.lock", "requirements/tests.txt", "sub/pyproject.toml", "hatch.toml", "tox.toml"]
)  # fmt: skip
_TEXTS = st.one_of(
    st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace").decode()),
    st.sampled_from(
        [
            PYPROJECT,
            '[project]\nname = 3\ndependencies = "x"\n',
            '[dependency-groups]\ntest = "pytest"\n',
            "[project.optional-dependencies]\ntest = {a = 1}\n",
            "[tool]\nuv = 1\npoetry = []\n",
            '[tool.uv.workspace]\nmembers = ["*"]\n',
            "[testenv]\ndeps = -r requirements.txt\nextras = a\n",
            "-r requirements/tests.txt\n-e .\n-e ./sub[x]\n",
        ]
    ),
)


@given(st.dictionaries(_NAMES, _TEXTS, max_size=5))
def test_any_manifests_give_a_recipe_or_a_reason(files: dict[str, str]) -> None:
    try:
        made = recipe({**files, "shop.py": ""})
    except NoRecipe:
        return
    assert set(made.decided_by) <= {name.encode() for name in files} | {b"shop.py"}
    assert b"\0" not in b"".join(made.files.values())
