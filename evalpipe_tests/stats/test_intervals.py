import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import Z_95, task_clustered_wilson, wilson
from evalpipe_tests.stats import golden

COUNTS = st.integers(1, 6).flatmap(
    lambda samples: st.integers(0, samples).map(lambda passes: TaskCount(passes, samples))
)
TASKS = st.lists(COUNTS, min_size=1, max_size=40)


def test_z_is_the_two_sided_95_percent_quantile() -> None:
    assert pytest.approx(1.959963984540054, abs=1e-15) == Z_95


@pytest.mark.parametrize(
    ("passes", "tasks", "low", "high"),
    [
        (0, 18, 0, 0.175879),
        (1, 5, 0.036224, 0.624465),
        (11, 18, 0.386190, 0.796948),
        (18, 18, 0.824121, 1),
        (27, 45, 0.454519, 0.729751),
        (44, 72, 0.495624, 0.715343),
        (45, 45, 0.921348, 1),
        (61, 100, 0.512030, 0.699831),
    ],
)
def test_wilson_golden_values(passes: int, tasks: int, low: float, high: float) -> None:
    interval = wilson(passes / tasks, tasks)
    assert interval.low == pytest.approx(low, abs=5e-7)
    assert interval.high == pytest.approx(high, abs=5e-7)


@pytest.mark.parametrize(
    ("counts", "rate", "effective", "low", "high"),
    [
        pytest.param(golden.SET_A, 0.611111, 25.851969, 0.420804, 0.772669, id="A"),
        pytest.param(golden.SPEC_LIKE, 0.611111, 32.188235, 0.439644, 0.758886, id="spec-like"),
        pytest.param(golden.SET_B, 1, 18, 0.824121, 1, id="B all pass"),
        pytest.param(golden.SET_C, 0, 18, 0, 0.175879, id="C none pass"),
        pytest.param(golden.SET_D, 0.6, 5.485714, 0.241731, 0.875898, id="D five tasks"),
        pytest.param(golden.SET_E, 0.6, 66.968598, 0.480341, 0.708809, id="E"),
        pytest.param(golden.SET_F, 0.986111, 20.357143, 0.818780, 0.999105, id="F nearly all"),
        pytest.param(golden.SET_G, 0.65, 5.807453, 0.283460, 0.897103, id="G unequal samples"),
    ],
)
def test_task_clustered_wilson_golden_values(
    counts: list[TaskCount], rate: float, effective: float, low: float, high: float
) -> None:
    estimate = task_clustered_wilson(counts)
    assert estimate is not None
    assert estimate.rate == pytest.approx(rate, abs=5e-7)
    assert estimate.effective_samples == pytest.approx(effective, abs=5e-7)
    assert estimate.interval.low == pytest.approx(low, abs=5e-7)
    assert estimate.interval.high == pytest.approx(high, abs=5e-7)
    assert estimate.tasks == len(counts)
    assert estimate.samples == sum(count.samples for count in counts)


def test_without_tasks_there_is_no_estimate() -> None:
    assert task_clustered_wilson([]) is None


def test_a_count_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one graded sample"):
        TaskCount(0, 0)
    with pytest.raises(ValueError, match="5 passes of 4"):
        TaskCount(5, 4)


@pytest.mark.parametrize(("rate", "size"), [(-0.1, 5), (1.1, 5), (0.5, 0), (math.nan, 5)])
def test_wilson_refuses_what_is_no_proportion(rate: float, size: float) -> None:
    with pytest.raises(ValueError, match=r"must be positive|between 0 and 1"):
        wilson(rate, size)


@given(TASKS)
def test_the_interval_holds_the_rate_and_stays_in_the_unit_range(counts: list[TaskCount]) -> None:
    estimate = task_clustered_wilson(counts)
    assert estimate is not None
    assert 0 <= estimate.interval.low <= estimate.rate <= estimate.interval.high <= 1
    assert estimate.interval.low < estimate.interval.high
    assert estimate.variance > 0
    assert estimate.tasks <= estimate.effective_samples <= estimate.samples + 1e-9


@given(TASKS, st.randoms())
def test_the_order_of_tasks_changes_nothing(counts: list[TaskCount], random: object) -> None:
    shuffled = list(counts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert task_clustered_wilson(shuffled) == task_clustered_wilson(counts)


@given(st.integers(1, 5), st.lists(st.integers(0, 5), min_size=1, max_size=30), st.data())
def test_one_more_pass_moves_rate_and_bounds_up(samples: int, passes: list[int], data: st.DataObject) -> None:
    counts = [TaskCount(min(value, samples), samples) for value in passes]
    index = data.draw(st.integers(0, len(counts) - 1))
    if counts[index].passes == samples:
        return
    more = [*counts[:index], TaskCount(counts[index].passes + 1, samples), *counts[index + 1 :]]
    before, after = task_clustered_wilson(counts), task_clustered_wilson(more)
    assert before is not None
    assert after is not None
    assert after.rate > before.rate
    assert after.interval.low >= before.interval.low - 1e-12
    assert after.interval.high >= before.interval.high - 1e-12


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_with_one_sample_it_is_plain_wilson_as_in_statsmodels(case: tuple[int, int]) -> None:
    passes, tasks = case
    counts = [TaskCount(1, 1)] * passes + [TaskCount(0, 1)] * (tasks - passes)
    estimate = task_clustered_wilson(counts)
    low, high = proportion_confint(passes, tasks, method="wilson")
    assert estimate is not None
    assert estimate.effective_samples == pytest.approx(tasks)
    assert estimate.interval.low == pytest.approx(low, abs=1e-12)
    assert estimate.interval.high == pytest.approx(high, abs=1e-12)


@given(TASKS)
def test_it_is_statsmodels_wilson_on_the_effective_size(counts: list[TaskCount]) -> None:
    estimate = task_clustered_wilson(counts)
    assert estimate is not None
    size = estimate.effective_samples
    low, high = proportion_confint(estimate.rate * size, size, method="wilson")
    assert estimate.interval.low == pytest.approx(low, abs=1e-9)
    assert estimate.interval.high == pytest.approx(high, abs=1e-9)
