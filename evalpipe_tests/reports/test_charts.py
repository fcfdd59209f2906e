from dataclasses import replace
from xml.etree import ElementTree

import pytest

from evalpipe.reports import html_report
from evalpipe.reports.analysis import analyse
from evalpipe.reports.chart_data import (
    cost_points,
    failure_bars,
    gap_forest,
    pass_hat_curves,
    task_differences,
)
from evalpipe.reports.charts import Bar, CostPoint, bars_svg, cost_svg, curves_svg, differences_svg
from evalpipe.stats.intervals import Interval
from evalpipe_tests.reports.sweeps import SweepBuilder, graded_row, rows_of, two_agents
from evalpipe_tests.reports.test_plots import HOSTILE
from evalpipe_tests.reports.test_rows import both_prompts

_POINT = CostPoint(HOSTILE, 0.5, 0.6, Interval(0.4, 0.8))
_CHARTS = {
    "curves": lambda: curves_svg([(HOSTILE, [0.7, 0.5, 0.4]), ("b", [0.2])], "curves", HOSTILE),
    "differences": lambda: differences_svg([0.0, -0.5, 1.0], "differences", HOSTILE),
    "bars": lambda: bars_svg([Bar(HOSTILE), Bar(HOSTILE, HOSTILE, 0.3)], "bars", HOSTILE),
    "costs": lambda: cost_svg([_POINT], "costs", HOSTILE),
}


@pytest.mark.parametrize("name", _CHARTS)
def test_charts_are_the_same_byte_for_byte_and_text_in_them_stays_text(name: str) -> None:
    svg = _CHARTS[name]()
    assert svg == _CHARTS[name]()
    root = ElementTree.fromstring(svg)
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert not [key for element in root.iter() for key in element.keys() if key.startswith("on")]  # noqa: SIM118
    assert "var(--accent)" in svg


def test_pass_hat_k_falls_with_k() -> None:
    (_, steady), _ = pass_hat_curves(analyse(two_agents()))
    assert len(steady) == 4
    assert steady == sorted(steady, reverse=True)
    assert steady[0] == pytest.approx(0.513889, abs=5e-7)
    assert pass_hat_curves(analyse(SweepBuilder({"steady": [1, 0]}, samples=1).build())) == []


def test_reasons_of_failure_add_up_to_the_attempts_that_did_not_resolve() -> None:
    row = graded_row(
        "steady", "demo-000", "original-1", resolved=False, attempt=0, verdict="not_graded", outcome="empty_patch"
    )
    bars = failure_bars(analyse(SweepBuilder({"steady": [4, 2]}, rows=[row]).build()))
    assert bars[0] == Bar("steady: 3 attempts")
    assert [(bar.label, bar.value) for bar in bars[1:]] == [
        ("fail to pass failed", "2 (67 %)"),
        ("empty patch", "1 (33 %)"),
    ]


def test_cost_is_drawn_only_where_it_is_known_of_every_attempt() -> None:
    rows = [row | {"attempt": 0, "cost_usd": 0.25} for row in rows_of("steady", [2, 1], 2)]
    results = SweepBuilder({"steady": [2, 1]}, samples=2, rows=rows).build()
    (point,) = cost_points(analyse(results))
    assert (point.cost, point.rate) == (0.25, 0.75)
    assert "Mean cost per attempt" in html_report(results)
    assert cost_points(analyse(two_agents())) == []
    assert "Mean cost per attempt" not in html_report(two_agents())


def test_differences_of_single_tasks_and_both_ends_of_a_gap() -> None:
    analysis = analyse(both_prompts())
    differences = task_differences(analysis, analysis.comparisons[0])
    assert sum(differences) / len(differences) == pytest.approx(0.138889, abs=5e-7)
    steady, _ = gap_forest(analysis)
    assert steady.interval is not None
    assert steady.rate == steady.interval.high == pytest.approx(0.513889, abs=5e-7)


def test_a_task_has_its_prompt_its_tests_and_the_patch_of_each_attempt() -> None:
    rows = [row | {"attempt": 0, "patch_sha256": "p"} for row in rows_of("steady", [1], 2)]
    results = SweepBuilder({"steady": [1]}, samples=2, rows=rows).build()
    tasks = tuple(
        replace(task, prompts={"original": "Repair <b>it</b>"}, fail_to_pass=("t::one",)) for task in results.tasks
    )
    document = html_report(replace(results, tasks=tasks, read_blob=lambda digest: b"+<script>\xff\n" * 9000))
    assert "Repair &lt;b&gt;it&lt;/b&gt;" in document
    assert "<code>t::one</code>" in document
    assert document.count("+&lt;script&gt;") > 2
    assert len(document) < 200_000
