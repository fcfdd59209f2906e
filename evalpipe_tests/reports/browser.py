"""A headless Chromium over its debugging pipe: what a page fetches, how wide it gets, what it looks like."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("EVALPIPE_REQUIRE_CHROMIUM"), reason="there is no chromium"
)
_ASKED = ("document.documentElement.scrollWidth", "innerWidth", "getComputedStyle(document.body).backgroundColor")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page in a window: the URLs it asked for besides itself, its widest content, its colours, its picture (PNG)."""

    requests: tuple[str, ...]
    scroll_width: int
    window_width: int
    background: str
    errors: tuple[str, ...]
    picture: bytes


def check(found: Rendered, *, width: int, dark: bool) -> None:
    """A page fetches nothing, has no error, is as wide as its window, and is dark or light as the reader asked."""
    assert found.requests == ()
    assert found.errors == ()
    assert found.scroll_width <= found.window_width == width
    shades = [int(part) for part in found.background.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (max(shades) < 64) if dark else (min(shades) > 192)


class Browser:
    """One Chromium process; a context manager."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        child_in, self._to = os.pipe()
        self._from, child_out = os.pipe()
        high_in, high_out = (fcntl.fcntl(number, fcntl.F_DUPFD, 20) for number in (child_in, child_out))
        arguments = [
            *(CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *("--remote-debugging-pipe", "--disable-background-networking", "--hide-scrollbars"),
            *(f"--user-data-dir={profile}", "about:blank"),
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{high_in} 4>&{high_out}', "bash", *arguments],
            pass_fds=(high_in, high_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in (child_in, child_out, high_in, high_out):
            os.close(number)
        self._buffer = b""
        self._last = 0
        self._events: list[dict[str, Any]] = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session: str | None = None
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._to)
        os.close(self._from)

    def render(
        self, page: Path, *, width: int, height: int, dark: bool, full: bool = False, paper: bool = False
    ) -> Rendered:
        """Open a file in a window of that size (CSS pixels); `full` takes the whole page into the picture.

        With `paper` the page is laid out as for a printer.
        """
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", {"media": "print" if paper else "", "features": [scheme]})
        self._events.clear()
        self._call("Page.navigate", {"url": page.as_uri()})
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._read())
        found = self._call("Runtime.evaluate", {"expression": f"JSON.stringify([{', '.join(_ASKED)}])"})
        scroll_width, window_width, background = json.loads(found["result"]["value"])
        shot = self._call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": full})
        sent = [event["params"] for event in self._events if event["method"] == "Network.requestWillBeSent"]
        logged = [event["params"] for event in self._events if event["method"] == "Log.entryAdded"]
        return Rendered(
            requests=tuple(one["request"]["url"] for one in sent if one["request"]["url"] != page.as_uri()),
            scroll_width=scroll_width,
            window_width=window_width,
            background=background,
            errors=tuple(one["entry"]["text"] for one in logged),
            picture=base64.b64decode(shot["data"]),
        )

    def visit(self, url: str, *, width: int = 1440, height: int = 900) -> None:
        """Open a page that goes on by itself: what is to be there is waited for with `wait_for`."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", metrics)
        self._events.clear()
        self._call("Page.navigate", {"url": url})

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self._call("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self) -> str:
        """What the page says now, as a reader would copy it."""
        return str(self.evaluate("document.body ? document.body.innerText : ''"))

    def wait_for(self, *texts: str, timeout_s: float = 60) -> float:
        """Wait until the page says all of `texts`; returns the seconds that it took."""
        started = time.monotonic()
        while missing := [text for text in texts if text not in (said := self.text())]:
            assert time.monotonic() < started + timeout_s, f"not within {timeout_s} s: {missing} in\n{said}"
            time.sleep(0.3)
        return time.monotonic() - started

    def picture(self) -> bytes:
        """What the window shows, as a PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", {"format": "png"})["data"])

    def pdf(self) -> bytes:
        """The page that is open, printed on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
        return base64.b64decode(self._call("Page.printToPDF", paper)["data"])

    def _call(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters or {}}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed
