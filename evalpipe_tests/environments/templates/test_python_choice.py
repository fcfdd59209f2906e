from __future__ import annotations

from evalpipe.environments.templates.python_choice import Choice, choose
from evalpipe.environments.templates.python_parts import Folder, LocalProject
from evalpipe.environments.templates.python_project import read_project
from evalpipe_tests.environments.templates.memory_tree import MemoryTree

BUILD = '[build-system]\nrequires = ["flit_core"]\n[project]\nname = "shop"\n'


def chosen(files: dict[str, str], *packages: str, folders: tuple[str, ...] = (".",)) -> Choice:
    top = Folder(MemoryTree(files))
    return choose([read_project(top.below(folder)) for folder in folders], packages)


def names(choice: Choice) -> list[str]:
    return [group.name for group in choice.groups]


def test_groups_for_tests_come_from_every_source_and_nothing_else_does() -> None:
    choice = chosen(
        {
            "pyproject.toml": BUILD
            + '[dependency-groups]\ntests = ["pytest"]\ndocs = ["sphinx"]\ndev = ["pytest", "tox"]\n'
            + '[project.optional-dependencies]\ntest = ["mock"]\nlint = ["ruff"]\n',
            "tox.ini": "[testenv]\ndeps = freezegun\n",
            "requirements/tests.txt": "hypothesis\n",
            "requirements/docs.txt": "sphinx\n",
        },
        "teams-own",
    )
    assert names(choice) == ["tests", "testenv", "test", "requirements/tests.txt"]
    assert choice.wanted.requirements == ("teams-own", "pytest", "freezegun", "hypothesis")
    assert choice.wanted.locals == (LocalProject("", ("test",)),)


def test_the_plain_name_is_taken_before_longer_ones_of_the_same_source() -> None:
    choice = chosen({"pyproject.toml": BUILD + '[dependency-groups]\ntest = ["pytest"]\ntest-gui = ["pyqt"]\n'})
    assert names(choice) == ["test"]
    assert names(chosen({"pyproject.toml": BUILD + '[dependency-groups]\nunit-test = ["pytest"]\n'})) == ["unit-test"]


def test_development_groups_stand_in_and_then_plain_requirements() -> None:
    dev = '[dependency-groups]\ndev = ["pytest"]\ndocs = ["sphinx"]\n'
    assert names(chosen({"pyproject.toml": BUILD + dev, "requirements.txt": "x"})) == ["dev"]
    assert names(chosen({"pyproject.toml": BUILD, "requirements.txt": "x"})) == ["requirements.txt"]
    assert names(chosen({"pyproject.toml": BUILD})) == []


def test_a_development_group_comes_along_when_only_it_brings_pytest() -> None:
    groups = '[dependency-groups]\ntest = ["coverage"]\ndev = ["pytest", "pytest-mock"]\n'
    assert names(chosen({"pyproject.toml": BUILD + groups})) == ["test", "dev"]


def test_what_a_pipeline_installs_is_added_and_takes_the_place_of_nothing() -> None:
    workflow = "jobs: {t: {steps: [{run: 'pip install .[cli] mock && pytest'}]}}\n"
    groups = '[dependency-groups]\ndev = ["pytest"]\n[project.optional-dependencies]\ncli = []\n'
    choice = chosen({"pyproject.toml": BUILD + groups, ".github/workflows/ci.yml": workflow})
    assert names(choice) == ["dev", ".github/workflows/ci.yml"]
    assert choice.wanted.requirements == ("pytest", "mock")
    assert choice.wanted.locals == (LocalProject("", ("cli",)),)


def test_requirements_that_name_the_project_are_the_project_in_place_with_all_extras_they_lead_to() -> None:
    choice = chosen(
        {
            "pyproject.toml": BUILD
            + '[dependency-groups]\ntest = ["Shop[socks] >= 2", "pytest"]\n'
            + '[project.optional-dependencies]\nsocks = ["pysocks"]\n'
            + 'dev = ["shop[tests]"]\ntests = ["shop[cli]", "mock"]\n'
            + "cli = []\n"
        }
    )
    assert choice.wanted.requirements == ("pytest",)
    (local,) = choice.wanted.locals
    assert set(local.extras) == {"socks", "tests", "cli"}


def test_extras_that_name_each_other_come_to_an_end() -> None:
    choice = chosen(
        {"pyproject.toml": BUILD + '[project.optional-dependencies]\ntest = ["shop[all]"]\nall = ["shop[test]"]\n'}
    )
    assert {extra for local in choice.wanted.locals for extra in local.extras} == {"test", "all"}


def test_a_project_that_is_no_package_has_its_dependencies_as_requirements() -> None:
    plain = chosen({"requirements.txt": "flask\n", "requirements-dev.txt": "-r requirements.txt\npytest\n"})
    assert plain.wanted.requirements == ("flask", "pytest")
    assert plain.wanted.locals == ()
    script = '[project]\nname = "app"\ndependencies = ["flask"]\n[dependency-groups]\ndev = ["pytest"]\n'
    assert chosen({"pyproject.toml": script}).wanted.requirements == ("flask", "pytest")
    poetry = '[build-system]\n[tool.poetry]\npackage-mode = false\ndependencies = {python = "^3.9", flask = "^3"}\n'
    assert chosen({"pyproject.toml": poetry}).wanted.requirements == ("flask<4,>=3",)


def test_projects_of_one_tree_stand_for_each_other() -> None:
    core = '[build-system]\n[project]\nname = "core"\n[dependency-groups]\ntest = ["pytest", "app[x]"]\n'
    app = '[build-system]\n[project]\nname = "app"\n[project.optional-dependencies]\nx = ["core"]\n'
    choice = chosen({"a/pyproject.toml": core, "b/pyproject.toml": app}, folders=("a", "b"))
    assert choice.wanted.requirements == ("pytest",)
    assert set(choice.wanted.locals) == {LocalProject("a"), LocalProject("b", ("x",))}
