"""The report for machines: `evalpipe report --json`. None stands where nothing can be said, never NaN."""

from dataclasses import asdict
from typing import Any

from evalpipe.reports.analysis import Analysis, analyse
from evalpipe.reports.comparisons import Comparison
from evalpipe.reports.cutoffs import CutoffRow
from evalpipe.reports.findings import Finding
from evalpipe.reports.gaps import GapDifference, GapRow
from evalpipe.reports.provenance import provenance
from evalpipe.reports.records import SweepResults
from evalpipe.reports.review import FlaggedAttempt
from evalpipe.reports.tables import AgentRow, CategoryRow, WeightedRow
from evalpipe.reports.wording import LEAST_TASKS_FOR_A_RATE
from evalpipe.stats.intervals import Interval, task_clustered_wilson


def summary(results: SweepResults) -> dict[str, Any]:
    """Return the whole scoreboard as JSON values; rates from 0 to 1, intervals as [low, high] at 95 %."""
    analysis = analyse(results)
    return {
        "sweep": results.sweep,
        "decision": results.decision,
        "answer": analysis.answer,
        "task_set": {
            "name": results.task_set,
            "revision": results.revision,
            "selection_rule": results.selection_rule,
            "tasks": len(results.tasks),
            "provisional": results.provisional,
        },
        "provisional": analysis.provisional,
        "provenance": provenance(results),
        "valid": analysis.valid,
        "reasons": [_finding(finding) for finding in analysis.no_result],
        "cautions": [_finding(finding) for finding in analysis.cautions],
        "agents": [_agent(row) for row in analysis.agents],
        "categories": [_category(row) for row in analysis.categories],
        "weighted_totals": [_weighted(row) for row in analysis.weighted],
        "comparisons": [_comparison(row) for row in analysis.comparisons],
        "prompt_gaps": [_gap(row) for row in analysis.gaps],
        "differences_of_gaps": [_gap_difference(row) for row in analysis.gap_differences],
        "cutoffs": [_cutoff(row) for row in analysis.cutoffs],
        "task_signals": {task: asdict(one) for task, one in analysis.signals.items()},
        "prices": asdict(results.prices),
        "usage": [asdict(row) for row in analysis.usage],
        "review": [_flagged(attempt) for attempt in analysis.review],
        "funnel": _funnel(analysis),
    }


def _flagged(attempt: FlaggedAttempt) -> dict[str, Any]:
    signs = [{"sign": sign.sign, "place": sign.place, "evidence": sign.evidence} for sign in attempt.signs]
    return {**asdict(attempt), "signs": signs}


def _finding(finding: Finding) -> dict[str, str]:
    return {"reason": finding.reason.value, "text": finding.text}


def _bounds(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _agent(row: AgentRow) -> dict[str, Any]:
    estimate, repeated, steady = row.estimate, row.repeated, row.steadiness
    return {
        "agent": row.agent.name,
        "mode": row.mode,
        "role": row.agent.role.value,
        "scripted": row.agent.scripted,
        "pass_at_1": estimate.rate if estimate else None,
        "interval": _bounds(estimate.interval if estimate else None),
        "tasks": len(row.counts),
        "samples": row.graded,
        "samples_expected": row.expected,
        "samples_invalid": row.invalid,
        "samples_missing": len(row.missing),
        "samples_flagged": row.flagged,
        "pass_at_1_invalid_as_failed": row.with_invalid.rate if row.with_invalid else None,
        "pass_at_1_flagged_as_failed": row.without_flagged.rate if row.without_flagged else None,
        "k": repeated.k if repeated else None,
        "pass_hat_k": repeated.pass_hat_k if repeated else None,
        "pass_at_k": repeated.pass_at_k if repeated else None,
        "tasks_stable": steady.stable if steady else None,
        "tasks_sometimes": steady.sometimes if steady else None,
        "tasks_never": steady.never if steady else None,
        "detectable_difference": row.detectable,
    }


def _category(row: CategoryRow) -> dict[str, Any]:
    return {
        "category": row.category,
        "agent": row.agent.name,
        "mode": row.mode,
        "tasks": len(row.counts),
        "tasks_in_set": row.tasks_in_set,
        "passes": sum(count.passes for count in row.counts),
        "samples": sum(count.samples for count in row.counts),
        "pass_at_1": row.estimate.rate if row.estimate and row.enough_for_a_rate else None,
        "interval": _bounds(row.estimate.interval if row.estimate and row.enough_for_a_rate else None),
        "weight": row.weight,
        "variance_share": row.variance_share,
    }


def _weighted(row: WeightedRow) -> dict[str, Any]:
    return {
        "agent": row.agent.name,
        "mode": row.mode,
        "pass_at_1": row.total.rate if row.total else None,
        "interval": _bounds(row.total.interval if row.total else None),
        "weights": row.total.weights if row.total else None,
        "refused": row.refused or None,
    }


def _comparison(row: Comparison) -> dict[str, Any]:
    paired = row.paired
    return {
        "first": row.first,
        "second": row.second,
        "mode": row.mode,
        "tasks": paired.tasks if paired else 0,
        "difference": paired.difference if paired else None,
        "interval": _bounds(paired.interval if paired else None),
        "p_value": paired.p_value if paired else None,
        "adjusted_p_value": row.adjusted_p,
        "method": paired.method.value if paired else None,
        "first_better": paired.first_better if paired else None,
        "second_better": paired.second_better if paired else None,
        "ties": paired.ties if paired else None,
        "detectable_difference": row.detectable,
        "better": row.better,
        "rests_on": [kind.value for kind in row.rests_on],
        "verdict": row.sentence,
    }


def _gap(row: GapRow) -> dict[str, Any]:
    gap = row.gap
    return {
        "agent": row.agent,
        "tasks": gap.paired.tasks if gap else 0,
        "original": gap.original_rate if gap else None,
        "terse": gap.terse_rate if gap else None,
        "ratio": gap.ratio if gap else None,
        "gap": gap.paired.difference if gap else None,
        "interval": _bounds(gap.paired.interval if gap else None),
        "p_value": gap.paired.p_value if gap else None,
        "adjusted_p_value": row.adjusted_p,
        "detectable_difference": row.detectable,
    }


def _gap_difference(row: GapDifference) -> dict[str, Any]:
    paired = row.paired
    return {
        "first": row.first,
        "second": row.second,
        "tasks": paired.tasks if paired else 0,
        "difference": paired.difference if paired else None,
        "interval": _bounds(paired.interval if paired else None),
        "p_value": paired.p_value if paired else None,
        "adjusted_p_value": row.adjusted_p,
        "detectable_difference": row.detectable,
    }


def _cutoff(row: CutoffRow) -> dict[str, Any]:
    found: dict[str, Any] = {"agent": row.agent, "mode": row.mode, "cutoff": row.cutoff.isoformat()}
    for name, counts in (("before", row.before), ("after", row.after)):
        estimate = task_clustered_wilson(counts) if len(counts) >= LEAST_TASKS_FOR_A_RATE else None
        found[f"tasks_{name}"] = len(counts)
        found[f"pass_at_1_{name}"] = estimate.rate if estimate else None
        found[f"interval_{name}"] = _bounds(estimate.interval if estimate else None)
    return found


def _funnel(analysis: Analysis) -> dict[str, dict[str, int]]:
    return {"mining": dict(analysis.results.mining), "validation": dict(analysis.results.validation)}
