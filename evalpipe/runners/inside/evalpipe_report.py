"""Pytest plugin that runs inside the sandbox: it writes the phases of every test and adds the canary.

It is put beside the repository, never into it, and imports nothing but pytest, so it runs with the team's own
pytest (6 or newer) on the team's own Python (3.7 or newer). JUnit XML is not enough: it has no node ids and
shows a non-strict xpass as a plain pass.
"""

import json
import os

import pytest

with open(os.environ.pop("EVALPIPE_SETTINGS"), encoding="utf-8") as _file:
    _SETTINGS = json.load(_file)
_REPORT = open(_SETTINGS["report"], "a", encoding="ascii")
_MESSAGE_CHARACTERS = 4000


def _write(kind, **fields):
    _REPORT.write(json.dumps(dict(fields, kind=kind)) + "\n")
    _REPORT.flush()


def _shorten(text):
    if len(text) <= _MESSAGE_CHARACTERS:
        return text
    half = _MESSAGE_CHARACTERS // 2
    return text[:half] + "\n[...]\n" + text[-half:]


def _message(report):
    return "" if report.passed else _shorten(str(report.longrepr or ""))


class _Canary(pytest.Item):
    """A test that must fail. Whatever turns failures into passes turns this one too, and shows itself."""

    def runtest(self):
        raise AssertionError("the canary fails on purpose")

    def reportinfo(self):
        return self.path if hasattr(self, "path") else self.fspath, 0, self.name


@pytest.hookimpl(hookwrapper=True)
def pytest_cmdline_main(config):
    # Workers of pytest-xdist would run without this plugin, and share no order with the other side.
    if getattr(config.option, "numprocesses", None):
        config.option.numprocesses = 0
        config.option.dist = "no"
        config.option.tx = []
    yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session, items):
    # Last, so that neither a marker expression nor a hook of the repository deselects it.
    items.append(_Canary.from_parent(session, name=_SETTINGS["canary"]))
    _write("collected", ids=[item.nodeid for item in items])


def pytest_collectreport(report):
    if report.failed:
        _write("uncollected", id=report.nodeid, message=_message(report))


def pytest_runtest_logreport(report):
    _write(
        "phase",
        id=report.nodeid,
        when=report.when,
        outcome=report.outcome,
        xfail=hasattr(report, "wasxfail"),
        subtest=hasattr(report, "context"),
        seconds=report.duration,
        message=_message(report),
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    _write("end", exit_status=int(exitstatus))
