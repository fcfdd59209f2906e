"""The report as one HTML file: no script, nothing fetched, opens offline.

Everything that a page needs is inside it. Text from agents, issues and tests goes through Jinja's escaping;
only the plots of this package are put in as they are.
"""

import json

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis, analyse
from evalpipe.reports.chart_data import (
    cost_points,
    failure_bars,
    gap_forest,
    pass_hat_curves,
    taken_ranges,
    task_differences,
)
from evalpipe.reports.charts import bars_svg, cost_svg, curves_svg, differences_svg, ranges_svg
from evalpipe.reports.cutoffs import cutoff_table
from evalpipe.reports.detail_tables import excluded_table, left_out_table, outcome_table, pair_table
from evalpipe.reports.figures import (
    agents_forest,
    category_forest,
    difference_ticks,
    differences_forest,
    task_heat_map,
)
from evalpipe.reports.findings import failed_calibrations
from evalpipe.reports.gaps import gap_table
from evalpipe.reports.plots import forest_svg, heat_map_svg
from evalpipe.reports.provenance import provenance
from evalpipe.reports.records import SweepResults
from evalpipe.reports.scoreboard import (
    INTERVAL_NOTE,
    category_table,
    comparison_table,
    review_table,
    scoreboard_table,
)
from evalpipe.reports.signals import what_tells_apart
from evalpipe.reports.task_pages import task_sections
from evalpipe.reports.usage import not_measured_note, price_note, usage_table

# A report over 500 tasks and 10 agents must stay a file that opens at once.
_SIGNS_SHOWN = 500
_CANDIDATES_SHOWN = 300
_TESTS_NAMED = 8
_MANIFEST_CHARACTERS = 100_000
_PAIRS_DRAWN = 12
_PROMPT_CHARACTERS = 4_000


def html_report(results: SweepResults) -> str:
    """Return the evaluation report as one self-contained HTML document."""
    analysis = analyse(results)
    environment = _environment()
    template = environment.get_template("report.html.j2")
    return template.render(
        analysis=analysis,
        results=results,
        css=Markup(_source(environment, "report.css")),
        scoreboard=scoreboard_table(analysis),
        comparisons=comparison_table(analysis),
        categories=category_table(analysis) if analysis.valid else None,
        solved=pair_table(analysis),
        gaps=gap_table(analysis.gaps, analysis.gap_differences),
        usage=usage_table(analysis.usage, results.prices),
        usage_note=f"{price_note(results.prices)} {not_measured_note(analysis.usage)}".rstrip(),
        cutoffs=cutoff_table(analysis.cutoffs),
        outcomes=outcome_table(analysis),
        review=review_table(analysis, _SIGNS_SHOWN),
        excluded=excluded_table(analysis),
        left_out=left_out_table(results, _CANDIDATES_SHOWN),
        plots=_plots(analysis),
        differences=_differences(analysis),
        provenance=provenance(results),
        interval_note=INTERVAL_NOTE,
        failed_calibrations=failed_calibrations(results.calibration),
        apart=what_tells_apart(analysis.signals),
        calibrated=sorted({str(task) for task in results.calibration["task_id"].to_pylist()}),
        tasks=task_sections(analysis),
        manifests=_manifests(results),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("evalpipe.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "words": wording.words,
        "plain": wording.plain,
        "counted": wording.count,
        "prompt": lambda text: wording.plain_block(text, _PROMPT_CHARACTERS),
    }
    environment.globals["tests_named"] = _TESTS_NAMED
    environment.globals["provisional_mark"] = wording.PROVISIONAL
    return environment


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _plots(analysis: Analysis) -> dict[str, Markup]:
    agents, categories = agents_forest(analysis), category_forest(analysis)
    heat = task_heat_map(analysis)
    pairs = differences_forest(analysis)
    found = dict.fromkeys(("agents", "categories", "heat", "pairs"), "")
    if agents:
        found["agents"] = forest_svg(agents, "agents", "pass@1 of every agent with 95 % intervals")
    if categories:
        found["categories"] = forest_svg(categories, "categories", "pass@1 per category with 95 % intervals")
    if pairs:
        ticks = difference_ticks(pairs)
        found["pairs"] = forest_svg(pairs, "pairs", "differences of pass@1 with 95 % intervals", ticks)
    if heat.tasks and heat.agents:
        found["heat"] = heat_map_svg(heat, "heat", "share of samples solved, task by agent")
    found |= _charts(analysis)
    return {name: Markup(svg) for name, svg in found.items()}


def _charts(analysis: Analysis) -> dict[str, str]:
    curves, failures, costs = pass_hat_curves(analysis), failure_bars(analysis), cost_points(analysis)
    seconds, tokens = taken_ranges(analysis, "attempt_seconds"), taken_ranges(analysis, "tokens")
    gaps = gap_forest(analysis)
    return {
        "curves": curves_svg(curves, "curves", "pass^k over k") if curves else "",
        "failures": bars_svg(failures, "failures", "why attempts did not resolve their task") if failures else "",
        "costs": cost_svg(costs, "costs", "cost per attempt against pass@1") if costs else "",
        "seconds": ranges_svg(seconds, "seconds", "seconds of an attempt") if seconds else "",
        "tokens": ranges_svg(tokens, "tokens", "tokens of an attempt") if tokens else "",
        "gaps": forest_svg(gaps, "gaps", "pass@1 with the original and the terse prompt") if gaps else "",
    }


def _differences(analysis: Analysis) -> list[tuple[str, Markup]]:
    """The plots of the differences on single tasks, each with the name of its pair."""
    found = []
    for number, row in enumerate(analysis.comparisons[:_PAIRS_DRAWN]):
        values = task_differences(analysis, row)
        if values:
            svg = differences_svg(values, f"pair{number}", "differences by task")
            found.append((f"{row.second} minus {row.first}, {row.mode}", Markup(svg)))
    return found


def _manifests(results: SweepResults) -> list[tuple[str, str]]:
    found = []
    for agent in results.agents:
        for mode in results.modes:
            manifest = results.manifests.get((agent.name, mode))
            if manifest is not None:
                text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False)
                found.append((f"{agent.name} · {mode}", wording.plain_block(text, _MANIFEST_CHARACTERS)))
    return found
