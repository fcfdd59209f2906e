import json

import pytest
from click.testing import CliRunner

from evalpipe.cli import cli
from evalpipe.reports.plan import AttemptCost, SweepSize, plan_summary, plan_text, read_pilot
from evalpipe_tests.reports.sweeps import BROAD, STEADY, SweepBuilder, graded_row, two_agents

_UNKNOWN = AttemptCost(None, None, "")


def test_forty_five_tasks_of_four_samples_see_nineteen_points() -> None:
    found = plan_summary(SweepSize(45, 4, 2, 1, 1), AttemptCost(720, 0.5, "EUR"), None)
    assert found["detectable_difference"] == pytest.approx(0.181, abs=5e-4)
    assert (found["attempts"], found["container_hours"], found["cost"]) == (360, 72.0, 180.0)
    assert found["tasks_needed"]["0.10"] == 148
    text = plan_text(found)
    assert "19 points or more (80 % power, 1 comparison fixed beforehand)" in text
    assert "180.00 EUR" in text


def test_the_difference_that_matters_has_its_own_number_of_tasks() -> None:
    found = plan_summary(SweepSize(45, 4, 2, 1, 1, smallest_difference=0.12), _UNKNOWN, None)
    assert list(found["tasks_needed"]) == ["0.05", "0.10", "0.12", "0.15", "0.20"]
    assert "tasks to see 12 points" in plan_text(found)


def test_more_comparisons_see_less() -> None:
    one, many = (plan_summary(SweepSize(45, 4, 4, 1, number), _UNKNOWN, None) for number in (1, 6))
    assert many["detectable_difference"] > one["detectable_difference"]


def test_what_nobody_knows_is_said_and_is_never_zero() -> None:
    found = plan_summary(SweepSize(5, 1, 2, 1, 1), _UNKNOWN, None)
    assert (found["cost"], found["container_hours"], found["detectable_difference"]) == (None, None, None)
    text = plan_text(found)
    assert "not known: give --price" in text
    assert "none: too few tasks for the test" in text


def test_a_pilot_brings_spread_and_times() -> None:
    pilot = read_pilot(two_agents())
    assert pilot.cost.seconds == pytest.approx(14.0)
    assert pilot.cost.price is None
    found = plan_summary(SweepSize(18, 4, 2, 1, 1), pilot.cost, pilot)
    assert found["spread"] == "pilot 2026q1"
    assert found["detectable_difference"] != pytest.approx(0.286, abs=5e-4)


def test_a_pilot_with_costs_brings_a_price() -> None:
    row = graded_row("steady", "demo-000", "original-1", resolved=True, attempt=0, cost_usd=0.25)
    pilot = read_pilot(SweepBuilder({"steady": STEADY, "broad": BROAD}, rows=[row]).build())
    assert pilot.cost.price == 0.25


def test_the_command_needs_no_workspace() -> None:
    result = CliRunner().invoke(cli, ["plan", "--tasks", "45", "--samples", "4", "--price", "2", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.output)["cost"] == 720.0
    assert CliRunner().invoke(cli, ["plan", "--tasks", "45"]).exit_code == 2


@pytest.mark.parametrize("amount", ["nan", "inf", "-1", "much"])
@pytest.mark.parametrize("option", ["--price", "--minutes"])
def test_an_amount_that_is_none_is_wrong_use(option: str, amount: str) -> None:
    result = CliRunner().invoke(cli, ["plan", "--tasks", "45", "--samples", "4", option, amount, "--json"])
    assert result.exit_code == 2
    assert option in result.output


def test_one_sweep_is_nothing_to_compare() -> None:
    result = CliRunner().invoke(cli, ["compare", "spring", "spring"])
    assert result.exit_code == 2
    assert "at least two different sweeps" in result.stderr
