"""The ids in expected.json follow the history, also when a change is added at its end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evalpipe.demo.build import build_demo_repository
from evalpipe_tests.demo import expectations, refresh_ids
from evalpipe_tests.demo.trees import git

STEP = """
[[step]]
key = "another"
do = "commit"
branch = "main"
author = "ada"
authored = 2026-10-05T12:00:00+02:00
message = "Start the build once more"
"""
CHANGE = {
    "commit": "not-known-yet",
    "subject": "Start the build once more",
    "number": None,
    "kept": False,
    "reason": "no_change",
    "shape": "direct",
}


@pytest.mark.slow
def test_a_change_added_at_the_end_gets_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(shutil.copytree(expectations.DEMO, tmp_path / "source"))
    monkeypatch.setattr(expectations, "DEMO", source)
    monkeypatch.setattr(refresh_ids, "DEMO", source)
    history = source / "history.toml"
    history.write_text(history.read_text("utf-8").replace("Tidy the labels", "Clean the labels") + STEP, "utf-8")
    expected = json.loads((source / "expected.json").read_bytes())
    expected["changes"].append(CHANGE)
    (source / "expected.json").write_text(json.dumps(expected), "utf-8")
    refresh_ids.main()
    tip = build_demo_repository(source, tmp_path / "repository")
    mainline = git(tmp_path / "repository", "rev-list", "--first-parent", "--reverse", "main").decode().split()
    assert expectations.expected_tip() == tip
    assert [commit for change in expectations.expected_changes() for commit in change.commits] == mainline


def test_another_subject_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(shutil.copytree(expectations.DEMO, tmp_path / "source"))
    monkeypatch.setattr(expectations, "DEMO", source)
    monkeypatch.setattr(refresh_ids, "DEMO", source)
    history = source / "history.toml"
    history.write_text(history.read_text("utf-8").replace("Release 1.2.0", "Release 1.3.0"), "utf-8")
    with pytest.raises(SystemExit, match=r"'Release 1\.2\.0' where the repository has 'Release 1\.3\.0'"):
        refresh_ids.main()
