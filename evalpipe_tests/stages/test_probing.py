"""The probe as a stage: done once for an image and a configuration, and nothing starts without it."""

from __future__ import annotations

import dataclasses

import pytest

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


def test_a_failed_probe_says_what_was_seen_and_is_made_again(frozen: TestBench) -> None:
    part = part_of(frozen)
    narrow = part.sweep.model_copy(update={"limits": part.sweep.limits.model_copy(update={"timeout_s": 0.01})})
    hurried = dataclasses.replace(part, sweep=narrow)
    with pytest.raises(ProbeFailed, match=r"(?s)no attempt of reference is started in .*did_not_end.*tests_do_not_run"):
        probe_images(frozen, hurried, LABELS)
    boxes = frozen.boxes
    with pytest.raises(ProbeFailed):
        probe_images(frozen, hurried, LABELS)
    assert frozen.boxes == 2 * boxes
    (row,) = probe_images(frozen, part, LABELS)
    assert row["findings"] == []
