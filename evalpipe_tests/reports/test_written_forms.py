import json
from dataclasses import replace

import pytest

from evalpipe.reports import (
    category_markdown,
    funnel_markdown,
    funnel_text,
    html_report,
    scoreboard_markdown,
    scoreboard_text,
    summary,
)
from evalpipe_tests.reports.sweeps import STEADY, SweepBuilder, agent, graded_row, two_agents


def test_summary_has_what_machines_are_promised() -> None:
    found = summary(two_agents())
    json.dumps(found, allow_nan=False)
    assert found["valid"] is True
    assert found["provisional"] is False
    steady = found["agents"][0]
    assert (steady["agent"], steady["mode"]) == ("steady", "original")
    assert steady["pass_at_1"] == pytest.approx(0.513889, abs=5e-7)
    assert steady["interval"][0] < steady["pass_at_1"] < steady["interval"][1]
    assert (steady["tasks"], steady["samples"]) == (18, 72)
    assert found["comparisons"][0]["adjusted_p_value"] == 0.00390625
    assert found["comparisons"][0]["better"] == "broad"
    assert found["funnel"]["validation"] == {"valid": 18, "no_signal": 2, "flaky": 1}


def test_summary_says_null_where_nothing_can_be_said() -> None:
    results = two_agents()
    found = summary(replace(results, graded=results.graded.slice(0, 0)))
    json.dumps(found, allow_nan=False)
    assert found["valid"] is False
    assert found["reasons"][0]["reason"] == "reference_not_graded"
    assert all(row["pass_at_1"] is None and row["interval"] is None for row in found["agents"])
    assert found["agents"][0]["samples_missing"] == 72


def test_summary_of_an_invalid_sweep_withholds_the_rates_of_contenders() -> None:
    row = graded_row("empty", "demo-003", "original-1", resolved=True, attempt=0)
    found = summary(SweepBuilder({"steady": STEADY}, rows=[row]).build())
    rates = {entry["agent"]: entry["pass_at_1"] for entry in found["agents"]}
    assert rates["steady"] is None
    assert rates["reference"] == 1.0
    assert rates["empty"] > 0


def test_small_categories_show_fractions_only() -> None:
    found = summary(SweepBuilder({"steady": [4, 2, 0, 1, 3, 4]}).build())
    assert all(row["pass_at_1"] is None for row in found["categories"])
    table = category_markdown(SweepBuilder({"steady": [4, 2, 0, 1, 3, 4]}).build())
    assert "5/8 samples of 2 tasks" in table


def test_terminal_scoreboard() -> None:
    text = scoreboard_text(two_agents(provisional=True))
    lines = text.splitlines()
    assert "provisional: both validation passes ran on one day" in lines[0]
    assert lines[1] == "Decision: Which agent do we licence for the platform team?"
    steady = next(line for line in lines if line.startswith("steady"))
    assert steady.split()[:6] == ["steady", "0.51", "0.33", "to", "0.69", "18"]
    assert "pass@1 (provisional)" in text
    assert "reference (control)" in text


def test_terminal_scoreboard_says_first_when_there_is_no_result() -> None:
    row = graded_row("empty", "demo-003", "original-1", resolved=True, attempt=0)
    text = scoreboard_text(SweepBuilder({"steady": STEADY}, rows=[row]).build())
    assert text.index("This sweep has no results") < text.index("pass@1")
    steady = next(line for line in text.splitlines() if line.startswith("steady"))
    assert "0.5" not in steady


def test_funnel_counts_every_change() -> None:
    text = funnel_text([("kept", 3), ("test_only", 2)], [("valid", 2), ("no_signal", 1)])
    assert text.splitlines()[2].split() == ["mined", "all", "changes", "looked", "at", "5"]
    assert "validated  no signal                    1" in text
    assert "| mined | test only | 2 |" in funnel_markdown([("kept", 3), ("test_only", 2)], [])


def test_names_cannot_steer_a_terminal_or_fetch_from_markdown() -> None:
    hostile = "x\x1b[2J ![p](https://evil.example/p.png) <img src=x> | y"
    results = SweepBuilder({hostile: STEADY}, agents=[agent(hostile)], comparisons=[]).build()
    assert "\x1b" not in scoreboard_text(results)
    markdown = scoreboard_markdown(results)
    assert "![p]" not in markdown
    assert "<img" not in markdown
    assert "\x1b" not in markdown


def test_flagged_attempts_are_a_queue_and_a_second_rate_in_every_form() -> None:
    reasons = ["network_tool: transcript, line 12: curl https://example.org/<b>", "early_exit: os._exit(0)"]
    results = two_agents()
    rows = results.graded.to_pylist()
    flagged = next(row for row in rows if row["agent"] == "steady" and row["resolved"])
    flagged.update(integrity="flagged", integrity_reasons=reasons)
    results = replace(results, graded=results.graded.from_pylist(rows, schema=results.graded.schema))
    found = summary(results)
    steady = next(row for row in found["agents"] if row["agent"] == "steady")
    assert steady["samples_flagged"] == 1
    assert steady["pass_at_1_flagged_as_failed"] < steady["pass_at_1"]
    (queued,) = found["review"]
    assert (queued["task_id"], queued["sample"], queued["resolved"]) == (flagged["task_id"], flagged["sample"], True)
    assert queued["signs"] == [
        {"sign": "network_tool", "place": "transcript, line 12", "evidence": "curl https://example.org/<b>"},
        {"sign": "early_exit", "place": "", "evidence": "os._exit(0)"},
    ]
    both = [f"{steady[name]:.2f}" for name in ("pass_at_1", "pass_at_1_flagged_as_failed")]
    for text in (scoreboard_text(results), scoreboard_markdown(results), html_report(results)):
        assert "flagged as failed" in text
        assert all(number in text for number in both)
        assert "To be read by a person" in text
        assert "transcript, line 12" in text
    assert "example.org/<b>" not in html_report(results)


def test_without_a_flagged_attempt_there_is_no_queue() -> None:
    assert summary(two_agents())["review"] == []
    assert "To be read by a person" not in scoreboard_text(two_agents())
    assert "saw no sign of cheating" in html_report(two_agents())


def test_a_long_queue_is_cut_in_a_terminal() -> None:
    results = two_agents()
    rows = results.graded.to_pylist()
    for row in rows:
        row.update(integrity="flagged", integrity_reasons=["early_exit: patch: os._exit(0)"])
    text = scoreboard_text(replace(results, graded=results.graded.from_pylist(rows, schema=results.graded.schema)))
    assert text.count("os._exit(0)") == 10
    assert f"and {len(rows) - 10} more signs in graded_results" in text
