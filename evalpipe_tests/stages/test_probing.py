"""The probe as a stage: done once for an image and a configuration, and nothing starts without it."""

from __future__ import annotations

import pytest

from evalpipe.stages import probing
from evalpipe.stages.probing import ProbeFailed, probe_images
from evalpipe_tests.stages.sweeping import part_of
from evalpipe_tests.stages.workspaces import TestBench

LABELS = {"run": "run-1"}


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
