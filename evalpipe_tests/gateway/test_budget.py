"""A sweep's budget: what does not fit is not begun, across restarts and side by side."""

import threading
from decimal import Decimal
from pathlib import Path

import pytest

from evalpipe.gateway import SweepBudget


def test_the_worst_case_is_set_aside_and_gives_way_to_what_was_spent(tmp_path: Path) -> None:
    budget = SweepBudget(tmp_path / "budget.sqlite", Decimal("5"))
    assert budget.reserve("a", Decimal(2))
    assert budget.reserve("b", Decimal(2))
    assert not budget.reserve("c", Decimal(2))
    budget.settle("a", Decimal("0.5"))
    assert budget.left_usd() == Decimal("2.5")
    assert budget.reserve("c", Decimal(2))


def test_a_restart_forgets_nothing_and_pays_nothing_twice(tmp_path: Path) -> None:
    SweepBudget(tmp_path / "b", Decimal(3)).reserve("a", Decimal(2))
    again = SweepBudget(tmp_path / "b", Decimal(3))
    assert again.unsettled() == ["a"]
    assert again.reserve("a", Decimal(2))
    assert again.left_usd() == 1
    again.settle("a", None)
    assert again.unsettled() == []
    assert again.left_usd() == 1


def test_what_cost_more_than_its_worst_case_is_counted_whole(tmp_path: Path) -> None:
    budget = SweepBudget(tmp_path / "b", Decimal(1))
    budget.reserve("a", Decimal(1))
    budget.settle("a", Decimal("1.25"))
    assert budget.left_usd() == Decimal("-0.25")
    assert not budget.reserve("b", Decimal(0))


def test_what_others_paid_counts_once_and_leaves_what_was_reserved_here(tmp_path: Path) -> None:
    budget = SweepBudget(tmp_path / "b", Decimal(3))
    assert budget.reserve("mine", Decimal(1))
    for _ in range(2):
        budget.include({"mine": Decimal("0.25"), "theirs": Decimal("1.5")})
    assert (budget.left_usd(), budget.unsettled()) == (Decimal("0.5"), ["mine"])
    assert not budget.reserve("another", Decimal(1))


def test_settling_what_was_never_reserved_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        SweepBudget(tmp_path / "b", Decimal(1)).settle("a", Decimal(1))


def test_ten_trials_side_by_side_with_money_for_three(tmp_path: Path) -> None:
    granted: list[bool] = []

    def trial(number: int) -> None:
        granted.append(SweepBudget(tmp_path / "b", Decimal(3)).reserve(str(number), Decimal(1)))

    threads = [threading.Thread(target=trial, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(granted) == [False] * 7 + [True] * 3
