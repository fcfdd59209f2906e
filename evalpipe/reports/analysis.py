"""Everything that a report says, computed once and in one place; the renderers only write it down."""

from collections.abc import Mapping
from dataclasses import dataclass

from evalpipe.reports import wording
from evalpipe.reports.comparisons import Comparison, compare_agents, manifest_findings
from evalpipe.reports.cutoffs import CutoffRow, cutoff_rows
from evalpipe.reports.findings import Caution, Finding, cannot_rank, cautions, why_no_result
from evalpipe.reports.gaps import GapDifference, GapRow, gap_differences, gap_rows
from evalpipe.reports.records import SweepResults, is_provisional
from evalpipe.reports.review import FlaggedAttempt, flagged_attempts
from evalpipe.reports.samples import Samples, collect_samples
from evalpipe.reports.signals import signal_cautions, task_signals
from evalpipe.reports.tables import (
    AgentRow,
    CategoryRow,
    ExcludedRow,
    OutcomeRow,
    WeightedRow,
    agent_rows,
    category_rows,
    excluded_rows,
    outcome_rows,
    weighted_rows,
)
from evalpipe.reports.usage import UsageRow, usage_rows
from evalpipe.stats.discrimination import TaskDiscrimination


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The content of a report. A sweep that is not `valid` has no categories, totals or comparisons."""

    results: SweepResults
    samples: Samples
    no_result: tuple[Finding, ...]
    cautions: tuple[Finding, ...]
    answer: str
    agents: tuple[AgentRow, ...]
    categories: tuple[CategoryRow, ...]
    weighted: tuple[WeightedRow, ...]
    comparisons: tuple[Comparison, ...]
    outcomes: tuple[OutcomeRow, ...]
    excluded: tuple[ExcludedRow, ...]
    gaps: tuple[GapRow, ...]
    gap_differences: tuple[GapDifference, ...]
    usage: tuple[UsageRow, ...]
    cutoffs: tuple[CutoffRow, ...]
    signals: Mapping[str, TaskDiscrimination]
    review: tuple[FlaggedAttempt, ...]

    @property
    def provisional(self) -> bool:
        """Whether any rate rests on a task whose two validation passes ran on one day."""
        return is_provisional(self.results)

    @property
    def valid(self) -> bool:
        """Whether the sweep has results at all."""
        return not self.no_result


def analyse(results: SweepResults) -> Analysis:
    """Compute the content of the report of `results`."""
    samples = collect_samples(results)
    no_result = why_no_result(results, samples)
    valid = not no_result
    weighted = weighted_rows(results, samples) if valid else ()
    comparisons = compare_agents(results, samples) if valid else ()
    ranking = cannot_rank(results, samples)
    signals = task_signals(results, samples) if valid else {}
    found = [
        *([ranking] if ranking and valid else []),
        *cautions(results, samples),
        *manifest_findings(results),
        *(_comparison_cautions(results) if valid else []),
        *_weight_cautions(results, weighted),
        *([] if ranking else signal_cautions(signals)),
    ]
    return Analysis(
        results=results,
        samples=samples,
        no_result=no_result,
        cautions=tuple(found),
        answer=_answer(results, no_result, ranking, comparisons),
        agents=agent_rows(results, samples, valid=valid),
        categories=category_rows(results, samples, weighted) if valid else (),
        weighted=weighted,
        comparisons=comparisons,
        outcomes=outcome_rows(samples),
        excluded=excluded_rows(results.graded),
        gaps=gap_rows(results, samples) if valid else (),
        gap_differences=gap_differences(results, samples) if valid else (),
        usage=usage_rows(results, samples),
        cutoffs=cutoff_rows(results, samples) if valid else (),
        signals=signals,
        review=flagged_attempts(samples.chosen),
    )


def _comparison_cautions(results: SweepResults) -> list[Finding]:
    if results.comparisons or len(results.contenders) < 2:
        return []
    text = "no comparison was fixed before the run, so none is tested; rates side by side are not a ranking"
    return [Finding(Caution.NO_COMPARISON, text)]


def _weight_cautions(results: SweepResults, weighted: tuple[WeightedRow, ...]) -> list[Finding]:
    if results.weights is None:
        return []
    refused = sorted({row.refused for row in weighted if row.refused})
    unweighted = sorted({task.category for task in results.tasks} - results.weights.keys())
    found = [Finding(Caution.WEIGHTED_TOTAL_REFUSED, f"no weighted total: {text}") for text in refused]
    if unweighted:
        text = f"tasks of {wording.listed(unweighted)} have no weight and are not in the weighted total"
        found.append(Finding(Caution.UNWEIGHTED_CATEGORY, text))
    return found


def _answer(
    results: SweepResults,
    no_result: tuple[Finding, ...],
    ranking: Finding | None,
    comparisons: tuple[Comparison, ...],
) -> str:
    if no_result:
        return f"This sweep has no results: {no_result[0].text}."
    if ranking:
        return ranking.text
    if len(results.contenders) == 1:
        return f"{wording.plain(results.contenders[0].name)} ran alone: its rate stands below, compared with nobody."
    if not comparisons:
        return "No comparison was fixed before the run: the rates below rank nobody."
    best = _best(results, comparisons)
    if best:
        return best
    decided = [comparison for comparison in comparisons if comparison.better]
    if not decided:
        first = comparisons[0]
        if len(comparisons) == 1 and first.paired:
            names = f"{wording.plain(first.first)} and {wording.plain(first.second)}"
            return f"No difference detected between {names} ({first.could_have_seen})."
        return f"No difference detected in any of {len(comparisons)} comparisons; none of them names a best agent."
    parts = "; ".join(_decided(results, comparison) for comparison in decided)
    return f"{parts}. No agent is shown to be the best of all."


def _best(results: SweepResults, comparisons: tuple[Comparison, ...]) -> str | None:
    """Name a best agent only if it beat every other contender in every mode, in declared comparisons."""
    for agent in results.contenders:
        others = {other.name for other in results.contenders} - {agent.name}
        beaten = {
            (comparison.first if comparison.better == comparison.second else comparison.second, comparison.mode)
            for comparison in comparisons
            if comparison.better == agent.name
        }
        if beaten >= {(other, mode) for other in others for mode in results.modes}:
            against = wording.listed(sorted(others))
            if len(comparisons) == 1:
                return (
                    f"{wording.plain(agent.name)} solves more of these tasks than {against}: {_gain(comparisons[0])}."
                )
            each = against if len(others) == 1 else f"each of {against}"
            modes = " with every prompt" if len(results.modes) > 1 else ""
            return f"{wording.plain(agent.name)} solves more of these tasks than {each}{modes}."
    return None


def _gain(comparison: Comparison) -> str:
    paired = comparison.paired
    assert paired is not None
    assert comparison.adjusted_p is not None
    text = wording.points(abs(paired.difference))
    if paired.interval:
        sign = 1 if paired.difference > 0 else -1
        low, high = sorted((sign * paired.interval.low, sign * paired.interval.high))
        text += f", 95 % interval {round(low * 100):+d} to {round(high * 100):+d}"
    return f"{text}, {wording.p_value(comparison.adjusted_p)} after Holm"


def _decided(results: SweepResults, comparison: Comparison) -> str:
    loser = comparison.first if comparison.better == comparison.second else comparison.second
    mode = f" with {wording.plain(comparison.mode)} prompts" if len(results.modes) > 1 else ""
    return (
        f"{wording.plain(comparison.better or '')} solves more than {wording.plain(loser)}{mode} ({_gain(comparison)})"
    )
