from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import t_interval
from evalpipe.stats.paired import (
    PairedMethod,
    compare_paired,
    sampled_sign_flip_p_value,
    scaled_differences,
    sign_flip_p_value,
)
from evalpipe_tests.stats import golden


@pytest.mark.parametrize(
    ("differences", "p_value"),
    [
        ([1, 1, 1, 1, 1], 0.0625),
        ([4] * 6, 0.03125),
        ([2, -1, 1, 3, 0], 0.375),
        ([1, -1], 1),
        ([0, 0, 0], 1),
        ([3, 2, -1, 1, 1, 2, 0, -2], 0.328125),
        ([], 1),
    ],
)
def test_sign_flip_golden_values(differences: list[int], p_value: float) -> None:
    assert sign_flip_p_value(differences) == p_value


def test_paired_set() -> None:
    found = compare_paired(golden.AGENT_A, golden.AGENT_B)
    assert found is not None
    assert found.difference == pytest.approx(0.138889, abs=5e-7)
    rates = [sum(count.rate for count in agent.values()) / 18 for agent in golden.PAIR]
    assert rates == pytest.approx([0.513889, 0.652778], abs=5e-7)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.062344, abs=5e-7)
    assert found.interval.high == pytest.approx(0.215434, abs=5e-7)
    assert found.p_value == 0.00390625
    assert found.method is PairedMethod.EXACT
    assert (found.first_better, found.second_better, found.ties) == (0, 9, 9)


def test_agents_that_never_differ_get_no_interval() -> None:
    found = compare_paired(golden.AGENT_A, golden.AGENT_A)
    assert found is not None
    assert found.method is PairedMethod.NO_DISCORDANT_TASKS
    assert (found.p_value, found.interval, found.difference) == (1.0, None, 0.0)


@pytest.mark.parametrize("tasks", [1, 2, 12])
def test_tasks_that_all_differ_alike_get_no_interval_without_width(tasks: int) -> None:
    solved = {str(task): TaskCount(3, 3) for task in range(tasks)}
    never = {task: TaskCount(0, 3) for task in solved}
    found = compare_paired(never, solved)
    assert found is not None
    assert (found.difference, found.interval, found.discordant) == (1.0, None, tasks)
    assert found.p_value == pytest.approx(2.0 ** (1 - tasks))


def test_an_interval_ends_where_no_difference_can_be() -> None:
    first = {str(task): TaskCount(0, 4) for task in range(4)}
    found = compare_paired(first, {task: TaskCount(1 if task == "0" else 4, 4) for task in first})
    assert found is not None
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.8125 - 3.182446 * 0.1875, abs=1e-6)
    assert found.interval.high == 1.0


def test_only_tasks_graded_for_both_count() -> None:
    first = {"a": TaskCount(4, 4), "b": TaskCount(0, 4)}
    second = {"b": TaskCount(4, 4), "c": TaskCount(4, 4)}
    found = compare_paired(first, second)
    assert found is not None
    assert (found.tasks, found.difference) == (1, 1.0)
    assert compare_paired(first, {"c": TaskCount(1, 1)}) is None


def test_unequal_samples_are_compared_as_rates() -> None:
    first = {"a": TaskCount(1, 2), "b": TaskCount(0, 4)}
    second = {"a": TaskCount(2, 3), "b": TaskCount(3, 4)}
    found = compare_paired(first, second)
    assert found is not None
    assert found.difference == pytest.approx((2 / 3 - 1 / 2 + 3 / 4) / 2)
    assert scaled_differences([Fraction(1, 6), Fraction(3, 4)]) == ([2, 9], 12)
    assert scaled_differences([]) == ([], 1)


def test_sample_numbers_without_a_small_multiple_fall_back_to_seeded_resampling() -> None:
    primes = [97, 101, 103, 107, 109, 113, 127, 131]
    first = {str(prime): TaskCount(10, prime) for prime in primes}
    second = {str(prime): TaskCount(60, prime) for prime in primes}
    found = compare_paired(first, second)
    assert found is not None
    assert found.method is PairedMethod.MONTE_CARLO
    assert found.p_value == pytest.approx(2 / 2**8, abs=0.002)
    assert found == compare_paired(first, second)


def test_resampling_agrees_with_the_exact_test() -> None:
    differences = [3, 2, -1, 1, 1, 2, 0, -2]
    assert sampled_sign_flip_p_value(differences) == pytest.approx(0.328125, abs=0.006)
    assert sampled_sign_flip_p_value([0.0, 0.0]) == 1.0


def _scipy_p_value(differences: Sequence[int]) -> float:
    values = np.asarray(differences, dtype=float)
    result = stats.permutation_test(
        (values,),
        lambda sample, axis=-1: np.abs(np.sum(sample, axis=axis)),
        permutation_type="samples",
        n_resamples=1_000_000,
        alternative="greater",
        vectorized=True,
    )
    return float(result.pvalue)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=9).filter(any))
def test_equals_scipy_over_all_sign_patterns(differences: list[int]) -> None:
    assert sign_flip_p_value(differences) == pytest.approx(_scipy_p_value(differences), abs=1e-12)


@given(st.lists(st.integers(-8, 8), max_size=20), st.randoms())
def test_neither_order_nor_direction_nor_ties_matter(differences: list[int], random: object) -> None:
    expected = sign_flip_p_value(differences)
    shuffled = [*differences, 0, 0]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert sign_flip_p_value(shuffled) == pytest.approx(expected, abs=1e-12)
    assert sign_flip_p_value([-value for value in differences]) == pytest.approx(expected, abs=1e-12)
    assert 0 < expected <= 1


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=30).filter(lambda values: len(set(values)) > 1))
def test_the_interval_equals_scipy_paired_t(differences: list[int]) -> None:
    interval = t_interval(differences)
    oracle = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert interval is not None
    assert interval.low == pytest.approx(oracle.low, abs=1e-9)
    assert interval.high == pytest.approx(oracle.high, abs=1e-9)
