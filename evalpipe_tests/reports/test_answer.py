"""What the first sentence says, and what it refuses to say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evalpipe.reports import html_report, scoreboard_text, summary
from evalpipe.reports.across import compare_sweeps
from evalpipe.reports.analysis import analyse
from evalpipe.reports.findings import Caution
from evalpipe.reports.forms import report_markdown
from evalpipe.reports.records import SweepResults
from evalpipe.reports.wording import NOTHING
from evalpipe_tests.reports.sweeps import BROAD, STEADY, SweepBuilder, graded_table, two_agents

_FLAGGED = {"integrity": "flagged", "integrity_reasons": ["early_exit: patch: os._exit(0)"]}
_INVALID = {"counts": False, "resolved": False, "outcome": "engine_error", "verdict": "not_graded"}


def _changed(results: SweepResults, agent: str, resolved: bool, changes: dict[str, Any], most: int) -> SweepResults:
    """The same sweep with the first so many samples of an agent that did or did not resolve their task changed."""
    rows = results.graded.to_pylist()
    for row in [row for row in rows if row["agent"] == agent and row["resolved"] is resolved][:most]:
        row.update(changes)
    return replace(results, graded=graded_table(rows))


def _without(results: SweepResults, agent: str, most: int) -> SweepResults:
    rows = results.graded.to_pylist()
    mine = [row for row in rows if row["agent"] == agent][:most]
    return replace(results, graded=graded_table([row for row in rows if row not in mine]))


def _answer(results: SweepResults) -> str:
    return analyse(results).answer


def _texts(results: SweepResults, reason: Caution) -> list[str]:
    return [found.text for found in analyse(results).cautions if found.reason is reason]


def test_a_lead_that_rests_on_flagged_attempts_is_told_with_them_and_crowns_nobody() -> None:
    results = _changed(two_agents(), "broad", True, _FLAGGED, 47)
    answer = _answer(results)
    assert answer.startswith("broad solves more than steady (+14 points")
    assert "after Holm), but not with its 47 flagged attempts taken as failed. No agent is shown" in answer
    assert summary(results)["comparisons"][0]["rests_on"] == ["flagged"]
    for text in (scoreboard_text(results), report_markdown(results), html_report(results)):
        assert text.count("taken as failed") >= 2


def test_a_lead_that_stands_without_its_flagged_attempt_is_a_lead() -> None:
    results = SweepBuilder({"steady": [0] * 12, "broad": [4] * 12}).build()
    assert _answer(_changed(results, "broad", True, _FLAGGED, 1)).startswith("broad solves more of these tasks than")


def test_a_lead_that_rests_on_leaving_out_failures_of_infrastructure_says_so() -> None:
    alike = SweepBuilder({"steady": [3] * 12, "broad": [3] * 12}).build()
    assert _answer(_changed(alike, "broad", False, _INVALID, 12)) == (
        "broad solves more than steady (+25 points, p < 0.001 after Holm), but not with its 12 invalid attempts taken "
        "as failed. No agent is shown to be the best of all."
    )


def test_a_lead_over_time_is_judged_the_same_way() -> None:
    first = SweepBuilder({"steady": STEADY}).build()
    second = _changed(SweepBuilder({"steady": BROAD}).build(), "steady", True, _FLAGGED, 47)
    (pair,) = compare_sweeps([first, replace(second, sweep="later")]).pairs
    assert pair.comparison.sentence.endswith("but not with its 47 flagged attempts taken as failed")


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([("steady", "broad")], "No two agents that are to be compared have a graded task in common: nothing is"),
        ([("steady", "broad"), ("steady", "third")], "No difference detected between steady and third (could have"),
    ],
)
def test_an_agent_that_did_not_run_yet_is_not_called_without_a_difference(
    pairs: Sequence[tuple[str, str]], told: str
) -> None:
    builder = SweepBuilder({"steady": STEADY, "broad": BROAD, "third": STEADY}, comparisons=pairs)
    answer = _answer(_without(builder.build(), "broad", 72))
    assert answer.startswith(told)
    assert answer.endswith("72 of 216 samples are missing, so this can still change.")


def test_an_unfinished_sweep_says_that_looking_early_misleads() -> None:
    results = _without(two_agents(), "steady", 1)
    assert _answer(results).endswith(" 1 of 144 samples is missing, so this can still change.")
    assert _texts(results, Caution.UNFINISHED) == [
        "p values hold once all samples are graded: looking earlier finds differences by chance more often"
    ]
    assert _texts(two_agents(), Caution.UNFINISHED) == []


def test_without_a_difference_in_any_pair_it_says_what_could_have_been_seen() -> None:
    alike = {name: [*STEADY[:-1], number] for number, name in enumerate(("a", "b", "c"))}
    answer = _answer(SweepBuilder(alike).build())
    assert answer == "No difference detected in any of 3 comparisons (could have seen 34 to 35 points)."
    few = SweepBuilder({"a": [1], "b": [2], "c": [1]}).build()
    assert _answer(few) == "No difference detected in any of 3 comparisons (none of them could have shown one)."


def test_many_differences_are_counted_and_only_those_who_lead_are_named() -> None:
    passes = {f"agent-{number}": [min(4, max(0, count + number % 3 - 1)) for count in STEADY] for number in range(10)}
    assert _answer(SweepBuilder(passes).build()) == (
        "33 of 45 comparisons show a difference (18 to 36 points). Ahead in some and behind in none: agent-2, agent-5, "
        "agent-8. No agent is shown to be the best of all."
    )


def test_one_agent_that_solves_everything_does_not_speak_for_one_that_did_not_run() -> None:
    results = _without(SweepBuilder({"steady": [4] * 8, "broad": [0] * 8}).build(), "broad", 32)
    assert _answer(results).startswith("Every graded sample of every agent resolved its task: these tasks cannot rank")
    assert "32 of 64 samples are missing" in _answer(results)


def test_the_difference_that_matters_is_held_beside_the_ones_that_were_seen() -> None:
    small = two_agents(smallest_difference=0.2)
    assert _texts(small, Caution.SMALL_DIFFERENCE) == [
        "detected, but less than the 20 points that matter to the decision: broad and steady"
    ]
    alike = replace(SweepBuilder({"a": STEADY, "b": STEADY}).build(), smallest_difference=0.1)
    assert _texts(alike, Caution.TOO_COARSE) == [
        "could not have seen the 10 points that matter to the decision: a and b"
    ]
    assert not {Caution.TOO_COARSE, Caution.SMALL_DIFFERENCE} & {
        found.reason for found in analyse(two_agents(smallest_difference=0.1)).cautions
    }


def test_a_control_that_was_graded_at_some_tasks_only_is_told() -> None:
    results = _without(two_agents(), "reference", 68)
    assert analyse(results).valid
    (text,) = _texts(results, Caution.NO_CONTROL)
    assert text.startswith("the control reference (original prompts) has no sample that counts of demo-000, demo-001")
    assert text.endswith("and 12 more: their grading is checked by calibration only")


def test_below_five_tasks_a_difference_has_no_points() -> None:
    text = report_markdown(SweepBuilder({"a": [4] * 4, "b": [0] * 4}).build())
    assert "-100 points" not in text
    assert f"a | b | original | {NOTHING} | {NOTHING} | 4 | 0 / 4" in text
