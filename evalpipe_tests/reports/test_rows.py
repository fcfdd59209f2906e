import json
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest
from markupsafe import escape

from evalpipe.reports import html_report, scoreboard_text, summary, wording
from evalpipe.reports.analysis import analyse
from evalpipe.reports.cutoffs import cutoff_table
from evalpipe.reports.findings import Caution
from evalpipe.reports.forms import report_markdown
from evalpipe.reports.gaps import gap_table
from evalpipe.reports.plan import AttemptCost, read_pilot
from evalpipe.reports.records import Prices, SweepResults
from evalpipe.reports.solved import solved_by
from evalpipe.reports.usage import changed_lines, not_measured_note, price_note, spread, usage_table
from evalpipe.stats.counts import TaskCount
from evalpipe_tests.reports.sweeps import BROAD, STEADY, SweepBuilder, graded_row, manifest, rows_of, two_agents

_TERSE = [4, 3, 3, 0, 0, 1, 4, 0, 0, 2, 4, 1, 0, 0, 3, 3, 1, 0]
_TERSE_BROAD = [4, 4, 4, 1, 2, 2, 4, 0, 1, 3, 4, 4, 1, 0, 4, 4, 3, 1]


def both_prompts() -> SweepResults:
    names = ("steady", "broad", "reference", "empty")
    rows = [
        row
        for name, passes in zip(names, (_TERSE, _TERSE_BROAD, [4] * 18, [0] * 18), strict=True)
        for row in rows_of(name, passes, 4, "terse")
    ]
    manifests = {(name, mode): manifest(name, mode) for name in names for mode in ("original", "terse")}
    changes = {"modes": ("original", "terse"), "manifests": manifests}
    return SweepBuilder({"steady": STEADY, "broad": BROAD}, rows=rows, changes=changes).build()


def test_the_prompt_gap_is_tested_per_agent_and_between_pairs() -> None:
    analysis = analyse(both_prompts())
    steady, broad = analysis.gaps
    assert steady.gap is not None
    assert steady.gap.paired.p_value == 0.0078125
    assert steady.adjusted_p == 2 * 0.0078125
    assert broad.adjusted_p == 1.0
    (between,) = analysis.gap_differences
    assert between.paired is not None
    assert between.paired.p_value == 0.015625
    table = gap_table(analysis.gaps, analysis.gap_differences)
    assert table.rows[0][4:] == ("+11 points", "+5 to +17", "18", "loses with the terse prompt (p = 0.016)")
    assert table.rows[1][-1] == "no difference detected (could have seen 33 points)"
    assert table.rows[2][-1] == "steady loses more than broad (p = 0.016)"
    assert "What a terse prompt costs" in html_report(both_prompts())
    found = summary(both_prompts())
    assert [row["gap"] for row in found["prompt_gaps"]] == pytest.approx([1 / 9, 1 / 72])
    assert found["prompt_gaps"][0]["interval"] == pytest.approx([0.047544, 0.174678], abs=1e-6)
    assert found["differences_of_gaps"][0]["adjusted_p_value"] == 0.015625


def test_the_best_of_two_in_both_prompts_is_named_as_such() -> None:
    answer = "broad solves more of these tasks than steady with every prompt, by 14 to 24 points."
    assert analyse(both_prompts()).answer == answer


def test_one_prompt_has_no_gap() -> None:
    assert analyse(two_agents()).gaps == ()
    assert "What a terse prompt costs" not in html_report(two_agents())


def test_tasks_are_named_by_who_solves_them_in_most_samples() -> None:
    first = {name: TaskCount(passes, 4) for name, passes in (("a", 3), ("b", 4), ("c", 2), ("d", 0), ("e", 4))}
    second = {name: TaskCount(passes, 4) for name, passes in (("a", 4), ("b", 2), ("c", 3), ("d", 1))}
    found = solved_by(first, second)
    assert (found.both, found.only_first, found.only_second, found.neither) == (("a",), ("b",), ("c",), ("d",))
    assert "only broad" in html_report(two_agents())


def test_what_was_not_measured_is_said_and_never_zero() -> None:
    analysis = analyse(two_agents())
    table = usage_table(analysis.usage, Prices())
    assert table.header == ("agent", "attempts", "seconds", "edited tests")
    assert table.rows[0] == ("steady", "72", "12 (12 to 12)", "0")
    note = not_measured_note(analysis.usage)
    assert note == ("Not measured of any attempt: model calls, input tokens, cached input tokens, output tokens, cost.")
    assert note in html_report(two_agents())
    assert note in report_markdown(two_agents())
    assert all(found is None for name, found in analysis.usage[0].measures.items() if name != "attempt_seconds")


def test_usage_has_medians_spread_and_cost_per_resolved_task() -> None:
    rows = rows_of("steady", [2, 1], 2)
    for number, row in enumerate(rows):
        row |= {"cost_usd": 0.5 + number, "input_tokens": 1000 * (number + 1), "patch_sha256": "p", "attempt": 0}
    rows[0]["ignored_paths"] = [b"tests/test_a.py"]
    for row, clean in zip(rows, (True, False, None, True), strict=True):
        row["style_clean"] = clean
    results = SweepBuilder({"steady": [2, 1]}, samples=2, rows=rows).build()
    tasks = tuple(replace(task, reference_lines=4) for task in results.tasks)
    (found,) = analyse(replace(results, tasks=tasks, patch_lines={"p": 6})).usage
    cost = found.measures["cost"]
    assert cost is not None
    assert (cost.median, cost.low, cost.high, cost.total) == (2.0, 1.25, 2.75, 8.0)
    assert found.cost_per_resolved == pytest.approx(8 / 3)
    assert found.lines is not None
    assert found.lines.median == 1.5
    assert found.edited_tests == 1
    table = usage_table((found,), Prices())
    assert dict(zip(table.header, table.rows[0], strict=True))["style clean"] == "2/3"


def test_costs_are_given_in_the_currency_of_the_sweep_at_its_rate() -> None:
    rows = [row | {"cost_usd": 2.0, "attempt": 0} for row in rows_of("steady", [2, 1], 2)]
    builder = SweepBuilder({"steady": [2, 1]}, samples=2, rows=rows, changes={"prices": Prices("EUR", 0.5, "<eu>")})
    results = builder.build()
    analysis = analyse(results)
    table = usage_table(analysis.usage, results.prices)
    assert table.header[2:4] == ("cost per resolved, EUR", "cost, EUR")
    assert table.rows[0][2:4] == ("1.33", "1.00 (1.00 to 1.00)")
    note = "Costs are in EUR, at 0.5 for one US dollar, prices of <eu>."
    assert price_note(results.prices) == note
    assert price_note(Prices()) == "Costs are in USD, as providers bill them."
    assert escape(note) in html_report(results)
    assert "0.5 for one US dollar" in report_markdown(results)
    (usage,) = summary(results)["usage"]
    assert usage["cost_per_resolved"] == pytest.approx(4 / 3)
    assert read_pilot(results).cost == AttemptCost(14.0, 1.0, "EUR")


def test_a_cost_that_is_known_of_some_attempts_only_gives_no_cost_per_resolved_task() -> None:
    row = graded_row("steady", "demo-000", "original-1", resolved=True, attempt=0, cost_usd=1.0)
    (found,) = analyse(SweepBuilder({"steady": STEADY}, rows=[row]).build()).usage
    assert found.cost_per_resolved is None


def test_a_cost_that_is_no_number_was_not_measured() -> None:
    rows = [row | {"attempt": 0, "cost_usd": float("nan")} for row in rows_of("steady", STEADY, 4)]
    results = SweepBuilder({"steady": STEADY}, rows=rows).build()
    assert analyse(results).usage[0].measures["cost"] is None
    json.dumps(summary(results), allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (0.0567, "0.057"), (1.25, "1.2"), (9.96, "10.0"), (12.4, "12"), (9999, "9,999"), (10_000, "10k")),
        *((54_321, "54.3k"), (448_831, "449k"), (999_499, "999k"), (999_500, "1M"), (12_345_678, "12.3M")),
    ],
)
def test_amounts_have_the_digits_that_they_need(value: float, text: str) -> None:
    assert wording.amount(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.14, "+14 points"), (-0.01, "-1 point"), (0.0, "0 points"), (0.004, "+0.4 points"), (-0.0001, "0 points")],
)
def test_a_difference_that_there_is_never_reads_as_none(value: float, text: str) -> None:
    assert wording.points(value) == text


def test_the_spread_of_nothing_is_nothing() -> None:
    assert spread(pa.chunked_array([pa.array([None, None], pa.float64())])) is None


@pytest.mark.parametrize(
    ("patch", "lines"),
    [
        (b"", 0),
        (b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", 2),
        (b"@@ -1 +1 @@\n--- a\n+++ b\n--- a/next\n+++ b/next\n@@ -0,0 +1 @@\n+\xff\r\n\\ No newline\n", 3),
        (b"Binary files a/x.png and b/x.png differ\n", 0),
    ],
)
def test_lines_are_counted_inside_hunks_only(patch: bytes, lines: int) -> None:
    assert changed_lines(patch) == lines


def test_rates_before_and_after_a_cutoff_stand_side_by_side() -> None:
    plain = two_agents()
    agents = tuple(
        replace(agent, training_cutoff=date(2025, 9, 3)) if agent.name == "broad" else agent for agent in plain.agents
    )
    (row,) = analyse(replace(plain, agents=agents)).cutoffs
    assert (len(row.before), len(row.after)) == (15, 3)
    cells = cutoff_table((row,)).rows[0]
    assert cells[2] == "2025-09-03"
    assert cells[6].endswith("samples of 3 tasks")
    assert "pass@1 before" in scoreboard_text(replace(plain, agents=agents))
    (found,) = summary(replace(plain, agents=agents))["cutoffs"]
    assert (found["tasks_before"], found["tasks_after"], found["pass_at_1_after"]) == (15, 3, None)
    assert found["interval_before"][0] < found["pass_at_1_before"] < found["interval_before"][1]
    assert "Before and after each model" in html_report(replace(plain, agents=agents))


def test_a_public_task_merged_up_to_a_cutoff_may_have_been_seen() -> None:
    plain = two_agents()
    agents = tuple(replace(agent, training_cutoff=date(2025, 2, 3)) for agent in plain.agents)
    tasks = tuple(replace(task, public=task.category == "dependency_chore") for task in plain.tasks)
    private = analyse(replace(plain, agents=agents)).cautions
    assert Caution.MAY_HAVE_BEEN_SEEN not in {finding.reason for finding in private}
    tasks = tuple(replace(task, public=True) for task in plain.tasks)
    texts = [found.text for found in analyse(replace(plain, agents=agents, tasks=tasks)).cautions]
    assert texts[0] == (
        "4 tasks of public repositories merged up to the cutoff of steady (2025-02-03): its model may have seen "
        "their answers"
    )


def test_tasks_that_rank_nobody_are_told() -> None:
    passes = {"a": [4, 0, 2, 1], "b": [4, 0, 3, 1], "c": [4, 0, 1, 2]}
    analysis = analyse(SweepBuilder(passes).build())
    texts = {finding.reason: finding.text for finding in analysis.cautions}
    assert texts[Caution.SATURATED_TASKS].startswith("1 of 4 tasks was solved in every graded sample")
    sentence = "2 of 4 tasks were solved in some samples and not in others; agents differ most on demo-002, demo-003."
    assert sentence in html_report(SweepBuilder(passes).build())
    signals = summary(SweepBuilder(passes).build())["task_signals"]
    assert [signals[f"demo-00{number}"]["signal"] for number in range(4)] == [
        "saturated", "dead", "informative", "informative",
    ]  # fmt: skip
    assert "demo-001" in texts[Caution.DEAD_TASKS]
    suspect = {str(number): [4 - number, number, number] for number in range(5)}
    found = analyse(SweepBuilder(suspect).build())
    assert Caution.SUSPECT_TASKS in {finding.reason for finding in found.cautions}
