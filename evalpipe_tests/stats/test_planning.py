import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.planning import ASSUMED_SPREAD, Spread, pilot_spread, planned_difference, tasks_needed
from evalpipe_tests.stats import golden

_SAMPLES = (1, 2, 4, 8)
# Reference A9: tasks, then the difference at 1, 2, 4 and 8 samples of each agent.
_BIMODAL_HALF = {
    18: (0.404, 0.330, 0.286, 0.261),
    30: (0.313, 0.256, 0.222, 0.202),
    45: (0.256, 0.209, 0.181, 0.165),
    60: (0.222, 0.181, 0.157, 0.143),
    100: (0.172, 0.140, 0.121, 0.111),
    200: (0.121, 0.099, 0.086, 0.078),
    400: (0.086, 0.070, 0.061, 0.055),
}
_BIMODAL_HIGH = {
    18: (0.362, 0.276, 0.222, 0.188),
    30: (0.280, 0.214, 0.172, 0.146),
    45: (0.229, 0.175, 0.140, 0.119),
    60: (0.198, 0.151, 0.121, 0.103),
    100: (0.153, 0.117, 0.094, 0.080),
    200: (0.109, 0.083, 0.066, 0.057),
    400: (0.077, 0.059, 0.047, 0.040),
}
_MIDDLE = {
    18: (0.443, 0.256, 0.209),
    30: (0.343, 0.198, 0.162),
    45: (0.280, 0.162, 0.132),
    60: (0.243, 0.140, 0.114),
    100: (0.188, 0.109, 0.089),
    200: (0.133, 0.077, 0.063),
    400: (0.094, 0.054, 0.044),
}


@pytest.mark.parametrize(
    ("spread", "samples", "table"),
    [
        pytest.param(ASSUMED_SPREAD, _SAMPLES, _BIMODAL_HALF, id="bimodal, correlation .5"),
        pytest.param(Spread(2 * 0.125 * 0.2, 0.25), _SAMPLES, _BIMODAL_HIGH, id="bimodal, correlation .8"),
        pytest.param(Spread(2 * 0.05 * 0.5, 0.4), (1, 4, 8), _MIDDLE, id="Beta(2,2), correlation .5"),
    ],
)
def test_golden_detectable_differences(
    spread: Spread, samples: tuple[int, ...], table: dict[int, tuple[float, ...]]
) -> None:
    for tasks, expected in table.items():
        found = [planned_difference(spread, tasks=tasks, samples=number) for number in samples]
        assert found == pytest.approx(list(expected), abs=6e-4), tasks


@pytest.mark.parametrize(
    ("difference", "tasks"), [(0.05, (1178, 589, 491)), (0.10, (295, 148, 123)), (0.15, (131, 66, 55))]
)
def test_golden_numbers_of_tasks(difference: float, tasks: tuple[int, ...]) -> None:
    assert tuple(tasks_needed(ASSUMED_SPREAD, difference=difference, samples=k) for k in (1, 4, 8)) == tasks


def test_more_samples_than_eight_help_little_at_45_tasks() -> None:
    assert planned_difference(ASSUMED_SPREAD, tasks=45, samples=10**6) == pytest.approx(0.148, abs=5e-4)


def test_too_few_tasks_see_nothing() -> None:
    assert planned_difference(ASSUMED_SPREAD, tasks=5, samples=8) is None
    # Six tasks that differ by one sample each are the least that the test can see.
    assert planned_difference(Spread(0, 0), tasks=12, samples=1) == 0.5


@given(st.floats(0.02, 0.9), st.integers(1, 10))
def test_the_number_of_tasks_sees_the_difference(difference: float, samples: int) -> None:
    tasks = tasks_needed(ASSUMED_SPREAD, difference=difference, samples=samples)
    found = planned_difference(ASSUMED_SPREAD, tasks=tasks, samples=samples)
    assert found is None or found <= difference + 1e-9
    if tasks > 7:
        fewer = planned_difference(ASSUMED_SPREAD, tasks=tasks - 1, samples=samples)
        assert fewer is None or fewer > difference - 1e-9


def test_no_difference_needs_no_finite_number_of_tasks() -> None:
    with pytest.raises(ValueError, match="above zero"):
        tasks_needed(ASSUMED_SPREAD, difference=0, samples=4)


def test_a_pilot_gives_its_spread() -> None:
    found = pilot_spread(golden.AGENT_A, golden.AGENT_B)
    assert found is not None
    # Var(d) = (diff/t)²·n; chance inside tasks is more than all of it here.
    assert found.task_variance == 0
    assert found.chance_variance > 0
    single = {str(index): TaskCount(index % 2, 1) for index in range(8)}
    other = {str(index): TaskCount(index % 3 == 0, 1) for index in range(8)}
    alone = pilot_spread(single, other)
    assert alone is not None
    assert alone.chance_variance == 0
    assert alone.task_variance > 0
    assert pilot_spread(single, {}) is None
