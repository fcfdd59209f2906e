from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from evalpipe.environments.templates.python_parts import Folder, LocalProject, Wanted
from evalpipe.environments.templates.python_poetry import pipfile_groups, poetry_groups, table_wanted
from evalpipe_tests.environments.templates.memory_tree import MemoryTree

TOP = Folder(MemoryTree({}))


def read(toml: str) -> Wanted:
    return table_wanted(tomllib.loads(toml), "here", TOP)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"),
        ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1", ">=1,<2"),
        ("~=1.4", "~=1.4"),
        ("*", ""),
        ("1.2.3", "==1.2.3"),
        ("1.2.*", "==1.2.*"),
        ("=1.2", "==1.2"),
        (">=1.2, <2.0, !=1.5", "!=1.5,<2.0,>=1.2"),
        (">=1.2 <2.0", "<2.0,>=1.2"),
        ("^2.0a1", ">=2.0a1,<3"),
        ("^1.0 || ^2.0", ""),
    ],
)
def test_constraints_of_poetry(constraint: str, expected: str) -> None:
    (requirement,) = read(f'lib = "{constraint}"').requirements
    assert Requirement(requirement).specifier == SpecifierSet(expected)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=3), st.sampled_from("^~"))
def test_a_caret_and_a_tilde_allow_the_version_itself_and_no_next_major(numbers: list[int], sign: str) -> None:
    version = ".".join(map(str, numbers))
    (requirement,) = read(f'lib = "{sign}{version}"').requirements
    allowed = Requirement(requirement).specifier
    assert allowed.contains(Version(version))
    assert not allowed.contains(Version(f"{numbers[0] + 1}.0"))


def test_tables_of_poetry() -> None:
    found = read("""\
python = "^3.9"
celery = {version = "^5.3", extras = ["redis", "auth"]}
tomli = {version = "^2", python = "<3.11"}
colorama = {version = "*", markers = "sys_platform == 'win32'"}
maybe = {version = "^1", optional = true}
core = {path = "libs/core", develop = true}
forked = {git = "https://example.com/team/forked.git", branch = "main"}
numpy = [{version = "^1.26", python = "<3.12"}, {version = "^2", python = "^3.12"}]
""")
    assert found.requirements == (
        "celery[auth,redis]<6,>=5.3",
        'tomli<3,>=2; python_full_version < "3.11"',
        'colorama; sys_platform == "win32"',
        'numpy<2,>=1.26; python_full_version < "3.12"',
        'numpy<3,>=2; python_full_version >= "3.12" and python_full_version < "4"',
    )
    assert found.locals == (LocalProject("libs/core"),)
    assert len(found.notes) == 1


def test_groups_old_and_new() -> None:
    document = tomllib.loads("""\
[dev-dependencies]
black = "*"
[group.test.dependencies]
pytest = "^8"
[group.docs]
optional = true
include-groups = ["test"]
[group.docs.dependencies]
sphinx = "*"
""")
    assert {group.name: group.wanted.requirements for group in poetry_groups(document, TOP)} == {
        "dev": ("black",),
        "test": ("pytest<9,>=8",),
        "docs": ("sphinx", "pytest<9,>=8"),
    }


def test_pipfiles() -> None:
    document = tomllib.loads("""\
[packages]
flask = "*"
mine = {editable = true, path = "."}
[dev-packages]
pytest = {version = ">=7", markers = "python_version >= '3.8'"}
""")
    runs, develops = pipfile_groups(document, TOP)
    assert runs.wanted.requirements == ("flask",)
    assert runs.wanted.locals == (LocalProject(""),)
    assert develops.wanted.requirements == ('pytest>=7; python_version >= "3.8"',)
