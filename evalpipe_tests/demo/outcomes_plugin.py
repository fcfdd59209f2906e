"""A pytest plugin for the inner runs: writes what became of each test as JSON to EVALPIPE_DEMO_OUTCOMES.

Deliberately not evalpipe's own runner: the demo's expectations are checked by other means than those they test. It
runs under pytest 7.2 too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_worst = {"passed": 0, "skipped": 1, "failed": 2}
_outcomes: dict[str, str] = {}
_texts: dict[str, str] = {}
_not_collected: list[str] = []


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Notes every module that could not be imported."""
    if report.failed:
        _not_collected.append(report.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keeps the worst phase of a test, and the text of a failure."""
    if _worst[report.outcome] >= _worst[_outcomes.get(report.nodeid, "passed")]:
        _outcomes[report.nodeid] = report.outcome
    if report.failed:
        _texts[report.nodeid] = str(report.longrepr)


def pytest_sessionfinish() -> None:
    """Writes the outcomes where the caller waits for them."""
    text = json.dumps({"outcomes": _outcomes, "texts": _texts, "not_collected": _not_collected})
    Path(os.environ["EVALPIPE_DEMO_OUTCOMES"]).write_text(text, encoding="utf-8")
