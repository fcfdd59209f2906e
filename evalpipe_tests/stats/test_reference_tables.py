"""The tables of the statistics reference that evalpipe does not compute itself, held to scipy and statsmodels:
the page argues with them, so they must be true."""

import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import Interval
from evalpipe.stats.paired import paired_t_interval
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
    found = paired_t_interval(rates)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx(interval, abs=6e-7)


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


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.001, 0.012, 0.03, 0.04, 0.2], [0.005, 0.03, 0.05, 0.05, 0.2]),
        ([0.01, 0.04, 0.03], [0.03, 0.04, 0.04]),
    ],
)
def test_benjamini_hochberg_is_more_lenient_than_holm(p_values: list[float], adjusted: list[float]) -> None:
    assert list(multipletests(p_values, method="fdr_bh")[1]) == pytest.approx(adjusted)
