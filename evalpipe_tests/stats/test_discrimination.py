import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.discrimination import LEAST_SAMPLES, TaskSignal, discriminate


def _agents(*passes: list[int], samples: int = 4) -> list[dict[str, TaskCount]]:
    return [{f"t{index}": TaskCount(count, samples) for index, count in enumerate(row)} for row in passes]


def test_all_or_none_of_twelve_samples_say_no_more() -> None:
    found = discriminate(_agents([4, 0, 1], [4, 0, 4], [4, 0, 2]))
    assert [found[task].signal for task in ("t0", "t1", "t2")] == [
        TaskSignal.SATURATED,
        TaskSignal.DEAD,
        TaskSignal.INFORMATIVE,
    ]
    assert found["t2"].spread == 0.75


def test_one_agent_of_four_samples_decides_nothing() -> None:
    found = discriminate(_agents([4, 0]))
    assert {task.signal for task in found.values()} == {TaskSignal.UNDECIDED}


def test_the_threshold_leaves_a_high_rate() -> None:
    interval = stats.binomtest(LEAST_SAMPLES, LEAST_SAMPLES).proportion_ci(method="exact")
    assert interval.low == pytest.approx(0.735, abs=5e-4)


def test_item_rest_needs_five_agents_and_something_that_varies() -> None:
    four = _agents([4, 4], [3, 2], [1, 1], [0, 0])
    assert discriminate(four)["t0"].item_rest is None
    five = [*four, *_agents([2, 3])]
    assert discriminate(five)["t0"].item_rest == pytest.approx(np.corrcoef([4, 3, 1, 0, 2], [4, 2, 1, 0, 3])[0, 1])
    assert discriminate(_agents(*[[4, number] for number in range(5)]))["t0"].item_rest is None


def test_a_task_that_strong_agents_fail_is_suspect() -> None:
    found = discriminate(_agents(*[[4 - number, number, number] for number in range(5)]))
    assert found["t0"].item_rest == pytest.approx(-1)
    assert found["t0"].suspect_p == pytest.approx(0, abs=1e-6)


def test_how_suspect_a_task_is_equals_scipy() -> None:
    found = discriminate(_agents([4, 4], [3, 2], [1, 1], [0, 0], [2, 3], [0, 4]))["t0"]
    oracle = stats.pearsonr([4, 3, 1, 0, 2, 0], [4, 2, 1, 0, 3, 4], alternative="less")
    assert (found.item_rest, found.suspect_p) == pytest.approx((oracle.statistic, oracle.pvalue))


def test_a_task_that_only_some_agents_were_graded_on() -> None:
    found = discriminate([{"a": TaskCount(1, 2)}, {"b": TaskCount(2, 2)}])
    assert (found["a"].passes, found["a"].samples, found["b"].spread) == (1, 2, 0.0)
    assert discriminate([]) == {}


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=8))
def test_passes_and_spread_stay_in_range(passes: list[list[int]]) -> None:
    for task in discriminate(_agents(*passes, samples=3)).values():
        assert 0 <= task.passes <= task.samples == 3 * len(passes)
        assert 0 <= task.spread <= 1
        assert task.item_rest is None or -1 - 1e-9 <= task.item_rest <= 1 + 1e-9
