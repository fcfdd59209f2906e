"""The probe as a stage: done once for an image and a configuration, and nothing starts without it."""

from __future__ import annotations

import pytest

from evalpipe.manifest import read_manifest
from evalpipe.stages import probing
from evalpipe.stages.bench import frozen_runner
from evalpipe.stages.probing import PROBE_VERSION, ProbeFailed, probe_images, probe_records
from evalpipe.stages.sweeps import record_manifests
from evalpipe_tests.stages.sweeping import part_of
from evalpipe_tests.stages.workspaces import TestBench

LABELS = {"run": "run-1"}


@pytest.mark.slow
def test_an_image_is_probed_once_for_a_configuration(frozen: TestBench) -> None:
    part = part_of(frozen)
    (row,) = probe_images(frozen, part, LABELS)
    assert (row["findings"], row["tasks"], frozen.boxes) == ([], list(part.task_set.tasks), 2)
    assert row["image_digest"] == next(iter(part.task_set.tasks.values())).environment.image_digest
    assert probe_images(frozen, part, LABELS) == [row]
    assert frozen.boxes == 2
    (other,) = probe_images(frozen, part_of(frozen, "empty"), LABELS)
    assert other["configuration"] != row["configuration"]
    assert frozen.boxes == 4
    assert {labels["purpose"] for labels in frozen.sandbox.opened} == {"probe"}


def test_a_passed_probe_is_in_the_manifest(frozen: TestBench) -> None:
    part = part_of(frozen, "empty")
    (manifest,) = part.manifests.values()
    (image,) = manifest["environment"]["images"]
    row = {"image_digest": image, "probed_at": frozen.clock(), "probe_seconds": 1.5, "tasks": ["a", "b"]}
    for path in (frozen.lake.root / "manifests").rglob("*.json"):
        path.unlink()
    record_manifests(frozen, part, probe_records([row]))
    (path,) = (frozen.lake.root / "manifests").rglob("*.json")
    probe = read_manifest(path)["probe"][image]
    assert probe == {
        "version": PROBE_VERSION,
        "probed_at": row["probed_at"].isoformat(),
        "seconds": 1.5,
        "tasks": 2,
    }


@pytest.mark.slow
def test_a_failed_probe_says_what_was_seen_and_is_made_again(
    frozen: TestBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = part_of(frozen)
    with monkeypatch.context() as patch:
        # A line that the instance has stands for one of the answer.
        patch.setattr(probing, "distinctive_lines", lambda *_: frozenset({b"def noon():"}))
        with pytest.raises(ProbeFailed, match=r"(?s)no attempt of reference is started in .*answer_there: .*1 of 1"):
            probe_images(frozen, part, LABELS)
        boxes = frozen.boxes
        with pytest.raises(ProbeFailed):
            probe_images(frozen, part, LABELS)
    assert frozen.boxes == 2 * boxes
    (row,) = probe_images(frozen, part, LABELS)
    assert row["findings"] == []


@pytest.mark.slow
def test_a_tree_may_be_without_tests_only_when_they_are_hidden(
    frozen: TestBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository may have one file of tests, and the change's tests stand in it."""
    part = part_of(frozen)
    with monkeypatch.context() as patch:
        patch.setattr(probing, "hidden_paths", lambda _: [b"test_start.py"])
        (row,) = probe_images(frozen, part, LABELS)
    assert row["findings"] == []
    (place,) = (frozen.lake.root / "probes").rglob("*.parquet")
    place.unlink()
    nothing = {"arguments": ("--ignore=test_start.py",)}
    monkeypatch.setattr(probing, "frozen_runner", lambda task: frozen_runner(task).model_copy(update=nothing))
    with pytest.raises(ProbeFailed, match=r"tests_do_not_run: .*: completed: no test ran"):
        probe_images(frozen, part, LABELS)
