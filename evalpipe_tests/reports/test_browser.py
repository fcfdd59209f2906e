"""The report in a real browser: phone and desktop width, light and dark, and on paper."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.reports import html_report
from evalpipe_tests.reports.big_sweep import full_sweep
from evalpipe_tests.reports.browser import NEEDS_CHROMIUM, Browser, check
from evalpipe_tests.reports.test_html import hostile_sweep
from evalpipe_tests.reports.test_rows import both_prompts

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]
WINDOWS = {"phone": (390, 844), "desktop": (1280, 900)}
# How far what stands in a frame that scrolls sideways goes beyond the frame, for each of them.
_CUT = "[...document.querySelectorAll('{}')].map(one => one.scrollWidth - one.clientWidth)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    prompts = both_prompts()
    tasks = tuple(replace(task, prompts={"original": "word " * 400 + "x" * 300}) for task in prompts.tasks)
    sweeps = {
        "plain": replace(prompts, tasks=tasks),
        "hostile": hostile_sweep(),
        "measured": full_sweep(3, 20, 2),
        "large": full_sweep(10, 500, 4),
    }
    for name, results in sweeps.items():
        (folder / f"{name}.html").write_text(html_report(results), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in sweeps}


def test_a_report_of_500_tasks_and_10_agents_is_small_and_opens_at_once(
    browser: Browser, pages: dict[str, Path]
) -> None:
    assert pages["large"].stat().st_size < 20_000_000
    started = time.monotonic()
    browser.render(pages["large"], width=1280, height=900, dark=False)
    # Two seconds on a machine at rest.
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("name", ["plain", "hostile", "large"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_fetched_and_nothing_overflows(
    browser: Browser, pages: dict[str, Path], name: str, window: str, dark: bool
) -> None:
    width, height = WINDOWS[window]
    check(browser.render(pages[name], width=width, height=height, dark=dark), width=width, dark=dark)
    if name != "large":
        browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert browser.evaluate("document.documentElement.scrollWidth") == width, "with everything open"


def test_the_scoreboard_is_whole_on_a_desk(browser: Browser, pages: dict[str, Path]) -> None:
    for name in ("plain", "large"):
        browser.render(pages[name], width=1280, height=900, dark=False)
        assert browser.evaluate(_CUT.format(".scroll:has(.scoreboard)")) == [0], name


@pytest.mark.parametrize("name", ["plain", "hostile", "measured"])
def test_nothing_leaves_the_paper_and_a_dark_page_is_printed_on_white(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    # A4 without the margins of the printer.
    check(browser.render(pages[name], width=718, height=1000, dark=True, paper=True), width=718, dark=False)
    assert max(browser.evaluate(_CUT.format(".scroll"))) <= 1
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF-")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 25
