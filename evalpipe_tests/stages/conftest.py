"""Workspaces at two stations of the way, made once; each test works on a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalpipe.stages.freezing import freeze_task_set
from evalpipe.stages.images import build_images
from evalpipe.stages.judging import judge_candidates
from evalpipe.stages.mining import mine_repository
from evalpipe.stages.validating import ValidationPass, validate_candidate
from evalpipe_tests.made_once import made_once
from evalpipe_tests.stages.workspaces import TestBench, lay_workspace


def kept(bench: TestBench) -> list[dict[str, object]]:
    """The candidates of the mined repository."""
    return [row for row in bench.lake.rows("candidate_commits", "clock") if row["reason"] == "kept"]


def validate_all(bench: TestBench, validation_pass: ValidationPass, *, same_day: bool = False) -> int:
    """Run a pass over every candidate; returns how many were run now."""
    config = bench.repository
    return sum(
        validate_candidate(bench, config, row, validation_pass, same_day=same_day, labels={}) for row in kept(bench)
    )


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "stages-environment", lambda folder: folder / "host")


@pytest.fixture(scope="session")
def mined_root(tmp_path_factory: pytest.TempPathFactory, environment: Path) -> Path:
    """A workspace that is mined, with its environment built."""

    def make(folder: Path) -> Path:
        root = folder / "workspace"
        lay_workspace(root)
        bench = TestBench(root, environment)
        mine_repository(bench, bench.repository)
        build_images(bench, bench.repository)
        return root

    return made_once(tmp_path_factory, "stages-mined", make)


@pytest.fixture(scope="session")
def frozen_root(tmp_path_factory: pytest.TempPathFactory, mined_root: Path, environment: Path) -> Path:
    """A workspace validated on two days, with the frozen set `q`."""

    def make(folder: Path) -> Path:
        root = folder / "workspace"
        shutil.copytree(mined_root, root)
        bench = TestBench(root, environment)
        validate_all(bench, ValidationPass.FIRST)
        bench.days_later(1)
        validate_all(bench, ValidationPass.SECOND)
        judge_candidates(bench, bench.repository)
        freeze_task_set(bench, "q", [bench.repository], provisional=False)
        return root

    return made_once(tmp_path_factory, "stages-frozen", make)


@pytest.fixture
def mined(mined_root: Path, tmp_path: Path, environment: Path) -> TestBench:
    shutil.copytree(mined_root, tmp_path / "workspace")
    return TestBench(tmp_path / "workspace", environment)


@pytest.fixture
def frozen(frozen_root: Path, tmp_path: Path, environment: Path) -> TestBench:
    shutil.copytree(frozen_root, tmp_path / "workspace")
    return TestBench(tmp_path / "workspace", environment)
