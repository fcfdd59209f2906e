from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from evalpipe.config import Workspace
from evalpipe.history import Repository, update_mirror
from evalpipe.lake import Lake
from evalpipe.stages.bench import Workbench
from evalpipe.stages.mining import mine_repository
from evalpipe.stages.side_by_side import mine_ahead
from evalpipe_tests.history.builder import Builder

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "data/repos").mkdir(parents=True)
    (tmp_path / "workspace.yaml").write_text("load_from: []\n")
    for name in ("one", "two", "gone"):
        if name != "gone":
            source = Builder(tmp_path / f"{name}.git")
            source.commit({b"a.py": b"1\n"}, "Start")
            source.commit({b"a.py": b"2\n", b"test_a.py": b"2\n"}, f"Repair {name}")
        (tmp_path / f"data/repos/{name}.yaml").write_text(f"source: {name}.git\nrunner:\n  name: pytest\n")
    return Workspace(tmp_path)


def mined(workspace: Workspace) -> dict[str, list[str]]:
    lake = Lake(workspace.lake_dir)
    return {
        name: [row["subject"] for row in lake.rows("candidate_commits", name)]
        for name in ("one", "two", "gone")
        if lake.has("candidate_commits", name)
    }


def test_repositories_are_mined_and_one_that_fails_costs_no_other(
    workspace: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    bench = Workbench(workspace)
    mine_ahead(bench, ["gone", "one", "two"])
    assert mined(workspace) == {"one": ["Start", "Repair one"], "two": ["Start", "Repair two"]}
    assert capfd.readouterr() == ("", "")
    assert bench.just_fetched == {"one", "two"}


def test_mirror_is_fetched_once_for_each_time_that_it_is_mined(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def noted(source: str, mirror: Path) -> Repository:
        fetched.append(mirror.stem)
        return update_mirror(source, mirror)

    monkeypatch.setattr("evalpipe.stages.mining.update_mirror", noted)
    bench = Workbench(workspace)
    mine_ahead(bench, ["one", "two"])
    for name in ("one", "two", "one"):
        assert mine_repository(bench, workspace.load_repository(name)).changes == 2
    assert fetched == ["one"]


def test_single_repository_is_left_to_its_run(workspace: Workspace) -> None:
    mine_ahead(Workbench(workspace), ["one"])
    assert mined(workspace) == {}


def test_interrupt_ends_the_processes(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_sentinels: object) -> list[object]:
        raise KeyboardInterrupt

    monkeypatch.setattr("evalpipe.stages.side_by_side.connection.wait", stop)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        mine_ahead(Workbench(workspace), ["one", "two"])
    assert time.monotonic() - began < 20
    assert multiprocessing.active_children() == []
