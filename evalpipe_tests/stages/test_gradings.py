"""Grades as a stage: one verdict for each patch, calibration, and what a report gathers."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.grading import verdict_key
from evalpipe.sandbox import EngineFault
from evalpipe.stages.agent_programs import adapter_for
from evalpipe.stages.calibrating import calibrate_task, calibration_rows, is_calibrated
from evalpipe.stages.gradings import AttemptMissing, grade_sample
from evalpipe.stages.reporting import gather_results
from evalpipe.stages.sweeps import (
    load_sweep_task_set,
    sample_keys,
)
from evalpipe_tests.agents.adapters import ShellAgent
from evalpipe_tests.stages.sweeping import (
    BREAK,
    MEND,
    first_key,
    part_of,
    rows_of,
    run,
    with_faults,
)
from evalpipe_tests.stages.workspaces import CountingSandbox, TestBench


@pytest.mark.slow
def test_grade_of_a_sample_is_kept_with_its_evidence(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    with pytest.raises(AttemptMissing, match="evalpipe run spring"):
        grade_sample(frozen, part, key, {})
    run(frozen, part, BREAK, key)
    row, new = grade_sample(frozen, part, key, {"run": "r"})
    assert new
    assert (row["verdict"], row["resolved"], row["counts"]) == ("resolved", True, True)
    assert (row["fail_to_pass_passed"], row["fail_to_pass_total"]) == (1, 1)
    assert row["ignored_paths"] == [b"conftest.py"]
    boxes = frozen.boxes
    assert grade_sample(frozen, part, key, {}) == (frozen.lake.rows("graded_results", *part.place(key))[0], False)
    assert frozen.boxes == boxes


@pytest.mark.slow
def test_same_patch_is_graded_once_whoever_made_it(frozen: TestBench) -> None:
    part, other = part_of(frozen), part_of(frozen, "empty")
    for one, number in ((part, 1), (part, 2), (other, 1)):
        run(frozen, one, MEND, first_key(frozen, number))
    boxes = frozen.boxes
    verdicts = [
        grade_sample(frozen, one, first_key(frozen, number), {})[0]["verdict"]
        for one, number in ((part, 1), (part, 2), (other, 1))
    ]
    assert verdicts == ["resolved"] * 3
    assert frozen.boxes == boxes + 1


@pytest.mark.slow
def test_regrading_runs_no_agent(frozen: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    part, key = part_of(frozen), first_key(frozen)
    run(frozen, part, MEND, key)
    first, _ = grade_sample(frozen, part, key, {})
    monkeypatch.setitem(verdict_key.__globals__, "GRADER_VERSION", "next")
    opened = len(frozen.sandbox.opened)
    second, new = grade_sample(frozen, part, key, {})
    assert new
    assert second["verdict_key"] != first["verdict_key"]
    assert [labels["purpose"] for labels in frozen.sandbox.opened[opened:]] == ["grading"]
    assert len(rows_of(frozen, part, key)) == 1


@pytest.mark.slow
def test_a_regrading_makes_each_verdict_again_and_once(frozen: TestBench) -> None:
    part = part_of(frozen)
    for number in (1, 2):
        run(frozen, part, MEND, first_key(frozen, number))
        grade_sample(frozen, part, first_key(frozen, number), {})
    began, boxes = frozen.clock(), frozen.boxes
    rows = [grade_sample(frozen, part, first_key(frozen, number), {}, not_before=began) for number in (1, 2)]
    assert [(row["verdict"], new) for row, new in rows] == [("resolved", True)] * 2
    assert all(row["graded_at"] > began for row, _ in rows)
    assert frozen.boxes == boxes + 1
    assert grade_sample(frozen, part, first_key(frozen), {}, not_before=began) == (rows[0][0], False)
    assert grade_sample(frozen, part, first_key(frozen), {})[1] is False


@pytest.mark.parametrize(
    ("adapter", "verdict", "counts"),
    [
        (ShellAgent("true"), "not_graded", True),
        (ShellAgent("exit 1"), "not_graded", True),
        (ShellAgent("mkdir 'git~1'; touch 'git~1/x'"), "patch_rejected", True),
        (ShellAgent("ln -s /etc/passwd x"), "patch_rejected", True),
        (ShellAgent("head -c 10485760 /dev/urandom > big"), "patch_rejected", True),
    ],
    ids=["empty", "crashed", "unreadable", "unsafe", "too_large"],
)
@pytest.mark.slow
def test_attempt_without_a_patch_to_run_opens_no_box_to_grade(
    frozen: TestBench, adapter: ShellAgent, verdict: str, counts: bool
) -> None:
    part, key = part_of(frozen), first_key(frozen)
    run(frozen, part, adapter, key)
    boxes = frozen.boxes
    row, _ = grade_sample(frozen, part, key, {})
    assert (row["verdict"], row["resolved"], row["counts"], frozen.boxes) == (verdict, False, counts, boxes)


@pytest.mark.slow
def test_invalid_attempt_is_not_counted_and_graded_anew_when_it_was_repeated(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    with_faults(frozen, EngineFault("x"))
    run(frozen, part, MEND, key)
    row, _ = grade_sample(frozen, part, key, {})
    assert (row["verdict"], row["counts"]) == ("not_graded", False)
    run(frozen, part, MEND, key)
    row, new = grade_sample(frozen, part, key, {})
    assert (row["verdict"], row["counts"], row["attempt"], new) == ("resolved", True, 2, True)


def test_grade_taken_while_the_attempt_ran_is_replaced_when_it_ended(frozen: TestBench) -> None:
    part, key = part_of(frozen), first_key(frozen)
    row, _ = run(frozen, part, ShellAgent("true"), key)
    frozen.lake.write("agent_runs", [{**row, "outcome": "interrupted"}], *part.place(key))
    assert grade_sample(frozen, part, key, {})[0]["counts"] is False
    frozen.lake.write("agent_runs", [row], *part.place(key))
    graded, new = grade_sample(frozen, part, key, {})
    assert (graded["outcome"], graded["counts"], new) == ("empty_patch", True, True)


@pytest.mark.slow
def test_calibration_resolves_the_reference_and_not_the_empty_patch(frozen: TestBench) -> None:
    task_set = load_sweep_task_set(frozen, frozen.sweep)
    task_id = next(iter(task_set.tasks))
    assert calibration_rows(frozen, task_set, task_id) == []
    assert not is_calibrated([])
    rows = calibrate_task(frozen, task_set, task_id, {})
    assert [(row["patch"], row["resolved"]) for row in rows] == [("reference", True)] * 3 + [("empty", False)] * 3
    assert is_calibrated(rows)
    assert not is_calibrated([{**rows[0], "resolved": False}, *rows[1:]])
    assert not is_calibrated([*rows[:5], {**rows[5], "resolved": True}])
    boxes = frozen.boxes
    assert boxes == 6
    assert len(calibrate_task(frozen, task_set, task_id, {})) == 6
    assert frozen.boxes == boxes


@pytest.mark.slow
def test_a_calibration_of_another_grader_or_image_is_none(frozen: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    task_set = load_sweep_task_set(frozen, frozen.sweep)
    task_id = next(iter(task_set.tasks))
    rows = calibrate_task(frozen, task_set, task_id, {})
    assert calibration_rows(frozen, task_set, task_id) == rows
    with monkeypatch.context() as patch:
        patch.setitem(verdict_key.__globals__, "GRADER_VERSION", "next")
        assert calibration_rows(frozen, task_set, task_id) == []
    place = (task_set.record.name, task_set.record.revision[:16], task_id)
    older = [{name: value for name, value in row.items() if name != "verdict_key"} for row in rows]
    frozen.lake.write("calibration", older, *place)
    assert calibration_rows(frozen, task_set, task_id) == []
    boxes = frozen.boxes
    assert is_calibrated(calibrate_task(frozen, task_set, task_id, {}))
    assert frozen.boxes == boxes + 6


@pytest.mark.slow
def test_controls_give_all_and_nothing_and_the_report_needs_no_engine(frozen: TestBench, environment: Path) -> None:
    for name in ("reference", "empty"):
        part = part_of(frozen, name)
        adapter = adapter_for(frozen, frozen.agent(name), part.task_set)
        for key in sample_keys(frozen.sweep, part.task_set):
            run(frozen, part, adapter, key)
            grade_sample(frozen, part, key, {})

    class NoEngine(TestBench):
        @property
        def sandbox(self) -> CountingSandbox:
            raise AssertionError("a report needs no sandbox")

    bench = NoEngine(frozen.workspace.root, environment)
    agents = {name: bench.agent(name) for name in ("reference", "empty")}
    results = gather_results(bench, bench.sweep, agents)
    rows = results.graded.to_pylist()
    assert {(row["agent"], row["resolved"]) for row in rows} == {("reference", True), ("empty", False)}
    assert len(rows) == 2 * 2 * 2
    assert set(results.manifests) == {("reference", "original"), ("empty", "original")}
    assert dict(results.mining)["kept"] == 3
    assert dict(results.validation)["valid"] == 2
    assert [task.provisional for task in results.tasks] == [False, False]

    bench.rewrite("data/sweeps/spring.yaml", "samples: 2", "samples: 1")
    assert len(gather_results(bench, bench.sweep, agents).graded) == 2 * 2
    bench.rewrite("data/agents/empty.yaml", "adapter: empty", "adapter: empty\nmodel_version: other")
    agents["empty"] = bench.agent("empty")
    changed = gather_results(bench, bench.sweep, agents)
    assert {row["agent"] for row in changed.graded.to_pylist()} == {"reference"}
