from fractions import Fraction

import pytest

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.power import (
    gap_detectable_difference,
    least_discordant_tasks,
    pilot_detectable_difference,
    planned_detectable_difference,
    within_task_variance,
)
from evalpipe_tests.stats import golden


@pytest.mark.parametrize(("alpha", "tasks"), [(0.05, 6), (0.0625, 5), (0.03125, 6), (0.025, 7), (0.01, 8)])
def test_how_many_tasks_must_differ(alpha: float, tasks: int) -> None:
    assert least_discordant_tasks(alpha) == tasks
    assert 2 ** (1 - tasks) <= alpha < 2 ** (2 - tasks)


def test_chance_inside_tasks() -> None:
    assert within_task_variance([TaskCount(1, 2), TaskCount(2, 2)]) == pytest.approx(0.25)
    assert within_task_variance([TaskCount(1, 1)]) == 0


def test_the_paired_set_could_have_seen_ten_points() -> None:
    found = pilot_detectable_difference(golden.AGENT_A, golden.AGENT_B)
    assert found == pytest.approx(2.80159 * (0.138889 / 3.828207), abs=1e-4)


def test_agents_that_never_differ_do_not_promise_sharp_sight() -> None:
    same = {str(index): TaskCount(4, 4) for index in range(10)}
    found = pilot_detectable_difference(same, same)
    assert found is not None
    assert found > 0.15


def test_a_stricter_alpha_sees_less() -> None:
    wide = pilot_detectable_difference(golden.AGENT_A, golden.AGENT_B, alpha=0.05 / 3)
    plain = pilot_detectable_difference(golden.AGENT_A, golden.AGENT_B)
    assert wide is not None
    assert plain is not None
    assert wide > plain


def test_too_few_tasks_could_never_show_a_difference() -> None:
    five = {str(index): TaskCount(index % 3, 2) for index in range(5)}
    assert pilot_detectable_difference(five, five) is None
    assert planned_detectable_difference(list(five.values())) is None
    assert pilot_detectable_difference({}, {}) is None


def test_single_samples_need_six_tasks_apart() -> None:
    counts = [TaskCount(index % 2, 1) for index in range(40)]
    found = planned_detectable_difference(counts)
    assert found is not None
    assert found > 6 / 40


def test_more_tasks_like_these_see_more() -> None:
    few, many = planned_detectable_difference(golden.SET_A), planned_detectable_difference(golden.SET_A * 4)
    assert few is not None
    assert many is not None
    assert many < few
    assert many == pytest.approx(few / 2, rel=0.15)


def test_a_difference_of_gaps_needs_tasks_that_differ_to_say_what_it_could_see() -> None:
    differences = [Fraction(1, 4)] * 3 + [Fraction(-1, 4)] * 3 + [Fraction(0)] * 6
    found = gap_detectable_difference(differences)
    assert found == pytest.approx(2.80159 * (6 / 16 / 11 / 12) ** 0.5, abs=1e-4)
    assert gap_detectable_difference(differences, alpha=0.025) is None
