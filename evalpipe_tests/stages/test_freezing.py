"""Freezing as a stage: what goes in, what is left out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from evalpipe.stages.freezing import FreezeOutcome, FreezeReason, freeze_task_set, inline_fail_to_pass
from evalpipe.tasks import SampleTooLarge, Sampling, TaskSetError, load_task_set
from evalpipe.validation import ValidationClass
from evalpipe_tests.stages.workspaces import TestBench

pytestmark = pytest.mark.slow

NAMES = {"missing_names": ["hours"], "fail_to_pass": ["sub dir/test_höurs.py::test_hours"]}


def _freeze(bench: TestBench, name: str, sampling: Sampling | None = None) -> FreezeOutcome:
    return freeze_task_set(bench, name, [bench.repository], sampling, provisional=False)


def _bytes(bench: TestBench, name: str) -> dict[str, bytes]:
    folder = bench.workspace.task_sets_dir / name
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _change(bench: TestBench, table: str, candidate: str, columns: Mapping[str, Any]) -> None:
    """Put other values into the row of a candidate."""
    rows = [{**row, **columns} if candidate in row["candidate_id"] else row for row in bench.lake.rows(table, "clock")]
    assert rows != bench.lake.rows(table, "clock")
    bench.lake.write(table, rows, "clock")


def test_every_candidate_that_is_not_in_the_set_is_told_with_its_class(frozen: TestBench) -> None:
    outcome = _freeze(frozen, "again")
    assert len(outcome.record.tasks) == 2
    assert outcome.record.selection_rule == "all"
    assert [one.reason for one in outcome.left_out] == [ValidationClass.NO_SIGNAL]
    assert outcome.counts() == {"no_signal": 1}
    assert outcome.named() == []


def test_freezing_again_gives_the_same_bytes(frozen: TestBench) -> None:
    before = _bytes(frozen, "q")
    assert _freeze(frozen, "q").record.revision == load_task_set(frozen.workspace.task_sets_dir / "q").record.revision
    assert _bytes(frozen, "q") == before


def test_a_sample_tells_its_rule_and_whom_it_did_not_draw(frozen: TestBench) -> None:
    outcome = _freeze(frozen, "s", Sampling(1, 7))
    assert len(outcome.record.tasks) == 1
    assert outcome.record.selection_rule.startswith("sample of 1, seed 7: stratified by category and quarter")
    assert outcome.record.sample is not None
    assert (outcome.record.sample.size, outcome.record.sample.seed) == (1, 7)
    assert outcome.counts() == {"no_signal": 1, "not_sampled": 1}
    before = _bytes(frozen, "s")
    assert load_task_set(frozen.workspace.task_sets_dir / "s").record == outcome.record
    _freeze(frozen, "s", Sampling(1, 7))
    assert _bytes(frozen, "s") == before
    with pytest.raises(TaskSetError, match="choose a new name"):
        _freeze(frozen, "s", Sampling(1, 8))
    with pytest.raises(TaskSetError, match="choose a new name"):
        _freeze(frozen, "s")


def test_a_sample_of_more_than_there_are_writes_nothing(frozen: TestBench) -> None:
    with pytest.raises(SampleTooLarge, match="only 2 tasks could be frozen"):
        _freeze(frozen, "s", Sampling(3, 7))
    assert not (frozen.workspace.task_sets_dir / "s").exists()


def test_a_candidate_whose_patches_do_not_make_its_tree_is_left_out_and_told(frozen: TestBench) -> None:
    rows = {row["number"]: row for row in frozen.lake.rows("candidate_commits", "clock")}
    # As if a test file had been split off that stands in the sources' folder, and the parent were another one.
    _change(frozen, "candidate_commits", "clock-4-", {"parent": rows[4]["commit"]})
    outcome = _freeze(frozen, "again")
    assert len(outcome.record.tasks) == 1
    assert outcome.counts() == {"no_signal": 1, "patches_not_exact": 1}
    (told,) = outcome.named()
    assert told.candidate_id == rows[4]["candidate_id"]
    assert "reference patch is empty" in told.detail


def _compile_only(bench: TestBench, text: str, **columns: Any) -> None:
    _change(bench, "validated_tasks", "clock-4-", {"validation_class": "compile_only", **NAMES, **columns})
    _change(bench, "candidate_commits", "clock-4-", {"problem_text": text})


def _admit(bench: TestBench) -> None:
    bench.rewrite("data/repos/clock.yaml", "timeout_s: 60\n", "timeout_s: 60\n  admit_compile_only: true\n")


def test_a_compile_only_candidate_is_left_out_by_default(frozen: TestBench) -> None:
    _compile_only(frozen, "Give the day `hours`.")
    assert _freeze(frozen, "again").counts() == {"compile_only": 1, "no_signal": 1}


def test_a_compile_only_candidate_is_admitted_when_its_text_names_the_interface(frozen: TestBench) -> None:
    _compile_only(frozen, "Give the day `hours`.")
    _admit(frozen)
    outcome = _freeze(frozen, "again")
    assert outcome.counts() == {"no_signal": 1}
    tasks = load_task_set(frozen.workspace.task_sets_dir / "again").tasks
    assert [task.interface_named for task in tasks.values()] == [False, True]
    assert [task.fail_to_pass for task in tasks.values()][1] == tuple(NAMES["fail_to_pass"])


@pytest.mark.parametrize(
    ("text", "columns", "detail"),
    [
        ("Give the day 24 of them.", {}, "its problem text does not name hours"),
        ("Workinghours.", {}, "its problem text does not name hours"),
        ("hours", {"missing_names": ["minutes", "hours", "seconds"]}, "does not name minutes, seconds"),
        ("hours", {"missing_names": []}, "could not be read from their errors"),
        ("hours", {"missing_names": None}, "could not be read from their errors"),
        ("hours", {"fail_to_pass": []}, "could not be read from their errors"),
    ],
)
def test_a_compile_only_candidate_that_does_not_name_it_is_told(
    frozen: TestBench, text: str, columns: dict[str, Any], detail: str
) -> None:
    _compile_only(frozen, text, **columns)
    _admit(frozen)
    outcome = _freeze(frozen, "again")
    assert outcome.counts() == {"no_signal": 1, "interface_not_named": 1}
    (told,) = outcome.named()
    assert told.reason is FreezeReason.INTERFACE_NOT_NAMED
    assert detail in told.detail


def test_the_terse_text_of_a_compile_only_candidate_must_name_it_too(frozen: TestBench) -> None:
    _compile_only(frozen, "Give the day `hours`.")
    _admit(frozen)
    (candidate,) = [row for row in frozen.lake.rows("candidate_commits", "clock") if row["number"] == 4]
    terse = frozen.workspace.task_sets_dir / "again" / "terse" / f"{candidate['candidate_id']}.md"
    terse.parent.mkdir(parents=True)
    terse.write_text("The day is too short.\n")
    assert "its terse text does not name hours" in _freeze(frozen, "again").named()[0].detail


def test_a_terse_text_that_names_the_answer_stops_the_freeze(frozen: TestBench) -> None:
    (candidate,) = [row for row in frozen.lake.rows("candidate_commits", "clock") if row["number"] == 4]
    terse = frozen.workspace.task_sets_dir / "again" / "terse" / f"{candidate['candidate_id']}.md"
    terse.parent.mkdir(parents=True)
    terse.write_text("Edit clock.py.\n")
    with pytest.raises(TaskSetError, match=r"terse text names what the change is made of \(file 'clock\.py'\)"):
        _freeze(frozen, "again")


def test_to_admit_compile_only_runs_no_candidate_again(frozen: TestBench) -> None:
    from evalpipe.stages.validating import ValidationPass, is_validated

    def validated() -> list[bool]:
        rows = [row for row in frozen.lake.rows("candidate_commits", "clock") if row["reason"] == "kept"]
        return [is_validated(frozen, frozen.repository, row, ValidationPass.FIRST) for row in rows]

    assert validated() == [True, True, True]
    _admit(frozen)
    assert validated() == [True, True, True]


def test_a_candidate_with_nothing_but_tests_inside_its_sources_is_left_out_and_told(frozen: TestBench) -> None:
    frozen.rewrite("data/repos/clock.yaml", "runner:", "paths:\n  source: [test_noon.py]\nrunner:")
    outcome = _freeze(frozen, "again")
    assert outcome.counts() == {"no_signal": 1, "inline_tests": 1}
    (told,) = outcome.named()
    assert told.detail == "its tests stand inside its source files"


def test_fail_to_pass_tests_inside_changed_sources_of_rust_are_told_apart() -> None:
    tests = ["shop::lib::tests::a", "shop::bin/till::b", "shop::test/prices::c", "shop::doc::src/lib.rs - d (1)"]
    assert inline_fail_to_pass("cargo", [b"src/lib.rs"], tests) == set(tests[:2])
    tests_of_nextest = ["shop tests::a", "shop::bin/till b", "shop::prices c"]
    assert inline_fail_to_pass("nextest", [b"src/lib.rs"], tests_of_nextest) == set(tests_of_nextest[:2])
    assert inline_fail_to_pass("cargo", [], tests) == set()
    assert inline_fail_to_pass("cargo", None, tests) == set()
    assert inline_fail_to_pass("pytest", [b"src/lib.rs"], tests) == set()
