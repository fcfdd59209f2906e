"""The tables of the statistics reference that evalpipe does not compute itself, held to scipy and statsmodels:
the page argues with them, so they must be true."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import special, stats
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import Interval, t_interval, wilson
from evalpipe.stats.paired import compare_paired
from evalpipe.stats.power import within_task_variance
from evalpipe_tests.stats import golden


@pytest.mark.parametrize(
    ("passes", "tasks", "exact", "jeffreys", "agresti_coull"),
    [
        (0, 18, (0, 0.185302), (0.000027, 0.128558), (0, 0.206711)),
        (1, 5, (0.005051, 0.716418), (0.022513, 0.628626), (0.020321, 0.640369)),
        (11, 18, (0.357451, 0.827014), (0.383354, 0.806187), (0.385426, 0.797712)),
        (18, 18, (0.814698, 1), (0.871442, 0.999973), (0.793289, 1)),
        (27, 45, (0.443314, 0.743024), (0.454326, 0.733265), (0.454312, 0.729958)),
        (44, 72, (0.488937, 0.723845), (0.495950, 0.717538), (0.495487, 0.715480)),
        (45, 45, (0.921295, 1), (0.946002, 0.999989), (0.906164, 1)),
        (61, 100, (0.507314, 0.705990), (0.512382, 0.701353), (0.511945, 0.699916)),
    ],
)
def test_other_intervals(
    passes: int,
    tasks: int,
    exact: tuple[float, float],
    jeffreys: tuple[float, float],
    agresti_coull: tuple[float, float],
) -> None:
    for method, expected in (("beta", exact), ("jeffreys", jeffreys), ("agresti_coull", agresti_coull)):
        assert proportion_confint(passes, tasks, method=method) == pytest.approx(expected, abs=6e-7), method


@pytest.mark.parametrize(
    ("counts", "error", "interval"),
    [
        (golden.SET_A, 0.093109, (0.414669, 0.807553)),
        (golden.SPEC_LIKE, 0.081405, (0.439362, 0.782860)),
        (golden.SET_D, 0.203101, (0.036101, 1.163899)),
        (golden.SET_E, 0.059139, (0.480812, 0.719188)),
        (golden.SET_F, 0.013889, (0.956808, 1.015414)),
    ],
)
def test_t_intervals_of_task_means(counts: list[TaskCount], error: float, interval: tuple[float, float]) -> None:
    rates = [count.rate for count in counts]
    assert stats.sem(rates) == pytest.approx(error, abs=6e-7)
    found = t_interval(rates)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx(interval, abs=6e-7)


@pytest.mark.parametrize("counts", [golden.SET_B, golden.SET_C])
def test_tasks_that_all_agree_have_a_point_for_a_t_interval(counts: list[TaskCount]) -> None:
    found = t_interval([count.rate for count in counts])
    assert found == Interval(counts[0].rate, counts[0].rate)


def test_the_t_and_z_intervals_of_the_examples_with_18_tasks() -> None:
    found = t_interval([count.rate for count in golden.SPEC_LIKE])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.4394, 0.7829), abs=5e-5)
    rates = [count.rate for count in golden.of_four(0, 8, 2, 0, 8)]
    half = stats.norm.ppf(0.975) * stats.sem(rates)
    assert (np.mean(rates) - half, np.mean(rates) + half) == pytest.approx((0.4420, 0.7802), abs=5e-5)


def _intraclass_correlation(counts: Sequence[TaskCount]) -> float:
    """(MSB-MSW)/(MSB+(k-1)MSW), from an analysis of variance of the single samples."""
    k = counts[0].samples
    groups = [[1] * count.passes + [0] * (k - count.passes) for count in counts]
    means = [float(np.mean(group)) for group in groups]
    between = k * float(np.var(means, ddof=1))
    within = sum(float(np.var(group)) * k for group in groups) / (len(counts) * (k - 1))
    return (between - within) / (between + (k - 1) * within) if between + within else float("nan")


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (golden.SET_A, 0.511332),
        (golden.SET_B, float("nan")),
        (golden.SET_D, 0.644444),
        (golden.SET_E, 0.528476),
        (golden.SET_F, 0),
    ],
)
def test_intraclass_correlations(counts: list[TaskCount], expected: float) -> None:
    assert _intraclass_correlation(counts) == pytest.approx(expected, abs=6e-7, nan_ok=True)


def _beta_binomial_posterior(counts: Sequence[TaskCount]) -> list[float]:
    """Central 95 % of the mean under uniform priors on mean and correlation, on the page's own grid: 2,000 x 200 cells,
    read at the middle of a cell."""
    means, correlations = ((np.arange(cells) + 0.5) / cells for cells in (2000, 200))
    mean, correlation = np.meshgrid(means, correlations, indexing="ij")
    alpha, beta = (part * (1 - correlation) / correlation for part in (mean, 1 - mean))
    log = np.zeros_like(mean)
    for count, times in Counter(counts).items():
        failures = count.samples - count.passes
        log += times * (special.betaln(count.passes + alpha, failures + beta) - special.betaln(alpha, beta))
    weight = np.exp(log - log.max()).sum(axis=1)
    return [float(bound) for bound in np.interp([0.025, 0.975], np.cumsum(weight) / weight.sum(), means)]


@pytest.mark.parametrize(
    ("counts", "interval"),
    [
        (golden.SET_A, (0.43253, 0.76474)),
        (golden.SET_B, (0.87555, 0.99903)),
        (golden.SET_E, (0.48140, 0.70312)),
    ],
)
def test_beta_binomial_posteriors(counts: list[TaskCount], interval: tuple[float, float]) -> None:
    assert _beta_binomial_posterior(counts) == pytest.approx(interval, abs=6e-6)


def test_four_of_four_say_little_of_a_task() -> None:
    assert stats.binomtest(4, 4).proportion_ci(method="exact").low == pytest.approx(0.40, abs=5e-3)
    assert wilson(1, 4).low == pytest.approx(0.51, abs=5e-3)


def test_the_factor_of_a_detectable_difference() -> None:
    assert stats.norm.ppf(0.975) + stats.norm.ppf(0.8) == pytest.approx(2.8016, abs=5e-5)


def test_the_fixed_tasks_of_set_e_are_known_better_than_work_like_them() -> None:
    assert (within_task_variance(golden.SET_E) / 4 / 45) ** 0.5 == pytest.approx(0.0253, abs=5e-5)


@pytest.mark.parametrize(
    ("one", "other", "p_value"),
    [(5, 0, 0.0625), (6, 0, 0.03125), (8, 2, 0.109375), (10, 3, 0.092285), (7, 7, 1), (2, 0, 0.5)],
)
def test_mcnemar_on_collapsed_samples(one: int, other: int, p_value: float) -> None:
    assert mcnemar([[0, one], [other, 0]], exact=True).pvalue == pytest.approx(p_value, abs=6e-7)


def test_other_tests_of_the_paired_set() -> None:
    first = [count.rate for count in golden.AGENT_A.values()]
    second = [count.rate for count in golden.AGENT_B.values()]
    found = stats.ttest_rel(second, first)
    assert (found.statistic, found.pvalue) == pytest.approx((3.828207, 0.00134586), abs=6e-7)
    assert stats.wilcoxon(second, first, method="approx").pvalue == pytest.approx(0.00389242, abs=6e-9)


def test_the_mid_p_value_of_the_paired_set_counts_what_was_seen_by_half() -> None:
    found = compare_paired(golden.AGENT_A, golden.AGENT_B)
    assert found is not None
    # All nine differences go one way: of the sign patterns only the two ends are as extreme, and no more so.
    seen = 2 / 2**found.discordant
    assert (found.p_value, found.p_value - seen / 2) == pytest.approx((0.00390625, 0.00195313), abs=6e-9)


def test_the_majority_of_samples_leaves_two_discordant_tasks_of_the_paired_set() -> None:
    solved = [[2 * count.passes > count.samples for count in agent.values()] for agent in golden.PAIR]
    only = Counter(zip(*solved, strict=True))
    assert (only[False, True], only[True, False]) == (2, 0)
    assert mcnemar([[0, 2], [0, 0]], exact=True).pvalue == 0.5


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.001, 0.012, 0.03, 0.04, 0.2], [0.005, 0.03, 0.05, 0.05, 0.2]),
        ([0.01, 0.04, 0.03], [0.03, 0.04, 0.04]),
    ],
)
def test_benjamini_hochberg_is_more_lenient_than_holm(p_values: list[float], adjusted: list[float]) -> None:
    assert list(multipletests(p_values, method="fdr_bh")[1]) == pytest.approx(adjusted)
