import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.passes import (
    mean_pass_at_k,
    mean_pass_hat_k,
    pass_at_k,
    pass_hat_k,
    repeated_passes,
    steadiness,
)
from evalpipe_tests.stats import golden


@pytest.mark.parametrize(
    ("samples", "passes", "k", "any_passes", "all_pass"),
    [
        (4, 1, 2, 0.5, 0),
        (4, 2, 2, 0.8333333333, 0.1666666667),
        (4, 3, 2, 1, 0.5),
        (4, 3, 4, 1, 0),
        (5, 3, 2, 0.9, 0.3),
        (8, 6, 4, 1, 0.2142857143),
        (10, 3, 5, 0.9166666667, 0),
        (200, 20, 10, 0.6602256238, 0),
    ],
)
def test_golden_values(samples: int, passes: int, k: int, any_passes: float, all_pass: float) -> None:
    count = TaskCount(passes, samples)
    assert pass_at_k(count, k) == pytest.approx(any_passes, abs=5e-11)
    # The reference prints 0 for the last row; its exact value is 8.2e-12.
    assert pass_hat_k(count, k) == pytest.approx(all_pass, abs=5e-11)


@pytest.mark.parametrize(
    ("counts", "every", "best"),
    [
        (golden.SET_A, 0.388889, 0.833333),
        (golden.SPEC_LIKE, 0.388889, 0.944444),
        (golden.SET_B, 1, 1),
        (golden.SET_C, 0, 0),
        (golden.SET_D, 0.4, 0.8),
        (golden.SET_E, 0.377778, 0.8),
        (golden.SET_F, 0.944444, 1),
    ],
)
def test_averages_over_tasks(counts: list[TaskCount], every: float, best: float) -> None:
    found = repeated_passes(counts)
    assert found is not None
    assert found.k == 4
    assert found.pass_hat_k == pytest.approx(every, abs=5e-7)
    assert found.pass_at_k == pytest.approx(best, abs=5e-7)


def test_k_falls_to_the_smallest_number_of_samples() -> None:
    found = repeated_passes(golden.SET_G)
    assert found is not None
    assert found.k == 3
    assert found.pass_hat_k == pytest.approx((1 + 1 / 4 + 0 + 0 + 1) / 5)


def test_more_samples_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="k = 5"):
        pass_at_k(TaskCount(1, 4), 5)
    with pytest.raises(ValueError, match="k = 0"):
        pass_hat_k(TaskCount(1, 4), 0)


def test_nothing_is_said_without_tasks() -> None:
    assert repeated_passes([]) is None
    assert mean_pass_at_k([], 1) is None
    assert mean_pass_hat_k([], 1) is None


def test_steadiness_sorts_the_tasks() -> None:
    found = steadiness(golden.SET_A)
    assert (found.stable, found.sometimes, found.never) == (7, 8, 3)


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))))
def test_both_equal_the_share_of_all_subsets(case: tuple[int, int, int]) -> None:
    passes, samples, k = case
    outcomes = [True] * passes + [False] * (samples - passes)
    subsets = list(itertools.combinations(outcomes, k))
    count = TaskCount(passes, samples)
    assert pass_at_k(count, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_hat_k(count, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))
