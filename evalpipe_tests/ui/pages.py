"""The pages of the UI that a person of the platform team visits, and what they must say, for the demo's workspace."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from evalpipe_tests.reports.browser import Browser

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


def partition_page(asset: Sequence[str], partition: str) -> str:
    """Path of the page of one partition of an asset."""
    return f"/assets/{'/'.join(asset)}?view=partitions&partition={quote(partition, safe='')}"


def _until_true(browser: Browser, script: str, timeout_s: float = 30) -> None:
    end = time.monotonic() + timeout_s
    while not browser.evaluate(script):
        assert time.monotonic() < end, f"not within {timeout_s} s: {script} in\n{browser.text()}"
        time.sleep(0.1)
