"""The report in a real browser: phone and desktop width, light and dark."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.reports import html_report
from evalpipe_tests.reports.big_sweep import big_sweep
from evalpipe_tests.reports.browser import CHROMIUM, Browser
from evalpipe_tests.reports.test_html import hostile_sweep
from evalpipe_tests.reports.test_rows import both_prompts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("EVALPIPE_REQUIRE_CHROMIUM"), reason="there is no chromium"
    ),
]
_WINDOWS = {"phone": (390, 844), "desktop": (1280, 900)}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    prompts = both_prompts()
    tasks = tuple(replace(task, prompts={"original": "word " * 400 + "x" * 300}) for task in prompts.tasks)
    sweeps = {"plain": replace(prompts, tasks=tasks), "hostile": hostile_sweep(), "large": big_sweep(10, 500, 4)}
    for name, results in sweeps.items():
        (folder / f"{name}.html").write_text(html_report(results), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in sweeps}


def test_a_report_of_500_tasks_and_10_agents_is_small(pages: dict[str, Path]) -> None:
    assert pages["large"].stat().st_size < 20_000_000


@pytest.mark.parametrize("name", ["plain", "hostile", "large"])
@pytest.mark.parametrize("window", _WINDOWS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_fetched_and_nothing_overflows(
    browser: Browser, pages: dict[str, Path], name: str, window: str, dark: bool
) -> None:
    width, height = _WINDOWS[window]
    found = browser.render(pages[name], width=width, height=height, dark=dark)
    assert found.requests == ()
    assert found.errors == ()
    assert found.scroll_width <= found.window_width == width
    shades = [int(part) for part in found.background.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (max(shades) < 64) if dark else (min(shades) > 192)
