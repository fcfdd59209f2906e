"""The repository that the tests of mining begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe_tests.history.builder import Builder


@pytest.fixture
def clock(tmp_path: Path) -> Builder:
    """A repository with one commit."""
    builder = Builder(tmp_path / "source.git")
    builder.commit({b"README": b"clock\n", b"src/clock.py": b"0\n", b"pyproject.toml": b"[project]\n"}, "start")
    return builder
