"""Validation as a stage: two passes on two days, done once, and judged only as they would be run now."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from evalpipe.environments import BuildStatus
from evalpipe.stages.freezing import freeze_task_set
from evalpipe.stages.images import EnvironmentNotReady, build_images
from evalpipe.stages.judging import judge_candidates
from evalpipe.stages.mining import stored_mining_funnel, stored_validation_funnel
from evalpipe.stages.validating import (
    FirstPassMissing,
    SecondPassTooEarly,
    ValidationPass,
    second_pass_due,
    validate_candidate,
)
from evalpipe.tasks import TaskSetError, frozen_sets, load_task_set
from evalpipe_tests.stages.conftest import kept, validate_all
from evalpipe_tests.stages.workspaces import DAY_ONE, TestBench

FIRST, SECOND = ValidationPass.FIRST, ValidationPass.SECOND
NOON = "test_noon.py::test_noon"


def _classes(bench: TestBench) -> dict[str, str]:
    rows = {row["candidate_id"]: row["validation_class"] for row in bench.lake.rows("validated_tasks", "clock")}
    numbers = {str(row["candidate_id"]): f"#{row['number']}" for row in kept(bench)}
    return {numbers[candidate]: found for candidate, found in rows.items()}


def test_every_change_has_a_row_and_candidates_are_kept(mined: TestBench) -> None:
    rows = mined.lake.rows("candidate_commits", "clock")
    assert len(rows) == 6
    assert [row["number"] for row in rows if row["reason"] == "kept"] == [1, 4, 5]
    assert dict(stored_mining_funnel(mined, ["clock"]))["kept"] == 3
    assert sum(count for _, count in stored_mining_funnel(mined, ["clock"])) == 6


@pytest.mark.slow
def test_two_passes_on_two_days_make_tasks(mined: TestBench) -> None:
    assert validate_all(mined, FIRST) == 3
    assert [row["validation_class"] for row in judge_candidates(mined, mined.repository)] == [
        "pending",
        "pending",
        "no_signal",
    ]
    with pytest.raises(SecondPassTooEarly, match="--same-day"):
        validate_all(mined, SECOND)
    assert not mined.lake.has("validation_runs", str(kept(mined)[0]["candidate_id"]), "second")

    mined.time.now = DAY_ONE.replace(hour=23, minute=59, second=0)
    assert not second_pass_due(mined, str(kept(mined)[0]["candidate_id"]))
    mined.time.now = DAY_ONE.replace(day=2, hour=0)
    assert second_pass_due(mined, str(kept(mined)[0]["candidate_id"]))
    assert validate_all(mined, SECOND) == 3

    boxes = mined.boxes
    assert validate_all(mined, FIRST) == validate_all(mined, SECOND) == 0
    assert mined.boxes == boxes == 3 * 2 * 2

    rows = judge_candidates(mined, mined.repository)
    assert _classes(mined) == {"#1": "valid", "#4": "valid", "#5": "no_signal"}
    assert dict(stored_validation_funnel(mined, ["clock"])) == {"valid": 2, "no_signal": 1}
    assert rows[0]["fail_to_pass"] == (NOON,)
    assert rows[0]["pass_to_pass"] == ("test_start.py::test_start",)
    assert rows[0]["provisional"] is False
    assert rows[0]["validated_on"] == ["2026-05-01", "2026-05-02"]
    runs = mined.lake.rows("validation_runs", str(kept(mined)[0]["candidate_id"]), "first")
    after = max(row["run_seconds"] for row in runs if row["side"] == "after")
    assert 0 < after <= rows[0]["after_seconds"]


@pytest.mark.slow
def test_both_passes_on_one_day_are_provisional_all_the_way(mined: TestBench) -> None:
    validate_all(mined, FIRST)
    assert validate_all(mined, SECOND, same_day=True) == 3
    rows = judge_candidates(mined, mined.repository)
    assert [row["provisional"] for row in rows] == [True, True, True]
    with pytest.raises(TaskSetError, match="one day"):
        freeze_task_set(mined, "q", [mined.repository], provisional=False)
    assert frozen_sets(mined.workspace.task_sets_dir) == []
    assert freeze_task_set(mined, "q", [mined.repository], provisional=True).record.provisional


def test_second_pass_before_any_first_is_too_early(mined: TestBench) -> None:
    with pytest.raises(FirstPassMissing, match="comes after the first"):
        validate_all(mined, SECOND, same_day=True)
    assert mined.boxes == 0


def test_day_is_that_of_utc(frozen: TestBench) -> None:
    candidate = str(kept(frozen)[0]["candidate_id"])
    east = dt.timezone(dt.timedelta(hours=14))
    frozen.time.now = DAY_ONE.replace(hour=13).astimezone(east)
    assert frozen.time.now.day == 2
    assert not second_pass_due(frozen, candidate)


@pytest.mark.slow
def test_passes_in_another_environment_or_configuration_do_not_count(frozen: TestBench) -> None:
    assert _classes(frozen)["#1"] == "valid"
    frozen.rewrite("data/repos/clock.yaml", "timeout_s: 60", "timeout_s: 61")
    judge_candidates(frozen, frozen.repository)
    assert set(_classes(frozen).values()) == {"pending"}

    # A first pass under the new configuration, later than the old second one, is no pair with it.
    frozen.days_later(9)
    validate_candidate(frozen, frozen.repository, kept(frozen)[0], FIRST, same_day=False, labels={})
    judge_candidates(frozen, frozen.repository)
    assert set(_classes(frozen).values()) == {"pending"}
    with pytest.raises(TaskSetError, match="nothing to freeze"):
        freeze_task_set(frozen, "next", [frozen.repository], provisional=True)


def test_failed_build_costs_its_candidates_and_says_why(mined: TestBench) -> None:
    mined.host_python.status = BuildStatus.FAILED
    mined.rewrite("data/repos/clock.yaml", "template: packages", "template: packages\n  setup: [make it]")
    (row,) = build_images(mined, mined.repository)
    assert (row["status"], row["image_digest"], row["log_tail"]) == ("failed", None, "the log")
    with pytest.raises(EnvironmentNotReady, match="the log"):
        validate_all(mined, FIRST)
    judged = judge_candidates(mined, mined.repository)
    assert {(found["validation_class"], found["evidence"]) for found in judged} == {("environment_failed", "the log")}
    assert mined.boxes == 0


def test_environment_that_is_gone_is_named(mined: TestBench) -> None:
    row = dict(mined.lake.rows("task_images", "clock")[0], image_digest="/gone/for/good")
    mined.lake.write("task_images", [row], "clock")
    with pytest.raises(EnvironmentNotReady, match=r"/gone/for/good.*evalpipe validate"):
        validate_all(mined, FIRST)


def test_missing_environment_says_what_to_run(mined: TestBench) -> None:
    mined.lake.path("task_images", "clock").unlink()
    with pytest.raises(EnvironmentNotReady, match="evalpipe validate"):
        validate_all(mined, FIRST)


def test_frozen_set_holds_what_was_validated(frozen: TestBench) -> None:
    loaded = load_task_set(frozen.workspace.task_sets_dir / "q")
    noon, hours = loaded.tasks.values()
    assert [noon.number, hours.number] == [1, 4]
    assert noon.fail_to_pass == (NOON,)
    assert noon.test_files == ("test_noon.py",)
    assert hours.test_files == ("sub%20dir/test_h%C3%B6urs.py",)
    assert noon.environment.image_digest == str(frozen.environment)
    assert noon.environment.test_timeout_s == 60
    assert noon.validated_on == ("2026-05-01", "2026-05-02")
    assert not loaded.record.provisional
    gold = loaded.gold_patch(noon.task_id)
    assert b"clock.py" in gold
    assert b"test_noon" not in gold
    assert noon.commit[:7] not in noon.problem.original


def test_freezing_again_gives_the_same_bytes_and_another_content_is_refused(frozen: TestBench) -> None:
    folder = frozen.workspace.task_sets_dir / "q"
    before = _bytes(folder)
    freeze_task_set(frozen, "q", [frozen.repository], provisional=False)
    assert _bytes(folder) == before
    (folder / "terse").mkdir()
    name = next(iter(load_task_set(folder).tasks))
    (folder / "terse" / f"{name}.md").write_text("Noon.\n")
    with pytest.raises(TaskSetError, match="choose a new name"):
        freeze_task_set(frozen, "q", [frozen.repository], provisional=False)
    (frozen.workspace.task_sets_dir / "q2" / "terse").mkdir(parents=True)
    (frozen.workspace.task_sets_dir / "q2" / "terse" / f"{name}.md").write_text("Noon.\n")
    freeze_task_set(frozen, "q2", [frozen.repository], provisional=False)
    assert json.loads((frozen.workspace.task_sets_dir / "q2" / "tasks" / f"{name}.json").read_bytes())["problem"][
        "terse"
    ] == ("Noon.\n")


def test_environment_built_after_judging_is_not_frozen(frozen: TestBench) -> None:
    row = dict(frozen.lake.rows("task_images", "clock")[0], image_digest="sha256:new")
    frozen.lake.write("task_images", [row], "clock")
    with pytest.raises(TaskSetError, match="run `evalpipe validate` first"):
        freeze_task_set(frozen, "other", [frozen.repository], provisional=False)


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
