"""A change whose tests do not even import before it: from the run that finds its names to a verdict on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.stages.freezing import FreezeReason, freeze_task_set
from evalpipe.stages.grading_rows import grade_patch
from evalpipe.stages.images import build_images
from evalpipe.stages.judging import judge_candidates
from evalpipe.stages.mining import mine_repository
from evalpipe.stages.validating import ValidationPass
from evalpipe.tasks import load_task_set
from evalpipe_tests.history.builder import Builder
from evalpipe_tests.stages.conftest import validate_all
from evalpipe_tests.stages.workspaces import FILES, TestBench

_NOON = b"def noon():\n    return 12\n"
_MINUTES = b"\n\ndef minutes():\n    return 60\n"
_SECONDS = b"\n\ndef seconds():\n    return 3600\n"
_TEST = b"from clock import %s\n\n\ndef test_%s():\n    assert %s() == %d\n"


@pytest.fixture
def judged(tmp_path: Path, environment: Path) -> TestBench:
    """A workspace of two changes that add a function and its test; only the first one's text names the function."""
    root = tmp_path / "workspace"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    builder = Builder(root / "source.git")
    builder.commit({b"clock.py": _NOON, b"test_noon.py": _TEST % (b"noon", b"noon", b"noon", 12)}, "Start")
    files = {b"clock.py": _NOON + _MINUTES, b"test_minutes.py": _TEST % (b"minutes", b"minutes", b"minutes", 60)}
    builder.commit(files, "Add a function `minutes` to clock (#1)")
    files = {
        b"clock.py": _NOON + _MINUTES + _SECONDS,
        b"test_seconds.py": _TEST % (b"seconds", b"seconds", b"seconds", 3600),
    }
    builder.commit(files, "Tell how long an hour is (#2)")
    bench = TestBench(root, environment)
    mine_repository(bench, bench.repository)
    build_images(bench, bench.repository)
    for validation_pass in ValidationPass:
        validate_all(bench, validation_pass)
        bench.days_later(1)
    judge_candidates(bench, bench.repository)
    return bench


@pytest.mark.slow
def test_a_task_whose_text_names_its_interface_is_admitted_and_graded(judged: TestBench) -> None:
    rows = judged.lake.rows("validated_tasks", "clock")
    assert [row["validation_class"] for row in rows] == ["compile_only", "compile_only"]
    assert [row["missing_names"] for row in rows] == [["minutes"], ["seconds"]]
    judged.rewrite("data/repos/clock.yaml", "timeout_s: 60\n", "timeout_s: 60\n  admit_compile_only: true\n")
    outcome = freeze_task_set(judged, "named", [judged.repository], provisional=False)
    (told,) = outcome.named()
    assert (told.candidate_id, told.reason) == (rows[1]["candidate_id"], FreezeReason.INTERFACE_NOT_NAMED)
    assert told.detail == "its problem text does not name seconds"
    task_set = load_task_set(judged.workspace.task_sets_dir / "named")
    (task,) = task_set.tasks.values()
    assert task.interface_named
    assert task.fail_to_pass == ("test_minutes.py::test_minutes",)
    graded = [grade_patch(judged, task, patch, {})["verdict"] for patch in (task_set.gold_patch(task.task_id), b"")]
    assert graded == ["resolved", "fail_to_pass_failed"]
