"""Everything that a report says, computed once and in one place; the renderers only write it down."""

from collections.abc import Mapping
from dataclasses import dataclass

from evalpipe.reports import wording
from evalpipe.reports.answer import answer, missing_samples
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
        *(_comparison_cautions(results, samples, comparisons) if valid else []),
        *_weight_cautions(results, weighted),
        *([] if ranking else signal_cautions(signals)),
    ]
    return Analysis(
        results=results,
        samples=samples,
        no_result=no_result,
        cautions=tuple(found),
        answer=answer(results, samples, no_result, ranking, comparisons),
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


def _comparison_cautions(results: SweepResults, samples: Samples, comparisons: tuple[Comparison, ...]) -> list[Finding]:
    if not comparisons:
        text = "no comparison was fixed before the run, so none is tested; rates side by side are not a ranking"
        return [Finding(Caution.NO_COMPARISON, text)] if len(results.contenders) > 1 else []
    found = []
    if missing_samples(results, samples):
        text = "p values hold once all samples are graded: looking earlier finds differences by chance more often"
        found.append(Finding(Caution.UNFINISHED, text))
    wanted = results.smallest_difference
    if wanted is not None:
        found += _what_matters(comparisons, wanted)
    return found


def _what_matters(comparisons: tuple[Comparison, ...], wanted: float) -> list[Finding]:
    """What the comparisons say of the smallest difference that matters to the decision."""
    found = []
    matter = f"the {wording.detectable(wanted)} that matter to the decision"
    blind = [one for one in comparisons if not one.better and (one.detectable is None or one.detectable > wanted)]
    if blind:
        pairs = wording.listed(f"{one.first} and {one.second}" for one in blind)
        found.append(Finding(Caution.TOO_COARSE, f"could not have seen {matter}: {pairs}"))
    small = [one for one in comparisons if one.better and one.paired and abs(one.paired.difference) < wanted]
    if small:
        pairs = wording.listed(f"{one.better} and {one.other}" for one in small)
        found.append(Finding(Caution.SMALL_DIFFERENCE, f"detected, but less than {matter}: {pairs}"))
    return found


def _weight_cautions(results: SweepResults, weighted: tuple[WeightedRow, ...]) -> list[Finding]:
    if results.weights is None:
        return []
    refused = sorted({row.refused for row in weighted if row.refused})
    weighed = {category for category, weight in results.weights.items() if weight}
    unweighted = sorted({task.category for task in results.tasks} - weighed)
    found = [Finding(Caution.WEIGHTED_TOTAL_REFUSED, f"no weighted total: {text}") for text in refused]
    if unweighted and len(refused) < len(weighted):
        names = wording.listed(map(wording.words, unweighted))
        text = f"tasks of {names} have no weight and are not in the weighted total"
        found.append(Finding(Caution.UNWEIGHTED_CATEGORY, text))
    return found
