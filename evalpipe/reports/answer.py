"""The answer in a sentence or two: what stands first in every form of the report.

It names a best agent only where the comparisons fixed beforehand show one, and says what else it depends on.
"""

from collections.abc import Sequence

from evalpipe.reports import wording
from evalpipe.reports.comparisons import Comparison
from evalpipe.reports.findings import Finding
from evalpipe.reports.records import SweepResults
from evalpipe.reports.samples import Samples

_PAIRS_NAMED = 3


def answer(
    results: SweepResults,
    samples: Samples,
    no_result: Sequence[Finding],
    ranking: Finding | None,
    comparisons: Sequence[Comparison],
) -> str:
    """Return what the sweep says to its decision."""
    if no_result:
        return f"This sweep has no results: {no_result[0].text}."
    return f"{_of_results(results, ranking, comparisons)}{_unfinished(results, samples)}"


def missing_samples(results: SweepResults, samples: Samples) -> int:
    """Return how many samples of contenders were never graded."""
    return sum(len(samples.tallies[agent.name, mode].missing) for agent in results.contenders for mode in results.modes)


def _unfinished(results: SweepResults, samples: Samples) -> str:
    missing = missing_samples(results, samples)
    if not missing:
        return ""
    verb = "is" if missing == 1 else "are"
    expected = len(results.contenders) * len(results.modes) * len(results.tasks) * results.samples_per_task
    return f" {missing} of {wording.count(expected, 'sample')} {verb} missing, so this can still change."


def _of_results(results: SweepResults, ranking: Finding | None, comparisons: Sequence[Comparison]) -> str:
    if ranking:
        return ranking.text
    if len(results.contenders) == 1:
        return f"{wording.plain(results.contenders[0].name)} ran alone: its rate stands below, compared with nobody."
    if not comparisons:
        return "No comparison was fixed before the run: the rates below rank nobody."
    known = [comparison for comparison in comparisons if comparison.paired]
    if not known:
        return "No two agents that are to be compared have a graded task in common: nothing is compared yet."
    decided = [comparison for comparison in known if comparison.better]
    if not decided:
        return _undecided(known)
    best = _best(results, comparisons)
    if best:
        return best
    if len(decided) > _PAIRS_NAMED:
        return _many(decided, len(known))
    parts = "; ".join(_decided(results, comparison) for comparison in decided)
    return f"{parts}. No agent is shown to be the best of all."


def _undecided(known: Sequence[Comparison]) -> str:
    if len(known) == 1:
        names = f"{wording.plain(known[0].first)} and {wording.plain(known[0].second)}"
        return f"No difference detected between {names} ({known[0].could_have_seen})."
    seen = sorted(one.detectable for one in known if one.detectable is not None)
    if not seen:
        return f"No difference detected in any of {len(known)} comparisons (none of them could have shown one)."
    few = " at best" if len(seen) < len(known) else ""
    least, most = wording.detectable(seen[0]), wording.detectable(seen[-1])
    span = most if least == most else f"{least.split()[0]} to {most}"
    return f"No difference detected in any of {len(known)} comparisons (could have seen {span}{few})."


def _best(results: SweepResults, comparisons: Sequence[Comparison]) -> str | None:
    """Name a best agent only if it beat every other contender in every mode, in declared comparisons.

    And only where that does not hang on attempts that are invalid or flagged.
    """
    for agent in results.contenders:
        others = {other.name for other in results.contenders} - {agent.name}
        beaten = {
            (comparison.other, comparison.mode)
            for comparison in comparisons
            if comparison.better == agent.name and not comparison.rests_on
        }
        if beaten >= {(other, mode) for other in others for mode in results.modes}:
            against = wording.listed(sorted(others))
            if len(comparisons) == 1:
                gain = _gain(comparisons[0])
                return f"{wording.plain(agent.name)} solves more of these tasks than {against}: {gain}."
            each = against if len(others) == 1 else f"each of {against}"
            modes = " with every prompt" if len(results.modes) > 1 else ""
            by = _span([comparison for comparison in comparisons if comparison.better == agent.name])
            return f"{wording.plain(agent.name)} solves more of these tasks than {each}{modes}, by {by}."
    return None


def _span(decided: Sequence[Comparison]) -> str:
    """The smallest to the largest of these differences, in points."""
    numbers = sorted(round(abs(one.paired.difference) * 100) for one in decided if one.paired)
    most = wording.count(numbers[-1], "point")
    return most if numbers[0] == numbers[-1] else f"{numbers[0]} to {most}"


def _many(decided: Sequence[Comparison], known: int) -> str:
    behind = {comparison.other for comparison in decided}
    ahead = [name for name in dict.fromkeys(one.better for one in decided) if name and name not in behind]
    names = f"Ahead in some and behind in none: {wording.listed(ahead)}. " if ahead else ""
    shown = f"{len(decided)} of {known} comparisons show a difference ({_span(decided)})."
    return f"{shown} {names}No agent is shown to be the best of all."


def _decided(results: SweepResults, comparison: Comparison) -> str:
    mode = f" with {wording.plain(comparison.mode)} prompts" if len(results.modes) > 1 else ""
    return (
        f"{wording.plain(comparison.better or '')} solves more than {wording.plain(comparison.other)}{mode} "
        f"({_gain(comparison)}){comparison.proviso}"
    )


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
