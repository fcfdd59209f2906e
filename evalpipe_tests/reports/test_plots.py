import io
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from PIL import Image

from evalpipe.reports import SweepResults, category_png, comparison_png, scoreboard_png
from evalpipe.reports.analysis import analyse
from evalpipe.reports.figures import (
    agents_forest,
    category_forest,
    difference_ticks,
    differences_forest,
    task_heat_map,
)
from evalpipe.reports.plots import ForestRow, HeatMap, forest_svg, heat_map_svg
from evalpipe.stats.intervals import Interval
from evalpipe_tests.reports.sweeps import SweepBuilder, two_agents

_WEIGHTS = {"single_file_repair": 0.5, "multi_file_feature": 0.3, "dependency_chore": 0.2}
HOSTILE = '<script>alert(1)</script> $x^2$ " onload="x & \x1b]'


def _texts(svg: str) -> list[str]:
    return [str(element.text) for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]


def test_a_forest_plot_is_the_same_byte_for_byte() -> None:
    rows = agents_forest(analyse(two_agents()))
    assert forest_svg(rows, "agents", "rates") == forest_svg(rows, "agents", "rates")
    assert scoreboard_png(two_agents()) == scoreboard_png(two_agents())


def test_a_forest_plot_says_what_it_shows() -> None:
    texts = _texts(forest_svg(agents_forest(analyse(two_agents())), "agents", "rates"))
    assert "broad" in texts
    assert "0.65 (0.46 to 0.81)" in texts


def test_differences_have_an_axis_around_zero_and_bold_only_by_the_test() -> None:
    rows = differences_forest(analyse(two_agents()))
    (row,) = rows
    assert (row.label, row.value) == ("broad minus steady", "+14 points (+6 to +22)")
    assert row.emphasis
    assert [label for _, label in difference_ticks(rows)] == ["-30", "-15", "0", "+15", "+30"]
    texts = _texts(forest_svg(rows, "pairs", "differences", difference_ticks(rows)))
    assert {"-30", "0", "+30", "broad minus steady"} <= set(texts)
    same = differences_forest(analyse(SweepBuilder({"a": [4, 2, 0, 1, 3], "b": [4, 2, 0, 1, 3]}).build()))
    assert (same[0].value, same[0].emphasis) == ("0 points (no discordant tasks)", False)
    assert difference_ticks(same)[-1] == (0.1, "+10")


def test_a_difference_without_an_interval_says_why_and_has_its_place_on_the_axis() -> None:
    rows = differences_forest(analyse(SweepBuilder({"a": [4] * 5, "b": [0] * 5}).build()))
    assert [row.value for row in rows] == ["-100 points (all tasks differ alike)"]
    assert difference_ticks(rows)[0] == (-1.0, "-100")
    assert differences_forest(analyse(SweepBuilder({"a": [4] * 4, "b": [0] * 4}).build())) == []


def test_plots_take_their_colours_from_the_page() -> None:
    svg = forest_svg([ForestRow("a", "b", 0.5, Interval(0.2, 0.8))], "one", "title")
    assert "var(--accent)" in svg
    assert "#0f6e66" not in svg
    assert "<style" not in svg
    assert "<metadata" not in svg


def test_ids_of_two_plots_do_not_collide() -> None:
    rows = [ForestRow("a", "b", 0.5, Interval(0.2, 0.8))]
    first, second = forest_svg(rows, "one", "t"), forest_svg(rows, "two", "t")

    def ids(svg: str) -> set[str | None]:
        return {element.get("id") for element in ElementTree.fromstring(svg).iter()} - {None}

    assert ids(first)
    assert not ids(first) & ids(second)


def test_hostile_names_are_text_and_no_formula() -> None:
    svg = forest_svg([ForestRow(HOSTILE, HOSTILE, 0.5, None)], "one", HOSTILE)
    heat = heat_map_svg(HeatMap((HOSTILE,), (HOSTILE,), (((1, 2),),)), "two", HOSTILE)
    for found in (svg, heat):
        root = ElementTree.fromstring(found)
        assert not [element for element in root.iter() if element.tag.endswith("script")]
        assert not [name for element in root.iter() for name in element.keys() if name.startswith("on")]  # noqa: SIM118
        assert any("<script>" in text for text in _texts(found))


def test_the_category_plot_ends_with_the_weighted_total() -> None:
    rows = category_forest(analyse(two_agents(weights=_WEIGHTS)))
    assert [row.label for row in rows if row.rate is None][-1] == "weighted total"
    assert all(row.emphasis for row in rows[-2:])


def test_the_heat_map_starts_with_the_easiest_task_and_shows_gaps() -> None:
    results = SweepBuilder({"steady": [0, 4, 2]}).build()
    heat = task_heat_map(analyse(results))
    assert heat.tasks == ("demo-001", "demo-002", "demo-000")
    assert heat.cells[0] == ((4, 4), (4, 4), (0, 4))
    svg = heat_map_svg(HeatMap(("a",), ("x", "y"), ((None, (3, 4)),)), "heat", "t")
    assert {"–", "3/4"} <= set(_texts(svg))  # noqa: RUF001


@pytest.mark.parametrize("picture", [scoreboard_png, category_png, comparison_png])
def test_the_pictures_for_dagster_are_small(picture: Callable[[SweepResults], bytes | None]) -> None:
    ten = SweepBuilder({f"agent-{number}": [number % 5, 4, 2, 1, 0] * 4 for number in range(10)}, weights=_WEIGHTS)
    for results in (two_agents(weights=_WEIGHTS), ten.build()):
        png = picture(results)
        assert png is not None
        assert len(png) < 50_000
        assert Image.open(io.BytesIO(png)).format == "PNG"
    assert picture(SweepBuilder({"steady": []}).build()) is None
