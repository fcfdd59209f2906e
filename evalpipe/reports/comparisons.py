"""Pairwise comparisons that the sweep fixed beforehand, judged by Holm inside that one family."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from evalpipe.manifest import MISSING, Difference, describe_differences, differences
from evalpipe.reports import wording
from evalpipe.reports.findings import Caution, Finding
from evalpipe.reports.records import SweepResults
from evalpipe.reports.samples import Samples, Tally
from evalpipe.stats.multiple import LEVEL, holm
from evalpipe.stats.paired import PairedComparison, compare_paired
from evalpipe.stats.power import pilot_detectable_difference

# What tells two runs apart, and what the agent is; every other field is how the two were treated.
RUN_ITSELF = ("run_id", "created_at", "probe", "agent_images")
AGENT_ITSELF = (
    *RUN_ITSELF,
    "agent.name",
    "agent.adapter",
    "agent.model",
    "agent.model_version",
    "agent.scaffold",
    "agent.scaffold_version",
    "agent.tools",
    "agent.provider",
    "agent.command",
    "agent.variables",
    "agent.forwarder",
    "program",
    "provider_url",
)
# Conditions of agents that are watched while they run.
_WATCHED = ("environment.silence_s", "environment.count_rate_limit_waits")


class Disputed(StrEnum):
    """Attempts that one may take as failed: what broke them, or what they did, may be the agent's own doing."""

    INVALID = "invalid"
    FLAGGED = "flagged"


class Pair(NamedTuple):
    """Two agents in one prompt mode, by the names that a reader sees, with their samples."""

    first: str
    second: str
    mode: str
    left: Tally
    right: Tally


@dataclass(frozen=True, slots=True)
class Comparison:
    """Second minus first agent in one prompt mode.

    `adjusted_p` is Holm over all comparisons of the family. `detectable` is what these data could have seen
    at the level that Holm leaves the smallest of them. `paired` is None when no task is graded for both.
    `rests_on` are attempts of the better agent, counted, without which its lead is not detected: once they are taken
    as failed.
    """

    first: str
    second: str
    mode: str
    paired: PairedComparison | None
    adjusted_p: float | None
    detectable: float | None
    rests_on: Mapping[Disputed, int] = field(default_factory=dict)

    @property
    def better(self) -> str | None:
        """The agent that solves more, None unless the adjusted test says so."""
        if self.paired is None or self.adjusted_p is None or self.adjusted_p > LEVEL:
            return None
        return self.second if self.paired.difference > 0 else self.first

    @property
    def other(self) -> str:
        """The agent that is not the better one; the second where neither is."""
        return self.first if self.better == self.second else self.second

    @property
    def proviso(self) -> str:
        """What a lead hangs on, as the end of a sentence; empty where it stands either way."""
        attempts = [wording.count(number, f"{kind} attempt") for kind, number in self.rests_on.items()]
        return f", but not with its {' or its '.join(attempts)} taken as failed" if attempts else ""

    @property
    def sentence(self) -> str:
        """What may be said of this pair; never that the two are equal."""
        if self.paired is None:
            return "no task is graded for both"
        if self.better is None or self.adjusted_p is None:
            return f"no difference detected ({self.could_have_seen})"
        gain = wording.points(abs(self.paired.difference))
        return f"{wording.plain(self.better)} solves more ({gain}, {wording.p_value(self.adjusted_p)}){self.proviso}"

    @property
    def could_have_seen(self) -> str:
        if self.detectable is None:
            return "these tasks and samples could not have shown one"
        return f"could have seen {wording.detectable(self.detectable)}"


def compare_agents(results: SweepResults, samples: Samples) -> tuple[Comparison, ...]:
    """Compare the pairs of the sweep in every mode; all of them are one family for Holm."""
    tallies = samples.tallies
    return judge_family(
        [
            Pair(first, second, mode, tallies[first, mode], tallies[second, mode])
            for first, second in results.comparisons
            for mode in results.modes
        ]
    )


def judge_family(pairs: Sequence[Pair]) -> tuple[Comparison, ...]:
    """Compare every pair, with Holm over all of them."""
    paired = [compare_paired(pair.left.counts, pair.right.counts) for pair in pairs]
    # A pair that cannot be compared yet keeps its place in the family, or the level would depend on luck.
    p_values = [1.0 if found is None else found.p_value for found in paired]
    adjusted = holm(p_values)
    level = LEVEL / max(1, len(pairs))
    return tuple(
        Comparison(
            first=pair.first,
            second=pair.second,
            mode=pair.mode,
            paired=found,
            adjusted_p=None if found is None else adjusted[number],
            detectable=pilot_detectable_difference(pair.left.counts, pair.right.counts, alpha=level),
            rests_on=_rests_on(pair, found, p_values, number) if found and adjusted[number] <= LEVEL else {},
        )
        for number, (pair, found) in enumerate(zip(pairs, paired, strict=True))
    )


def _rests_on(pair: Pair, found: PairedComparison, p_values: Sequence[float], number: int) -> dict[Disputed, int]:
    """The attempts of the better agent without which its lead would not be detected, all other pairs as they are."""
    second_leads = found.difference > 0
    better = pair.right if second_leads else pair.left
    taken_as_failed = {
        Disputed.INVALID: (better.invalid, better.counts_with_invalid),
        Disputed.FLAGGED: (better.flagged, better.counts_without_flagged),
    }
    rests_on = {}
    for kind, (attempts, counts) in taken_as_failed.items():
        if not attempts:
            continue
        sides = (pair.left.counts, counts) if second_leads else (counts, pair.right.counts)
        then = compare_paired(*sides)
        assert then is not None
        adjusted = holm([*p_values[:number], then.p_value, *p_values[number + 1 :]])[number]
        if adjusted > LEVEL or (then.difference > 0) is not second_leads:
            rests_on[kind] = attempts
    return rests_on


class ConditionsDiffer(NamedTuple):
    """Where the manifests of two agents differ beyond the agents themselves: how the two were treated."""

    first: str
    second: str
    found: list[Difference]

    def lines(self, shown: Callable[[str], str] = str) -> list[str]:
        """A line for each difference, with the agents' names as `shown` gives them."""
        return describe_differences(self.found, shown(self.first), shown(self.second))


def differing_conditions(manifests: Mapping[str, Mapping[str, Any]]) -> list[ConditionsDiffer]:
    """Compare the manifests of a sweep's agents in one prompt mode, by the agents' names: each with the same one.

    That is the first whose manifest has every condition: where nothing of an agent's own runs, nothing is watched.
    """
    if not manifests:
        return []
    first = next((name for name, one in manifests.items() if "silence_s" in one["environment"]), next(iter(manifests)))
    return [
        ConditionsDiffer(first, name, conditions_that_differ(manifests[first], manifest))
        for name, manifest in manifests.items()
        if name != first
    ]


def conditions_that_differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    """Where the manifests of two agents differ beyond the agents themselves; not in how both are watched, if one is."""
    return [
        found
        for found in differences(dict(first), dict(second), ignore=AGENT_ITSELF)
        if found.path not in _WATCHED or MISSING not in (found.left, found.right)
    ]


def manifest_findings(results: SweepResults) -> tuple[Finding, ...]:
    """Return every difference of the contenders' manifests beyond the agents themselves.

    Manifests differ between prompt modes by design; agents are compared inside a mode.
    """
    found = []
    for mode in results.modes:
        shown = list(results.contenders)
        for agent in shown:
            if (agent.name, mode) not in results.manifests:
                text = f"{wording.plain(agent.name)} ({wording.plain(mode)}) has no manifest: its settings are unknown"
                found.append(Finding(Caution.NO_MANIFEST, text))
        names = [agent.name for agent in shown if (agent.name, mode) in results.manifests]
        differ = differing_conditions({name: results.manifests[name, mode] for name in names})
        found += [
            Finding(Caution.MANIFESTS_DIFFER, f"run under different conditions: {wording.plain(line, 400)}")
            for one in differ
            for line in one.lines(wording.plain)
        ]
    return tuple(found)
