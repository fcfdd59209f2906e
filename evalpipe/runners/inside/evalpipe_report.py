"""Program that runs inside the sandbox: pytest, with a plugin that writes the phases of every test and adds the canary.

It lies beside the repository, never in it, and imports nothing but pytest, so it runs with the team's own pytest
(6 or newer) on the team's own Python (3.7 or newer). JUnit XML is not enough: it has no node ids and shows a
non-strict xpass as a plain pass. It is started as a file because `python -m pytest -p name` looks for both names
in the tested tree first.
"""

import os
import random
import sys
import traceback
from pathlib import Path

import pytest
from _pytest.fixtures import FuncFixtureInfo
from evalpipe_seal import SealedReport, take_settings

_MESSAGE_CHARACTERS = 4000
_USAGE_ERROR = 4  # pytest.ExitCode.USAGE_ERROR
# Set by a repository's own settings, these run tests where this plugin is not (pytest-xdist), or stop early.
_OVERRULED_OPTIONS = {"numprocesses": 0, "dist": "no", "tx": [], "stepwise": False, "stepwise_skip": False}


def _fail():
    raise AssertionError


if tuple(map(int, pytest.__version__.split(".")[:2])) < (7, 2):
    # The nose plugin of these looks for both, and would go on to the module, which the canary lacks. Later ones warn of
    # functions that have them.
    _fail.setup = _fail.teardown = lambda: None


class _Canary(pytest.Function):
    """A test that must fail. Whatever turns failures into passes turns this one too, and shows itself.

    A function like any other test, because what is patched is the way in which functions are run; without fixtures,
    because one that the repository gives to every test may not fit it.
    """

    # Hooks of repositories read it from every test.
    module = sys.modules[__name__]

    def reportinfo(self):
        return self.path if hasattr(self, "path") else self.fspath, 0, self.name


class Reporter:
    """The plugin: writes the phases of every test into a sealed report, and adds the canary."""

    def __init__(self, report, key, canary, shuffle_seed):
        self._report = SealedReport(report, key)
        self._canary = canary
        self._shuffle_seed = shuffle_seed

    def _write(self, kind, **fields):
        self._report.write(dict(fields, kind=kind))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_load_initial_conftests(self):
        outcome = yield
        error = outcome.excinfo[1] if outcome.excinfo else None
        # Of a conftest that pytest reads at its start a failure is a wrong use of pytest, which ends it.
        if type(error).__name__ == "ConftestImportFailure":
            # A triple before pytest 8.
            cause = getattr(error, "cause", None) or error.excinfo[1]
            self._write(
                "conftest",
                id=os.path.relpath(str(error.path)),
                message=_shorten("".join(traceback.format_exception(type(cause), cause, cause.__traceback__))),
                missing=isinstance(cause, (ImportError, AttributeError, NameError, SyntaxError)),
            )
            self._write("end", exit_status=_USAGE_ERROR)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_cmdline_main(self, config):
        for option, value in _OVERRULED_OPTIONS.items():
            if hasattr(config.option, option):
                setattr(config.option, option, value)
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtestloop(self, session):
        # Later than every hook that selects or orders tests, so that none of them takes the canary away.
        if self._shuffle_seed is not None:
            random.Random(self._shuffle_seed).shuffle(session.items)
        no_fixtures = FuncFixtureInfo((), (), [], {})
        canary = _Canary.from_parent(session, name=self._canary, callobj=_fail, fixtureinfo=no_fixtures)
        if session.items:
            # Or what is patched for the tests of known files alone would let it fail.
            canary._nodeid = session.items[-1].nodeid.partition("::")[0] + canary.nodeid
        session.items.append(canary)
        self._write("collected", ids=[item.nodeid for item in session.items])
        yield

    def pytest_collectreport(self, report):
        if report.failed:
            self._write("uncollected", id=report.nodeid, message=_message(report))

    def pytest_runtest_logreport(self, report):
        self._write(
            "phase",
            id=report.nodeid,
            when=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail"),
            subtest=hasattr(report, "context"),
            seconds=report.duration,
            message=_message(report),
        )

    @pytest.hookimpl(hookwrapper=True)
    def pytest_sessionfinish(self, session, exitstatus):
        # Also when another hook fails here: pytest's cache does so for a path that is not UTF-8.
        yield
        self._write("end", exit_status=int(exitstatus))


def _message(report):
    return "" if report.passed else _shorten(str(report.longrepr or ""))


def _shorten(text):
    if len(text) <= _MESSAGE_CHARACTERS:
        return text
    half = _MESSAGE_CHARACTERS // 2
    return text[:half] + "\n[...]\n" + text[-half:]


def main():
    """Run pytest with the arguments of this program, as `python -m pytest` would, and return its exit status."""
    here = Path(__file__).resolve().parent
    settings = take_settings(str(here))
    # `python -m pytest` looks for modules in the working directory first, where this file's folder is now.
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, str(Path.cwd()))
    sys.argv[0] = str(Path(pytest.__file__).with_name("__main__.py"))
    return pytest.main(sys.argv[1:], plugins=[Reporter(**settings)])


if __name__ == "__main__":
    sys.exit(main())
