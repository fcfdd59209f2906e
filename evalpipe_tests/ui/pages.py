"""The pages of the UI that a person of the platform team visits, and what they must say, for the demo's workspace."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from evalpipe_tests.pipeline.workspaces import wait_until
from evalpipe_tests.reports.browser import Browser
from evalpipe_tests.ui.dagster_ui import DagsterUi

_BACKFILLS = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { id } } } }"
_SETTLED_S = 1.0
"""What moves into place after the last text has appeared."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the name of its picture in docs/images, its path below the UI's address, and what it must say.

    `before` are scripts that do what a person does there first, each once the one before has had its effect.
    """

    picture: str
    path: str
    says: Sequence[str]
    before: Sequence[str] = ()
    height: int = 900


def open_page(browser: Browser, url: str, page: Page) -> float:
    """Open a page and wait for all that it must say; returns the seconds that it took."""
    started = time.monotonic()
    browser.visit(url + page.path, width=1440, height=page.height)
    for script in page.before:
        _until_true(browser, script)
    browser.wait_for(*page.says)
    return time.monotonic() - started


def visit(browser: Browser, url: str, page: Page) -> str:
    """The whole text of a page, once it says all that it must say and nothing moves any more."""
    open_page(browser, url, page)
    time.sleep(_SETTLED_S)
    return browser.text()


def clicked(text: str) -> str:
    """A script that clicks what says `text`, and is true when there was such a thing."""
    return (
        "(() => { const found = [...document.querySelectorAll('a, button, [role=button]')]"
        f".find(one => one.innerText.trim() === {text!r}); if (found) found.click(); return !!found; }})()"
    )


def materialized_by_hand(browser: Browser, ui: DagsterUi, asset: Sequence[str]) -> str:
    """Launch every partition of an asset from its page, as a person does; returns the id of the backfill."""
    # Two dimensions, of whose partitions none is chosen at first; a click before they are loaded does nothing.
    chosen = "/\\n[1-9][0-9]* partitions\\n/.test(document.body.innerText)"
    every = (
        "[...document.querySelectorAll('button')].filter(one => one.innerText === 'All').forEach(one => one.click())"
    )
    steps = (
        _clicked_button("Materialize"),
        f"(() => {{ if ({chosen}) return true; {every}; return false; }})()",
        _clicked_button("Launch backfill"),
    )
    visit(browser, ui.url, Page("", f"/assets/{'/'.join(asset)}", ["Materialize"], steps))
    found: list[str] = []

    def is_there() -> bool:
        found[:] = [one["id"] for one in ui.ask(_BACKFILLS, {})["partitionBackfillsOrError"]["results"]]
        return bool(found)

    wait_until(is_there, "the backfill is launched")
    return found[0]


def _clicked_button(begins: str) -> str:
    return (
        "(() => { const found = [...document.querySelectorAll('button')]"
        f".find(one => one.innerText.startsWith({begins!r}) && !one.disabled);"
        " if (found) found.click(); return !!found; })()"
    )


def partition_page(asset: Sequence[str], partition: str) -> str:
    """Path of the page of one partition of an asset."""
    return f"/assets/{'/'.join(asset)}?view=partitions&partition={quote(partition, safe='')}"


def _until_true(browser: Browser, script: str, timeout_s: float = 30) -> None:
    end = time.monotonic() + timeout_s
    while not browser.evaluate(script):
        assert time.monotonic() < end, f"not within {timeout_s} s: {script} in\n{browser.text()}"
        time.sleep(0.1)
