from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from evalpipe.environments.templates.python_commands import Installer
from evalpipe.environments.templates.python_parts import Folder, Group, LocalProject
from evalpipe.environments.templates.python_pyproject import dependency_groups
from evalpipe.environments.templates.python_sessions import session_groups
from evalpipe_tests.environments.templates.memory_tree import MemoryTree


def groups(pyproject: str = "", **files: str) -> dict[str, Group]:
    named = {name.replace("__", "/").replace("_DOT_", "."): text for name, text in files.items()}
    document, folder = tomllib.loads(pyproject), Folder(MemoryTree(named))
    known = dependency_groups(document.get("dependency-groups", {}), folder)
    return {group.name: group for group in session_groups(document, Installer(folder, known, ("cli", "toc")))}


def test_tox_ini_with_files_factors_references_and_extras() -> None:
    found = groups(
        tox_DOT_ini="""\
[tox]
envlist = py{39,311}, lint
[base]
deps =
    coverage[toml]
[testenv]
extras = cli, http2
deps =
    {[base]deps}
    -r{toxinidir}/requirements/tests.txt
    -c {tox_root}/pins.txt
    pytest{env:PYTEST_VERSION:>=7}
    py39: importlib-metadata  # of old
    !py39: tomli
    django42: Django>=4.2,<5
    lib @ https://example.com/lib.zip
[testenv:lint]
deps = ruff
[testenv:integration-tests]
deps = docker
""",
        requirements__tests_DOT_txt="hypothesis\n",
        pins_DOT_txt="attrs<25\n",
    )
    assert set(found) == {"testenv", "testenv:integration-tests"}
    wanted = found["testenv"].wanted
    assert wanted.requirements == (
        "coverage[toml]",
        "hypothesis",
        "pytest>=7",
        'importlib-metadata; python_version == "3.9"',
        "tomli",
    )
    assert wanted.constraints == ("attrs<25",)
    assert wanted.locals == (LocalProject("", ("cli", "http2")),)
    assert len(wanted.notes) == 1
    assert wanted.files == ("requirements/tests.txt", "pins.txt")


def test_tox_takes_dependency_groups_and_lives_in_several_files() -> None:
    pyproject = '[dependency-groups]\ntests = ["pytest", "pytest-cov"]\n'
    expected = ("pytest", "pytest-cov")
    ini = "[testenv]\ndependency_groups = tests\n"
    assert groups(pyproject, tox_DOT_ini=ini)["testenv"].wanted.requirements == expected
    assert groups(pyproject, setup_DOT_cfg=ini)["testenv"].wanted.requirements == expected
    toml = '[env_run_base]\ndependency_groups = ["tests"]\n'
    assert groups(pyproject, tox_DOT_toml=toml)["env_run_base"].wanted.requirements == expected
    native = pyproject + '[tool.tox.env_run_base]\ndeps = ["pytest"]\n[tool.tox.env.lint]\ndeps = ["ruff"]\n'
    assert {name: group.wanted.requirements for name, group in groups(native).items()} == {"env_run_base": ("pytest",)}
    legacy = pyproject + '[tool.tox]\nlegacy_tox_ini = """\n[testenv]\ndeps = pytest\n"""\n'
    assert groups(legacy)["testenv"].wanted.requirements == ("pytest",)


def test_nox_sessions_are_read_and_never_run() -> None:
    found = groups(
        '[dependency-groups]\ntest = ["pretend"]\n',
        noxfile_DOT_py="""\
import nox
raise SystemExit
@nox.session(python=["3.9", "3.12"])
def tests(session):
    session.install("-r", "tests/requirements.txt", "-e", ".[cli]")
    session.install("pytest", f"django=={session.python}", "--no-deps")
    session.install(*nox.project.dependency_groups(PYPROJECT, "test"))
@nox.session
def lint(session):
    session.install("ruff")
""",
        tests__requirements_DOT_txt="hypothesis",
    )
    assert set(found) == {"tests"}
    assert found["tests"].wanted.requirements == ("hypothesis", "pytest", "pretend")
    assert found["tests"].wanted.locals == (LocalProject("", ("cli",)),)


def test_what_commands_of_tox_install_before_the_tests_run() -> None:
    found = groups(
        tox_DOT_ini="""\
[testenv]
skip_install = true
deps = pytest
commands =
    {envpython} -m pip install -e '.[d]' freezegun
    coverage erase
    pytest tests {posargs}
    pip install -e .[jupyter]
    pytest tests -m jupyter
"""
    )
    assert found["testenv"].wanted.requirements == ("pytest", "freezegun")
    assert found["testenv"].wanted.locals == (LocalProject("", ("d",)),)


def test_a_session_that_installs_nothing_is_no_group() -> None:
    assert groups(tox_DOT_ini="[testenv]\ncommands = pytest\n") == {}


@given(st.text(alphabet="abc[]{}:=-,!;\n #py39./", max_size=120))
def test_any_deps_of_tox_can_be_read(text: str) -> None:
    groups(tox_DOT_ini="[testenv]\ndeps =\n" + "".join(f"    {line}\n" for line in text.splitlines()))
