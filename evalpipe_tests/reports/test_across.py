import json
from dataclasses import replace
from typing import Any

import pytest

from evalpipe.reports.across import NotComparable, compare_sweeps
from evalpipe.reports.across_tables import across_markdown, across_summary, across_text
from evalpipe.reports.records import Prices, SweepResults
from evalpipe_tests.reports.sweeps import BROAD, STEADY, SweepBuilder, graded_row, graded_table, manifest, rows_of


def _sweep(name: str, passes: list[int], agent: str = "steady", **changes: Any) -> SweepResults:
    results = SweepBuilder({agent: passes}, changes=changes).build()
    return replace(results, sweep=name)


def test_one_agent_over_time_with_its_drift_per_category() -> None:
    found = compare_sweeps([_sweep("2026q1", STEADY), _sweep("2026q2", BROAD)])
    (pair,) = found.pairs
    assert pair.comparison.paired is not None
    assert pair.comparison.paired.p_value == 0.00390625
    assert pair.comparison.better == "steady (2026q2)"
    assert {drift.category: drift.paired.tasks for drift in pair.drift} == {
        "single_file_repair": 6,
        "multi_file_feature": 6,
        "dependency_chore": 6,
    }
    assert sum(drift.paired.difference * 6 for drift in pair.drift) == pytest.approx(0.138889 * 18, abs=1e-5)
    text = across_text(found)
    assert "exploratory" in text
    assert "only steady (2026q2)" in text
    assert "demo-008" in across_markdown(found).replace("\\", "")
    json.dumps(across_summary(found), allow_nan=False)


def test_different_revisions_are_compared_on_common_tasks_only_and_say_so() -> None:
    first, second = _sweep("a", STEADY), _sweep("b", BROAD)
    tasks = tuple(replace(task, digest="changed") if index < 3 else task for index, task in enumerate(second.tasks))
    found = compare_sweeps([first, replace(second, tasks=tasks[:-1], revision="s" * 64)])
    assert len(found.tasks) == 14
    assert "compared only on the 14 tasks that all have with the same content" in found.notes[1]
    assert found.pairs[0].comparison.paired is not None
    assert found.pairs[0].comparison.paired.tasks == 14


def test_what_is_missing_invalid_or_provisional_in_a_sweep_is_told() -> None:
    first, second = _sweep("a", STEADY), _sweep("b", BROAD)
    rows = [row for row in second.graded.to_pylist() if (row["agent"], row["sample"]) != ("steady", "original-4")]
    next(row for row in rows if row["agent"] == "steady").update(counts=False, resolved=False, outcome="disk_full")
    tasks = tuple(replace(task, provisional=index < 1) for index, task in enumerate(second.tasks))
    found = compare_sweeps([first, replace(second, graded=graded_table(rows), tasks=tasks)])
    assert found.notes[1:] == (
        "b: 18 samples not graded, so this can still change",
        "b: 1 sample invalid, left out",
        "b: 1 task provisional: both validation passes ran on one day",
    )
    assert "b: 1 sample invalid" in across_text(found)


def test_what_attempts_took_stands_side_by_side_on_the_common_tasks_in_one_currency() -> None:
    def sweep(name: str, dollars: float, prices: Prices) -> SweepResults:
        rows = [row | {"cost_usd": dollars, "attempt": 0} for row in rows_of("steady", STEADY, 4)]
        return replace(SweepBuilder({"steady": STEADY}, rows=rows, changes={"prices": prices}).build(), sweep=name)

    euros = Prices("EUR", 0.5, "eu")
    first, second = sweep("a", 1.0, euros), sweep("b", 3.0, euros)
    second = replace(second, tasks=second.tasks[:4])
    found = compare_sweeps([first, second])
    assert [(row.agent, row.attempts) for row in found.usage] == [("steady (a)", 16), ("steady (b)", 16)]
    assert [row.mean_cost.mean for row in found.usage if row.mean_cost] == [0.5, 1.5]
    assert "cost, EUR" in across_text(found)
    assert "at 0.5 for one US dollar" in across_markdown(found).replace("\\", "")
    assert across_summary(found)["usage"][1]["mean_cost"]["mean"] == 1.5
    dollars = compare_sweeps([first, replace(second, prices=Prices("GBP", 0.4, "uk"))])
    assert dollars.prices == Prices()
    assert [row.mean_cost.mean for row in dollars.usage if row.mean_cost] == [1.0, 3.0]


def test_manifest_differences_are_footnotes_on_the_table() -> None:
    first, second = _sweep("a", STEADY), _sweep("b", BROAD)
    other = {**manifest("steady", memory_limit=8), "agent": {"name": "steady", "model": "new", "max_turns": 40}}
    second = replace(second, manifests={**second.manifests, ("steady", "original"): other})
    found = compare_sweeps([first, second])
    assert any(line.startswith("environment.memory_limit") for line in found.pairs[0].footnotes)
    assert any(line.startswith("agent.model") for line in found.pairs[0].footnotes)
    assert "[1] agent.model" in across_text(found)
    stranger = _sweep("b", BROAD, agent="broad")
    assert compare_sweeps([first, stranger]).pairs[0].footnotes == ()


def test_holm_runs_over_all_pairs_of_three_sweeps() -> None:
    found = compare_sweeps([_sweep("a", STEADY), _sweep("b", BROAD), _sweep("c", STEADY)])
    assert len(found.pairs) == 3
    assert found.pairs[0].comparison.adjusted_p == 3 * 0.00390625
    assert found.pairs[1].comparison.sentence.startswith("no difference detected (could have seen ")


def test_what_cannot_be_compared_is_refused_with_the_reason() -> None:
    plain = _sweep("a", STEADY)
    others = tuple(replace(task, digest="x") for task in plain.tasks)
    with pytest.raises(NotComparable, match="no task in common"):
        compare_sweeps([plain, replace(plain, sweep="b", tasks=others)])
    with pytest.raises(NotComparable, match="no agent of one sweep"):
        compare_sweeps([plain, _sweep("b", BROAD)], ["nobody"])
    row = graded_row("empty", "demo-003", "original-1", resolved=True, attempt=0)
    broken = replace(SweepBuilder({"steady": STEADY}, rows=[row]).build(), sweep="b")
    with pytest.raises(NotComparable, match="sweep b has no results"):
        compare_sweeps([plain, broken])
