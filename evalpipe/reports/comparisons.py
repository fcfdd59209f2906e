"""Pairwise comparisons that the sweep fixed beforehand, judged by Holm inside that one family."""

from collections.abc import Mapping
from dataclasses import dataclass

from evalpipe.manifest import describe_differences, differences
from evalpipe.reports import wording
from evalpipe.reports.findings import Caution, Finding
from evalpipe.reports.records import AgentInfo, SweepResults
from evalpipe.reports.samples import Samples
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Second minus first agent in one prompt mode.

    `adjusted_p` is Holm over all comparisons of the sweep. `detectable` is what these data could have seen
    at the level that Holm leaves the smallest of them. `paired` is None when no task is graded for both.
    """

    first: str
    second: str
    mode: str
    paired: PairedComparison | None
    adjusted_p: float | None
    detectable: float | None

    @property
    def better(self) -> str | None:
        """The agent that solves more, None unless the adjusted test says so."""
        if self.paired is None or self.adjusted_p is None or self.adjusted_p > LEVEL:
            return None
        return self.second if self.paired.difference > 0 else self.first

    @property
    def sentence(self) -> str:
        """What may be said of this pair; never that the two are equal."""
        if self.paired is None:
            return "no task is graded for both"
        if self.better is None or self.adjusted_p is None:
            return f"no difference detected ({self.could_have_seen})"
        gain = wording.points(abs(self.paired.difference))
        return f"{wording.plain(self.better)} solves more ({gain}, {wording.p_value(self.adjusted_p)})"

    @property
    def could_have_seen(self) -> str:
        if self.detectable is None:
            return "these tasks and samples could not have shown one"
        return f"could have seen {wording.detectable(self.detectable)}"


def compare_agents(results: SweepResults, samples: Samples) -> tuple[Comparison, ...]:
    """Compare the pairs of the sweep in every mode; all of them are one family for Holm."""
    keys = [(first, second, mode) for first, second in results.comparisons for mode in results.modes]
    sides = [
        (samples.tallies[first, mode].counts, samples.tallies[second, mode].counts) for first, second, mode in keys
    ]
    paired = [compare_paired(first, second) for first, second in sides]
    # A pair that cannot be compared yet keeps its place in the family, or the level would depend on luck.
    adjusted = holm([1.0 if found is None else found.p_value for found in paired])
    level = LEVEL / max(1, len(keys))
    return tuple(
        Comparison(
            first=first,
            second=second,
            mode=mode,
            paired=found,
            adjusted_p=None if found is None else p_value,
            detectable=pilot_detectable_difference(*side, alpha=level),
        )
        for (first, second, mode), found, p_value, side in zip(keys, paired, adjusted, sides, strict=True)
    )


def manifest_findings(results: SweepResults) -> tuple[Finding, ...]:
    """Return every difference of the shown manifests beyond the agent itself, against the first contender.

    Manifests differ between prompt modes by design; agents are compared inside a mode.
    """
    found = []
    for mode in results.modes:
        shown = list(results.contenders)
        for agent in shown:
            if (agent.name, mode) not in results.manifests:
                text = f"{wording.plain(agent.name)} ({wording.plain(mode)}) has no manifest: its settings are unknown"
                found.append(Finding(Caution.NO_MANIFEST, text))
        with_manifest = [agent for agent in shown if (agent.name, mode) in results.manifests]
        found += [
            finding
            for agent in with_manifest[1:]
            for finding in _differences(with_manifest[0], agent, mode, results.manifests)
        ]
    return tuple(found)


def _differences(
    first: AgentInfo, second: AgentInfo, mode: str, manifests: Mapping[tuple[str, str], Mapping[str, object]]
) -> list[Finding]:
    left, right = dict(manifests[first.name, mode]), dict(manifests[second.name, mode])
    left_name, right_name = wording.plain(first.name), wording.plain(second.name)
    found = differences(left, right, ignore=AGENT_ITSELF)
    return [
        Finding(Caution.MANIFESTS_DIFFER, f"run under different conditions: {wording.plain(line, 400)}")
        for line in describe_differences(found, left_name, right_name)
    ]
