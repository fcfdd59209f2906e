"""The whole way of a tiny workspace by the command line: what each command answers, and what status says next."""

import json
from collections.abc import Callable

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from evalpipe.pipeline.partitions import CANDIDATES
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace

pytestmark = pytest.mark.slow


def test_status_names_the_next_step_all_along_the_way(finished: Walk) -> None:
    assert finished.next_steps == {
        "init": ["evalpipe mine shop"],
        "mine": ["evalpipe validate shop"],
        "validate": ["evalpipe freeze tiny"],
        "freeze": ["evalpipe run small"],
        "run": ["evalpipe grade small"],
        "grade": ["evalpipe report small"],
        "report": [],
    }


def test_status_counts_what_is_done(finished: Walk) -> None:
    (repository,) = finished.status["report"]["repositories"]
    assert (repository["changes"], repository["kept"]) == (8, 3)
    assert (repository["first_passes"], repository["second_passes"]) == (3, 3)
    assert repository["classes"] == {"valid": 2, "no_signal": 1}
    (sweep,) = finished.status["report"]["sweeps"]
    counts = {agent["name"]: (agent["samples"], agent["attempted"], agent["graded"]) for agent in sweep["agents"]}
    assert counts == dict.fromkeys(("reference", "empty", "half"), (4, 4, 4))


def test_mine_answers_with_the_funnel(mined: Walk) -> None:
    funnel = {"root": 1, "docs_only": 2, "no_tests": 1, "no_source": 1, "kept": 3}
    assert mined.answers["mine"].json() == {"funnel": funnel, "repositories": {"shop": funnel}, "dry_run": False}


def test_validate_answers_with_the_classes(frozen: Walk) -> None:
    images = {"images": 1, "candidates": 3, "failed_builds": 0, "candidates_without": 0}
    assert frozen.answers["validate"].json() == {
        "classes": {"valid": 2, "no_signal": 1},
        "second_passes_waiting": 0,
        "images": {"shop": images},
        "scope": {},
    }


def test_dagster_knows_of_a_finished_validation_and_of_the_check_of_a_calibration(
    copied: Callable[[Walk], TinyWorkspace], begun: Walk
) -> None:
    """No pass is missing, not even stress passes that are not wanted. The check is made in the calibration's own run:
    one beside the asset would be skipped, since an asset that logs its own events has no output.
    """
    tiny = copied(begun)
    key = dg.AssetCheckKey(dg.AssetKey(["task_sets", "tiny", "calibration"]), "reference_resolved_and_empty_not")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALPIPE_STATE_DIR", str(tiny.root / "data/state"))
        with dg.DagsterInstance.from_config(str(tiny.root)) as instance:
            found = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])
            passes = instance.get_materialized_partitions(dg.AssetKey("validation_runs"))
            candidates = instance.get_dynamic_partitions(str(CANDIDATES.name))
    assert len(candidates) == 3
    assert passes == {f"{name}|{one}" for name in candidates for one in ("first", "second", "stress")}
    assert found[key].status is AssetCheckExecutionRecordStatus.SUCCEEDED


def test_freeze_says_that_a_set_is_provisional(frozen: Walk) -> None:
    assert "2 tasks" in frozen.answers["freeze"].out
    assert "provisional" in frozen.answers["freeze"].out
    record = json.loads((frozen.tiny.root / "data/task_sets/tiny/task_set.json").read_bytes())
    assert record["provisional"] is True


def test_report_answers_with_rates_and_intervals(finished: Walk) -> None:
    report = finished.answers["report"].json()
    rates = {agent["agent"]: agent["pass_at_1"] for agent in report["agents"]}
    assert rates == {"reference": 1.0, "empty": 0.0, "half": 0.5}
    for agent in report["agents"]:
        low, high = agent["interval"]
        assert 0 <= low <= agent["pass_at_1"] <= high <= 1
        assert (agent["mode"], agent["tasks"], agent["samples"]) == ("original", 2, 4)
    assert report["provisional"] is True
    assert report["task_set"]["provisional"] is True
    assert report["report"].endswith("data/lake/reports/small/report.html")


def test_progress_is_plain_lines_where_there_is_no_terminal(finished: Walk) -> None:
    lines = finished.answers["run"].err.splitlines()
    assert "small/reference/agent_runs: 4 of 4 (4 finished)" in lines
    assert not any("\r" in line or "%|" in line for line in lines)


def test_a_machine_reads_results_on_the_output_stream_alone(finished: Walk) -> None:
    for name in ("mine", "validate", "report"):
        assert len(finished.answers[name].out.splitlines()) == 1, name
    for name in ("run", "grade"):
        assert len(finished.answers[name].out.splitlines()) == 1, name
        assert "next: evalpipe" in finished.answers[name].err


def test_a_second_time_does_nothing_again(finished: Walk) -> None:
    begun = finished.tiny.gate.begun()
    before = {
        path: path.read_bytes()
        for table in ("agent_runs", "graded_results", "calibration")
        for path in (finished.tiny.lake / table).rglob("*.parquet")
    }
    finished.tiny.succeed("run", "small")
    finished.tiny.succeed("grade", "small")
    assert finished.tiny.gate.begun() == begun
    assert {path: path.read_bytes() for path in before} == before


def test_a_regrading_runs_no_agent_and_tells_what_changed(
    finished: Walk, copied: Callable[[Walk], TinyWorkspace]
) -> None:
    tiny = copied(finished)
    runs = {path: path.read_bytes() for path in (tiny.lake / "agent_runs").rglob("*.parquet")}
    begun = tiny.gate.begun()
    done = tiny.succeed("grade", "small", "--regrade", "--agent", "reference")
    assert "small: 0 of 4 verdicts changed" in done.out
    assert tiny.gate.begun() == begun  # every agent's box would have passed the gate
    assert {path: path.read_bytes() for path in runs} == runs
