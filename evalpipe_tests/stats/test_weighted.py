import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import task_clustered_wilson, wilson
from evalpipe.stats.weighted import EmptyCategoryError, weighted_total
from evalpipe_tests.stats import golden


def _of_four(passes: list[int]) -> list[TaskCount]:
    return [TaskCount(count, 4) for count in passes]


COUNTS = {
    "bugfix": golden.SET_A,
    "feature": _of_four([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4]),
    "refactor": _of_four([0, 0, 1, 2, 3, 4, 4, 4, 4]),
    "test": _of_four([4, 4, 4, 4, 3, 4]),
}
WEIGHTS = {"bugfix": 0.5, "feature": 0.25, "refactor": 0.15, "test": 0.10}


def test_golden_total() -> None:
    total = weighted_total(COUNTS, WEIGHTS)
    assert total.rate == pytest.approx(0.638889, abs=5e-7)
    assert total.variance == pytest.approx(0.00390873, abs=5e-9)
    assert total.variance**0.5 == pytest.approx(0.06252, abs=5e-6)
    shrunk = math.fsum(WEIGHTS[name] * estimate.shrunk_rate for name, estimate in total.by_category.items())
    assert shrunk == pytest.approx(0.615869, abs=5e-7)
    assert total.effective_samples == pytest.approx(60.524683, abs=5e-7)
    assert total.interval.low == pytest.approx(0.512966, abs=5e-7)
    assert total.interval.high == pytest.approx(0.748234, abs=5e-7)


def test_the_form_with_the_raw_total_is_another_interval() -> None:
    total = weighted_total(COUNTS, WEIGHTS)
    size = total.rate * (1 - total.rate) / total.variance
    interval = wilson(total.rate, size)
    assert size == pytest.approx(59.024293, abs=5e-6)
    assert (interval.low, interval.high) == pytest.approx((0.511365, 0.749439), abs=5e-7)


def test_golden_category_intervals() -> None:
    total = weighted_total(COUNTS, WEIGHTS)
    expected = {
        "bugfix": (0.4208, 0.7727),
        "feature": (0.3588, 0.7779),
        "refactor": (0.3294, 0.8341),
        "test": (0.5749, 0.9975),
    }
    for category, (low, high) in expected.items():
        interval = total.by_category[category].interval
        assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


def test_the_unweighted_mean_beside_it() -> None:
    estimate = task_clustered_wilson([count for counts in COUNTS.values() for count in counts])
    assert estimate is not None
    assert estimate.rate == pytest.approx(0.65)


def test_variance_shares_sum_to_one() -> None:
    total = weighted_total(COUNTS, WEIGHTS)
    assert math.fsum(total.variance_shares.values()) == pytest.approx(1)
    assert max(total.variance_shares, key=lambda name: total.variance_shares[name]) == "bugfix"


@pytest.mark.parametrize("factor", [0.2, 3, 100])
def test_only_the_ratio_of_weights_matters(factor: float) -> None:
    scaled = weighted_total(COUNTS, {name: weight * factor for name, weight in WEIGHTS.items()})
    plain = weighted_total(COUNTS, WEIGHTS)
    assert scaled.rate == pytest.approx(plain.rate)
    assert scaled.interval.low == pytest.approx(plain.interval.low)
    assert scaled.weights == pytest.approx(WEIGHTS)


def test_a_weighted_category_without_tasks_refuses_the_total() -> None:
    with pytest.raises(EmptyCategoryError, match="dependency") as caught:
        weighted_total(COUNTS, {**WEIGHTS, "dependency": 0.1})
    assert caught.value.categories == ("dependency",)


def test_a_category_of_weight_zero_needs_no_tasks() -> None:
    assert weighted_total(COUNTS, {**WEIGHTS, "dependency": 0.0}).rate == pytest.approx(0.638889, abs=5e-7)


@pytest.mark.parametrize("weights", [{}, {"bugfix": 0.0}, {"bugfix": -1.0, "test": 3.0}, {"test": math.nan}])
def test_weights_that_are_none_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="weights must be"):
        weighted_total(COUNTS, weights)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_one_category_alone_keeps_its_rate(passes: list[int]) -> None:
    counts = _of_four(passes)
    total, alone = weighted_total({"bugfix": counts}, {"bugfix": 1}), task_clustered_wilson(counts)
    assert alone is not None
    assert total.rate == pytest.approx(alone.rate)
    assert 0 <= total.interval.low <= total.rate <= total.interval.high <= 1
    assert total.effective_samples == pytest.approx(alone.effective_samples)
