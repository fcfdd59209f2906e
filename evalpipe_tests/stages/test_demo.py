"""The demo's own set is made again only when it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.stages.demo import forget_unusable_task_set
from evalpipe.tasks import frozen_sets, load_task_set
from evalpipe_tests.stages.workspaces import TestBench


@pytest.fixture
def folder(frozen: TestBench) -> Path:
    """The set of the workspace, under the repository's name, as the demo has it."""
    sets = frozen.workspace.task_sets_dir
    for name in ("candidate_commits", "task_images", "validated_tasks"):
        rows = frozen.lake.rows(name, "clock")
        frozen.lake.write(name, rows, "q")
    return sets / "q"


def _validate_in(bench: TestBench, images: list[str]) -> None:
    rows = bench.lake.rows("validated_tasks", "q")
    bench.lake.write("validated_tasks", [{**rows[0], "image_digest": image} for image in images], "q")


def test_a_set_whose_images_were_validated_last_stays(frozen: TestBench, folder: Path) -> None:
    (used,) = {task.environment.image_digest for task in load_task_set(folder).tasks.values()}
    # A candidate that is no task may have an image of its own, or none.
    _validate_in(frozen, [used, "sha256:other", ""])
    forget_unusable_task_set(frozen, "q")
    assert frozen_sets(folder.parent) == [folder]


def test_a_set_of_other_images_or_a_damaged_one_goes(frozen: TestBench, folder: Path) -> None:
    _validate_in(frozen, ["sha256:other"])
    forget_unusable_task_set(frozen, "q")
    assert frozen_sets(folder.parent) == []
    folder.mkdir(exist_ok=True)
    (folder / "task_set.json").write_bytes(b"{")
    forget_unusable_task_set(frozen, "q")
    assert not folder.exists()
