from dataclasses import replace

import pytest

from evalpipe.reports.analysis import analyse
from evalpipe.reports.findings import Caution, NoResult
from evalpipe.reports.records import SweepResults
from evalpipe_tests.reports.sweeps import (
    BROAD,
    EMPTY,
    REFERENCE,
    STEADY,
    SweepBuilder,
    agent,
    calibration,
    graded_row,
    manifest,
    task,
    two_agents,
)


def _reasons(results: SweepResults) -> set[str]:
    return {finding.reason for finding in analyse(results).cautions}


def test_the_golden_pair_is_judged_by_the_exact_test() -> None:
    analysis = analyse(two_agents())
    (comparison,) = analysis.comparisons
    assert comparison.paired is not None
    assert comparison.paired.p_value == 0.00390625
    assert comparison.better == "broad"
    assert comparison.sentence == "broad solves more (+14 points, p = 0.004)"
    assert analysis.answer.startswith("broad solves more of these tasks than steady: +14 points")


def test_no_difference_is_never_called_equal() -> None:
    results = SweepBuilder({"steady": STEADY, "broad": [*STEADY[:-1], 1]}).build()
    analysis = analyse(results)
    assert analysis.comparisons[0].better is None
    assert analysis.comparisons[0].sentence.startswith("no difference detected (could have seen ")
    assert "equal" not in analysis.answer


def test_five_tasks_could_not_have_shown_a_difference() -> None:
    analysis = analyse(SweepBuilder({"steady": [0] * 5, "broad": [4] * 5}).build())
    assert "these tasks and samples could not have shown one" in analysis.comparisons[0].sentence


def test_holm_runs_over_all_declared_pairs() -> None:
    third = [*STEADY[:-1], 1]
    analysis = analyse(SweepBuilder({"steady": STEADY, "broad": BROAD, "third": third}).build())
    by_pair = {(row.first, row.second): row for row in analysis.comparisons}
    pair = by_pair["steady", "broad"]
    assert pair.paired is not None
    assert pair.adjusted_p is not None
    assert pair.adjusted_p == 3 * pair.paired.p_value
    assert len(by_pair) == 3


def test_only_declared_pairs_are_compared() -> None:
    analysis = analyse(SweepBuilder({"steady": STEADY, "broad": BROAD}, comparisons=[]).build())
    assert analysis.comparisons == ()
    assert Caution.NO_COMPARISON in {finding.reason for finding in analysis.cautions}
    assert "rank nobody" in analysis.answer


def test_one_pair_of_three_agents_crowns_nobody() -> None:
    results = SweepBuilder(
        {"steady": STEADY, "broad": BROAD, "third": STEADY}, comparisons=[("steady", "broad")]
    ).build()
    answer = analyse(results).answer
    assert "broad solves more" in answer
    assert "No agent is shown to be the best of all" in answer


def test_a_reference_that_fails_leaves_no_results() -> None:
    row = graded_row("reference", task(3).task_id, "original-2", resolved=False, attempt=0)
    analysis = analyse(SweepBuilder({"steady": STEADY, "broad": BROAD}, rows=[row]).build())
    assert not analysis.valid
    assert [finding.reason for finding in analysis.no_result] == [NoResult.REFERENCE_FAILED]
    assert analysis.answer.startswith("This sweep has no results: the control reference")
    assert "demo-003" in analysis.answer
    assert (analysis.comparisons, analysis.categories) == ((), ())
    shown = {row.agent.name for row in analysis.agents if row.estimate}
    assert shown == {"reference", "empty"}


def test_doing_nothing_that_passes_leaves_no_results() -> None:
    row = graded_row("empty", task(3).task_id, "original-2", resolved=True, attempt=0)
    analysis = analyse(SweepBuilder({"steady": STEADY}, rows=[row]).build())
    assert [finding.reason for finding in analysis.no_result] == [NoResult.EMPTY_PASSED]


def test_controls_that_did_not_run_leave_no_results() -> None:
    results = two_agents()
    keep = [row for row in results.graded.to_pylist() if row["agent"] not in ("reference", "empty")]
    analysis = analyse(replace(results, graded=results.graded.from_pylist(keep, results.graded.schema)))
    assert {finding.reason for finding in analysis.no_result} == {
        NoResult.REFERENCE_NOT_GRADED,
        NoResult.EMPTY_NOT_GRADED,
    }


def test_a_sweep_without_tasks_has_no_results() -> None:
    analysis = analyse(SweepBuilder({"steady": []}).build())
    assert [finding.reason for finding in analysis.no_result] == [NoResult.NO_TASKS]


@pytest.mark.parametrize(("passes", "word"), [(4, "Every graded sample"), (0, "No graded sample")])
def test_a_suite_that_all_pass_or_none_cannot_rank(passes: int, word: str) -> None:
    analysis = analyse(SweepBuilder({"steady": [passes] * 8, "broad": [passes] * 8}).build())
    assert analysis.valid
    assert word in analysis.answer
    assert "cannot rank anyone" in analysis.answer
    assert analysis.cautions[0].reason is Caution.CANNOT_RANK


def test_cautions_name_what_limits_the_result() -> None:
    plain = two_agents()
    assert _reasons(plain) == set()
    assert Caution.PROVISIONAL in _reasons(replace(plain, provisional=True))
    some = tuple(replace(info, provisional=index < 2) for index, info in enumerate(plain.tasks))
    findings = analyse(replace(plain, tasks=some)).cautions
    assert [finding.text for finding in findings] == [
        "2 of 18 tasks are provisional: both validation passes ran on one day"
    ]
    broken = calibration([info.task_id for info in plain.tasks], [("demo-004", "empty")])
    assert Caution.CALIBRATION_FAILED in _reasons(replace(plain, calibration=broken))
    assert Caution.NOT_CALIBRATED in _reasons(replace(plain, calibration=broken.slice(0, 6)))
    assert Caution.NO_CONTROL in _reasons(replace(plain, agents=(*plain.contenders, REFERENCE)))
    assert Caution.SCRIPTED in _reasons(
        replace(plain, agents=(agent("steady", scripted=True), agent("broad"), REFERENCE, EMPTY))
    )


def test_manifests_that_differ_beyond_the_agent_are_printed() -> None:
    plain = two_agents()
    manifests = {**plain.manifests, ("broad", "original"): manifest("broad", memory_limit=8)}
    texts = [finding.text for finding in analyse(replace(plain, manifests=manifests)).cautions]
    assert texts == ["run under different conditions: environment.memory_limit: 4294967296 (steady), 8 (broad)"]
    missing = {key: value for key, value in plain.manifests.items() if key[0] != "broad"}
    assert Caution.NO_MANIFEST in _reasons(replace(plain, manifests=missing))


def test_weights_give_a_total_or_a_reason() -> None:
    whole = {"single_file_repair": 0.5, "multi_file_feature": 0.3, "dependency_chore": 0.2}
    analysis = analyse(two_agents(weights=whole))
    assert all(row.total is not None for row in analysis.weighted)
    refused = analyse(two_agents(weights={**whole, "other": 0.1}))
    assert all(row.total is None and "other" in row.refused for row in refused.weighted)
    assert Caution.WEIGHTED_TOTAL_REFUSED in {finding.reason for finding in refused.cautions}
    partial = _reasons(two_agents(weights={"single_file_repair": 1.0}))
    assert Caution.UNWEIGHTED_CATEGORY in partial


def test_excluded_attempts_are_listed_even_when_a_later_one_counted() -> None:
    row = graded_row("steady", "demo-001", "original-1", resolved=False, counts=False, outcome="disk_full")
    analysis = analyse(SweepBuilder({"steady": STEADY, "broad": BROAD}, rows=[row]).build())
    (excluded,) = analysis.excluded
    assert (excluded.agent, excluded.outcome, excluded.attempts) == ("steady", "disk_full", 1)
    assert excluded.tasks == ("demo-001",)


def test_a_comparison_of_a_stranger_is_refused() -> None:
    with pytest.raises(ValueError, match="names nobody, which is not an agent"):
        SweepBuilder({"steady": STEADY}, comparisons=[("steady", "nobody")]).build()
