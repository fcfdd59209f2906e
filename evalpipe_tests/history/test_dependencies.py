from __future__ import annotations

import pytest

from evalpipe.history.dependencies import dependencies_changed

PYPROJECT = b'[project]\nname = "x"\ndependencies = ["a>=1"]\n[tool.ruff]\nline-length = 100\n'
PACKAGE = b'{"name": "x", "version": "1", "dependencies": {"a": "1"}}'


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        (b"pyproject.toml", PYPROJECT, PYPROJECT.replace(b"a>=1", b"a>=2"), True),
        (b"pyproject.toml", PYPROJECT, PYPROJECT.replace(b"100", b"110"), False),
        (b"sub/pyproject.toml", PYPROJECT, PYPROJECT + b'[dependency-groups]\ntest = ["b"]\n', True),
        (b"pyproject.toml", PYPROJECT, b"broken = [", True),
        (b"pyproject.toml", b"", PYPROJECT, True),
        (b"pyproject.toml", PYPROJECT, b"\xff", True),
        (b"Cargo.toml", b'[dependencies]\na = "1"\n', b'[dependencies]\na = "2"\n', True),
        (b"Cargo.toml", b'[package]\nversion = "1"\n', b'[package]\nversion = "2"\n', False),
        (b"package.json", PACKAGE, PACKAGE.replace(b'"version": "1"', b'"version": "2"'), False),
        (b"package.json", PACKAGE, PACKAGE.replace(b'"a": "1"', b'"a": "2"'), True),
        (b"package.json", PACKAGE, b"[]", True),
        (b"setup.py", b"install_requires=['a']\n", b"install_requires=['b']\n", True),
        (b"setup.py", b"    'a>=1',\n", b"    'a>=2',\n", True),
        (b"setup.cfg", b"license = MIT\n", b"license = BSD\n", False),
        (b"requirements.txt", b"a\n", b"b\n", True),
        (b"go.mod", b"", b"module x\n", True),
    ],
)
def test_whether_a_manifest_changed_a_dependency(path: bytes, old: bytes, new: bytes, changed: bool) -> None:
    assert dependencies_changed(path, old, new) is changed
