from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from scipy import stats

from evalpipe.reports import html_report, task_pages
from evalpipe.reports.analysis import analyse
from evalpipe.reports.chart_data import (
    cost_points,
    failure_bars,
    gap_forest,
    pass_hat_curves,
    taken_ranges,
    task_differences,
)
from evalpipe.reports.charts import (
    Bar,
    CostPoint,
    RangeRow,
    bars_svg,
    cost_svg,
    curves_svg,
    differences_svg,
    ranges_svg,
)
from evalpipe.reports.figures import agents_forest
from evalpipe.reports.records import Prices, SweepResults
from evalpipe.reports.task_pages import task_sections
from evalpipe.stats.intervals import Interval
from evalpipe_tests.reports.sweeps import SweepBuilder, graded_row, rows_of, two_agents
from evalpipe_tests.reports.test_plots import HOSTILE
from evalpipe_tests.reports.test_rows import both_prompts

_NOTHING: dict[str, Any] = {"read_blob": None}
_POINT = CostPoint(HOSTILE, 0.5, Interval(-0.1, 0.7), 0.6, Interval(0.4, 0.8))
_CHARTS = {
    "curves": lambda: curves_svg([(HOSTILE, [0.7, 0.5, 0.4]), ("b", [0.2])], "curves", HOSTILE),
    "differences": lambda: differences_svg([0.0, -0.5, 1.0], "differences", HOSTILE),
    "bars": lambda: bars_svg([Bar(HOSTILE), Bar(HOSTILE, HOSTILE, 0.3)], "bars", HOSTILE),
    "costs": lambda: cost_svg([_POINT], "costs", HOSTILE),
    "ranges": lambda: ranges_svg(
        [RangeRow(HOSTILE), RangeRow(HOSTILE, HOSTILE, (0, 1, 3, 40, 100))], "ranges", HOSTILE
    ),
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
    assert pass_hat_curves(analyse(SweepBuilder({"steady": [1, 0] * 4}, samples=1).build())) == []


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
    rows = [row | {"attempt": 0, "cost_usd": 0.25} for row in rows_of("steady", [2, 1, 1, 1, 0], 2)]
    rows[0]["cost_usd"] = 0.75
    changes = {"prices": Prices("EUR", 0.8, "eu-central")}
    results = SweepBuilder({"steady": [2, 1, 1, 1, 0]}, samples=2, rows=rows, changes=changes).build()
    (point,) = cost_points(analyse(results))
    assert [point.cost, point.rate] == pytest.approx([0.24, 0.5])
    assert point.cost_interval is not None
    oracle = stats.ttest_1samp([0.4, 0.2, 0.2, 0.2, 0.2], 0).confidence_interval()
    assert (point.cost_interval.low, point.cost_interval.high) == pytest.approx((oracle.low, oracle.high))
    assert "Mean cost per attempt" in html_report(results)
    assert cost_points(analyse(two_agents())) == []
    assert "Mean cost per attempt" not in html_report(two_agents())


@pytest.mark.parametrize(
    ("cost", "ticks"), [(0.7, ["0", "0.5", "1"]), (0.013, ["0", "0.01", "0.02"]), (4, ["0", "2.5", "5"])]
)
def test_the_axis_of_costs_ends_at_a_round_number(cost: float, ticks: list[str]) -> None:
    svg = cost_svg([CostPoint("a", cost, None, 0.5, Interval(0.4, 0.6))], "costs", "t")
    texts = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]
    assert texts[5:8] == ticks


def test_times_and_tokens_are_split_by_what_the_attempt_came_to() -> None:
    rows = [
        row | {"attempt": 0, "attempt_seconds": 10.0 * number, "input_tokens": 1000 * number, "output_tokens": 5}
        for number, row in enumerate(rows_of("steady", [2, 1], 2), 1)
    ]
    results = SweepBuilder({"steady": [2, 1]}, samples=2, rows=rows).build()
    analysis = analyse(results)
    heading, resolved, others = taken_ranges(analysis, "attempt_seconds")
    assert (heading.label, heading.quantiles) == ("steady", ())
    assert (resolved.label, resolved.value, resolved.quantiles[2]) == ("resolved", "20 (3 attempts)", 20.0)
    assert (others.label, others.value) == ("not resolved", "40 (1 attempt)")
    assert [row.value for row in taken_ranges(analysis, "tokens")] == ["", "2,005 (3 attempts)", "4,005 (1 attempt)"]
    assert "Tokens of an attempt" in html_report(results)
    assert taken_ranges(analyse(two_agents()), "tokens") == []
    assert "Tokens of an attempt" not in html_report(two_agents())


def test_fewer_than_five_tasks_have_no_rate_in_any_plot() -> None:
    rows = [row | {"attempt": 0, "cost_usd": 0.25} for row in rows_of("steady", [4, 2, 1, 0], 4)]
    analysis = analyse(SweepBuilder({"steady": [4, 2, 1, 0]}, rows=rows).build())
    assert not any((cost_points(analysis), pass_hat_curves(analysis), agents_forest(analysis)))


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


def _sampled(samples: int, unmet: int = 12, **changes: Any) -> SweepResults:
    """Six tasks of one agent that resolves nothing, with long evidence and patches of markup."""
    tests = [
        {"test_id": f"t::{'<' * 290}{number}", "expected_in": "fail_to_pass", "outcome": "failed", "message": "&" * 900}
        for number in range(unmet)
    ]
    rows = [
        row | {"attempt": 0, "patch_sha256": "p", "unmet_tests": tests, "detail": "<" * 400}
        for row in rows_of("steady", [0] * 6, samples)
    ]
    changes = {"read_blob": lambda digest: b"<" * 100_000, **changes}
    return SweepBuilder({"steady": [0] * 6}, samples=samples, rows=rows, changes=changes).build()


def test_evidence_and_patches_of_many_samples_share_a_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_pages, "_TEXT_CHARACTERS", 200_000)
    plain, full = (len(html_report(_sampled(4, unmet, **changes))) for unmet, changes in ((0, _NOTHING), (12, {})))
    assert full - plain < 220_000
    section = task_sections(analyse(_sampled(4)))[0]
    assert section.samples[0]["tests"][0]["test_id"].startswith("t::<")
    assert len(section.samples[0]["tests"]) + section.samples[0]["more_tests"] == 12


def test_more_samples_than_have_a_place_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_pages, "_SAMPLES_SHOWN", 6 * 3 * 3)
    results = _sampled(5)
    section = task_sections(analyse(results))[0]
    assert [row["sample"] for row in section.samples] == ["original-1", "original-2", "original-3"]
    assert (section.graded, section.controls, section.more) == (5, 10, 3 * 2)
    assert "6 more samples in graded_results" in html_report(results)


def test_a_lost_patch_is_told_at_its_attempt_and_once_above() -> None:
    row = graded_row("steady", "demo-002", "original-1", resolved=False, attempt=0, patch_sha256="gone")
    results = SweepBuilder({"steady": [2, 1, 0]}, samples=2, rows=[row]).build()

    def read_blob(digest: str) -> bytes:
        raise AssertionError("it is known that there is no such blob")

    results = replace(results, lost_patches=frozenset({"gone"}), read_blob=read_blob)
    document = html_report(results)
    assert "Its patch <code>gone</code> is missing from the lake" in document
    assert (
        "the patch of 1 attempt is missing from the lake or was changed there (steady demo-002 original-1)" in document
    )
