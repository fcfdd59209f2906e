from __future__ import annotations

import json

import pytest

from evalpipe.environments.recipe import NoRecipe
from evalpipe.environments.templates.python_locks import locked_versions
from evalpipe.environments.templates.python_parts import Folder
from evalpipe_tests.environments.templates.memory_tree import MemoryTree

UV = """\
version = 1
[[package]]
name = "shop"
version = "0.1"
source = { editable = "." }
[[package]]
name = "attrs"
version = "24.2.0"
source = { registry = "https://pypi.example.com/simple" }
[[package]]
name = "numpy"
version = "1.26.4"
source = { registry = "https://pypi.example.com/simple" }
resolution-markers = ["python_full_version < '3.10'"]
[[package]]
name = "numpy"
version = "2.1.0"
source = { registry = "https://pypi.example.com/simple" }
resolution-markers = ["python_full_version >= '3.12'", "python_full_version == '3.11.*'"]
[[package]]
name = "forked"
version = "1.0"
source = { git = "https://example.com/forked.git" }
"""
POETRY = """\
[[package]]
name = "Pygments"
version = "2.17.2"
optional = false
[[package]]
name = "forked"
version = "1.0"
[package.source]
type = "git"
url = "https://example.com/forked.git"
[[package]]
name = "zipp"
version = "3.17.0"
markers = "python_version < \\"3.10\\""
[[package]]
name = "zipp"
version = "3.20.0"
[package.markers]
main = "python_version >= \\"3.10\\""
dev = "python_version >= \\"3.10\\""
[metadata]
lock-version = "2.1"
"""


def constraints(name: str, text: str) -> tuple[str, ...]:
    found = locked_versions(Folder(MemoryTree({name: text})))
    assert found is not None
    assert found[0] == name
    return found[1]


def test_uv_lock() -> None:
    assert constraints("uv.lock", UV) == (
        "attrs==24.2.0",
        "numpy==1.26.4 ; python_full_version < '3.10'",
        "numpy==2.1.0 ; python_full_version >= '3.12'",
        "numpy==2.1.0 ; python_full_version == '3.11.*'",
    )


def test_poetry_lock() -> None:
    assert constraints("poetry.lock", POETRY) == (
        "pygments==2.17.2",
        'zipp==3.17.0 ; python_version < "3.10"',
        'zipp==3.20.0 ; python_version >= "3.10"',
    )


def test_pdm_lock_repeats_a_package_for_its_extras() -> None:
    text = """\
[[package]]
name = "coverage"
version = "7.4.0"
[[package]]
name = "coverage"
version = "7.4.0"
extras = ["toml"]
"""
    assert constraints("pdm.lock", text) == ("coverage==7.4.0",)


def test_pylock_of_pep_751() -> None:
    text = """\
lock-version = "1.0"
[[packages]]
name = "attrs"
version = "25.1.0"
marker = "python_version >= '3.9'"
[[packages]]
name = "mine"
directory = { path = "." }
"""
    assert constraints("pylock.toml", text) == ("attrs==25.1.0",)


def test_pipfile_lock() -> None:
    text = json.dumps({"default": {"flask": {"version": "==3.0.0"}}, "develop": {"x": {"git": "https://example.com"}}})
    assert constraints("Pipfile.lock", text) == ("flask==3.0.0",)


def test_several_versions_without_markers_constrain_nothing() -> None:
    text = '[[package]]\nname = "a"\nversion = "1"\n[[package]]\nname = "a"\nversion = "2"\n'
    assert constraints("poetry.lock", text) == ()


def test_no_lock_file() -> None:
    assert locked_versions(Folder(MemoryTree({"pyproject.toml": ""}))) is None


@pytest.mark.parametrize(
    ("name", "text"), [("uv.lock", "<<<<<<< HEAD\n"), ("Pipfile.lock", "[]"), ("pdm.lock", "package = 3")]
)
def test_a_damaged_lock_file_is_named(name: str, text: str) -> None:
    with pytest.raises(NoRecipe, match=name):
        locked_versions(Folder(MemoryTree({name: text})))
