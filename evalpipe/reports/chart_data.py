"""Which numbers go into the further plots of a report."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis
from evalpipe.reports.charts import QUANTILES, Bar, CostPoint, RangeRow
from evalpipe.reports.comparisons import Comparison
from evalpipe.reports.plots import ForestRow
from evalpipe.reports.scoreboard import agent_label
from evalpipe.reports.tables import AgentRow
from evalpipe.reports.usage import measured
from evalpipe.stats.intervals import Interval
from evalpipe.stats.passes import mean_pass_hat_k


def pass_hat_curves(analysis: Analysis) -> list[tuple[str, list[float]]]:
    """Return pass^k for k = 1 up to the smallest number of samples, per contender and mode with several samples."""
    found = []
    for row in _rated(analysis):
        most = row.repeated.k if row.repeated else 0
        values = [mean_pass_hat_k(row.counts, k) for k in range(1, most + 1)]
        if most > 1:
            found.append((_label(analysis, row), [value for value in values if value is not None]))
    return found


def task_differences(analysis: Analysis, row: Comparison) -> list[float]:
    """Return second minus first on every task graded for both."""
    first, second = (analysis.samples.tallies[name, row.mode].counts for name in (row.first, row.second))
    return [second[task].rate - count.rate for task, count in first.items() if task in second]


def failure_bars(analysis: Analysis) -> list[Bar]:
    """Return, per contender and mode, the share of each verdict among the attempts that count and do not resolve."""
    bars: list[Bar] = []
    for row in _contenders(analysis):
        reasons: Counter[str] = Counter()
        for one in analysis.outcomes:
            if (one.agent, one.mode) == (row.agent.name, row.mode) and one.counts and one.verdict != "resolved":
                ended = one.outcome if one.verdict == "not_graded" else one.verdict
                reasons[ended] += one.samples
        total = sum(reasons.values())
        if total:
            bars.append(Bar(f"{_label(analysis, row)}: {wording.count(total, 'attempt')}"))
        bars += [
            Bar(wording.words(reason), f"{number} ({100 * number / total:.0f} %)", number / total)
            for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ]
    return bars


def cost_points(analysis: Analysis) -> list[CostPoint]:
    """Return mean cost per attempt against pass@1, where the cost of every attempt is known."""
    usage = {(row.agent, row.mode): row for row in analysis.usage}
    found = []
    for row in _rated(analysis):
        cost = usage[row.agent.name, row.mode].mean_cost
        if row.estimate and cost:
            label = _label(analysis, row)
            found.append(CostPoint(label, cost.mean, cost.interval, row.estimate.rate, row.estimate.interval))
    return found


def taken_ranges(analysis: Analysis, column: str) -> list[RangeRow]:
    """Return how `column` of `measured` spreads, per contender and mode, over attempts that resolved and the others."""
    table = measured(analysis.results, analysis.samples).select(["agent", "prompt_mode", "resolved", column])
    rows: list[RangeRow] = []
    for row in _contenders(analysis):
        mine = table.filter((pc.field("agent") == row.agent.name) & (pc.field("prompt_mode") == row.mode))
        found = []
        for resolved, label in ((True, "resolved"), (False, "not resolved")):
            values = mine.filter(pc.equal(mine["resolved"], pa.scalar(resolved)))[column].drop_null().to_numpy()
            if values.size:
                spread = np.quantile(values, QUANTILES).tolist()
                found.append(
                    RangeRow(label, f"{wording.amount(spread[2])} ({wording.count(values.size, 'attempt')})", spread)
                )
        if found:
            rows += [RangeRow(_label(analysis, row)), *found]
    return rows


def gap_forest(analysis: Analysis) -> list[ForestRow]:
    """Return the two rates of each agent: the dot is the original prompt, the other end of the line the terse one."""
    rows = []
    for row in analysis.gaps:
        if row.gap and row.gap.paired.tasks >= wording.LEAST_TASKS_FOR_A_RATE:
            original, terse = row.gap.original_rate, row.gap.terse_rate
            value = f"{wording.rate(original)}, terse {wording.rate(terse)}"
            rows.append(ForestRow(row.agent, value, original, Interval(min(original, terse), max(original, terse))))
    return rows


def _contenders(analysis: Analysis) -> list[AgentRow]:
    return [row for row in analysis.agents if row.agent.contends] if analysis.valid else []


def _rated(analysis: Analysis) -> list[AgentRow]:
    return [row for row in _contenders(analysis) if row.enough_for_a_rate]


def _label(analysis: Analysis, row: AgentRow) -> str:
    return agent_label(row, with_mode=len(analysis.results.modes) > 1)
