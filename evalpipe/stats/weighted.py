"""A total over categories, weighted by the team's workload instead of by the mix of the task set."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import Z_95, Interval, RateEstimate, task_clustered_wilson, wilson


class EmptyCategoryError(ValueError):
    """A category has a weight but no graded task; `categories` names all of them."""

    def __init__(self, categories: Sequence[str]) -> None:
        self.categories = tuple(categories)
        super().__init__(f"no graded task in {', '.join(categories)}, which carries weight in the total")


@dataclass(frozen=True, slots=True)
class WeightedTotal:
    """The weighted rate with its interval.

    `weights` are normalised to 1. `variance_shares` say how much of the uncertainty each category brings:
    the largest is where more tasks help most.
    """

    rate: float
    interval: Interval
    variance: float
    effective_samples: float
    weights: dict[str, float]
    variance_shares: dict[str, float]
    by_category: dict[str, RateEstimate]


def weighted_total(
    counts: Mapping[str, Sequence[TaskCount]], weights: Mapping[str, float], z: float = Z_95
) -> WeightedTotal:
    """Return Σ w_c·p_c with a Wilson interval on the effective size P2(1-P2)/Σ w_c²·v_c.

    v_c is the regularised variance of a category, P2 the weighted sum of the shrunk rates. The weights are
    taken as known. Categories without a weight do not enter. Source: post-stratification; reference A7.
    Raises EmptyCategoryError when a weighted category has no task, ValueError for weights that are negative
    or all zero.
    """
    whole = math.fsum(weights.values())
    if whole <= 0 or any(weight < 0 or not math.isfinite(weight) for weight in weights.values()):
        raise ValueError("weights must be zero or more, with at least one above zero")
    shares = {category: weight / whole for category, weight in weights.items() if weight > 0}
    estimates = {category: task_clustered_wilson(counts.get(category, ()), z) for category in shares}
    found = {category: estimate for category, estimate in estimates.items() if estimate is not None}
    if len(found) < len(shares):
        raise EmptyCategoryError([category for category in shares if category not in found])
    parts = {category: shares[category] ** 2 * estimate.variance for category, estimate in found.items()}
    variance = math.fsum(parts.values())
    shrunk = math.fsum(shares[category] * estimate.shrunk_rate for category, estimate in found.items())
    rate = math.fsum(shares[category] * estimate.rate for category, estimate in found.items())
    rate = min(1.0, max(0.0, rate))
    effective = shrunk * (1 - shrunk) / variance
    return WeightedTotal(
        rate=rate,
        interval=wilson(rate, effective, z),
        variance=variance,
        effective_samples=effective,
        weights=shares,
        variance_shares={category: part / variance for category, part in parts.items()},
        by_category=found,
    )
