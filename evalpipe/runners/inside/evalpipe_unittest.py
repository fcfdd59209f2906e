"""Program that runs inside the sandbox: unittest's discovery, with a result that writes every test and adds the canary.

It lies beside the repository, never in it, and uses the standard library alone, so it runs on the team's own Python
(3.7 or newer). Its arguments are those of `python -m unittest discover`. What it writes is read by
`evalpipe/runners/json_lines.py`. It prints nothing: a test may have closed what it would print to.
"""

import random
import re
import sys
import time
import unittest
import warnings
from pathlib import Path

from evalpipe_seal import SealedReport, take_settings

_MESSAGE_CHARACTERS = 4000
_FIXTURE = re.compile(r"(setUp|tearDown)(?:Module|Class) \((.*)\)", re.DOTALL)
_WORST_FIRST = ("failed", "error", "skipped", "xfailed", "xpassed", "passed")
# Tests replace functions of this module; what is kept here stays.
_now = time.monotonic


class _Canary(unittest.TestCase):
    """A test that must fail. Whatever turns failures into passes turns this one too, and shows itself."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def runTest(self):
        for check, arguments in ((self.assertEqual, (0, 1)), (self.assertTrue, (False,)), (self.fail, ())):
            try:
                check(*arguments)
            except self.failureException:
                continue
            return
        raise self.failureException("the canary fails on purpose")


class Tree:
    """Where the modules of the tests lie, by their paths from the top of the repository."""

    def __init__(self):
        self._top = Path.cwd().resolve()

    def file_of(self, module_name):
        """The file of a module, or None for one that is not of the repository."""
        file = getattr(sys.modules.get(module_name), "__file__", None)
        return self._inside(Path(file)) if file else None

    def file_of_broken(self, module_name):
        """The file of a module that could not be loaded, or its name when there is no such file."""
        found = self.file_of(module_name)
        parts = module_name.split(".")
        for folder in map(Path, sys.path):
            for file in (folder.joinpath(*parts[:-1], parts[-1] + ".py"), folder.joinpath(*parts, "__init__.py")):
                found = found or (self._inside(file) if file.is_file() else None)
        return found or module_name

    def _inside(self, file):
        try:
            return file.resolve().relative_to(self._top).as_posix()
        except ValueError:
            return None


class Loader(unittest.TestLoader):
    """Loads the chosen test files only, if any were chosen, under the ids that they have in the whole suite."""

    def __init__(self, test_files):
        super().__init__()
        self._chosen = None if test_files is None else {Path(file).resolve() for file in test_files}

    def _match_path(self, path, full_path, pattern):
        chosen = self._chosen is None or Path(full_path).resolve() in self._chosen
        return chosen and super()._match_path(path, full_path, pattern)


class Report(unittest.TestResult):
    """Writes every test, and what befell it from outside, into a sealed report."""

    def __init__(self, report, key):
        super().__init__()
        self._report = SealedReport(report, key)
        self._tree = Tree()
        self._tests_of = {}
        self._said = []
        self._began = None

    def write(self, kind, **fields):
        self._report.write(dict(fields, kind=kind))

    def expect(self, tests):
        """Take note of all tests before they run, for what befalls their class or module."""
        for test in tests:
            for owner in (type(test).__module__, unittest.util.strclass(type(test))):
                self._tests_of.setdefault(owner, []).append(self._id_of(test))

    def startTest(self, test):
        super().startTest(test)
        self._said, self._began = [], _now()

    def stopTest(self, test):
        super().stopTest(test)
        # From Python 3.12 on, a test that is skipped is stopped without having been started.
        seconds = 0.0 if self._began is None else _now() - self._began
        said, self._said, self._began = self._said, [], None
        if not _stands_for_a_module(test):
            unsaid = ("error", "the test ended and said nothing")
            outcome, message = min(said, key=lambda one: _WORST_FIRST.index(one[0]), default=unsaid)
            self.write("test", id=self._id_of(test), outcome=outcome, seconds=seconds, message=message)

    def addSuccess(self, test):
        self._said.append(("passed", ""))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._said.append(("failed", _shorten(self.failures.pop()[1])))

    def addError(self, test, err):
        super().addError(test, err)
        message = _shorten(self.errors.pop()[1])
        if _stands_for_a_module(test):
            self.write("uncollected", file=self._tree.file_of_broken(test._testMethodName), message=message)
        elif _is_fixture(test):
            self._blame_fixture("error", test.id(), message)
        else:
            self._said.append(("error", message))

    def addSkip(self, test, reason):
        if _is_fixture(test):
            self._blame_fixture("skipped", test.id(), _shorten(str(reason)))
        elif hasattr(test, "test_case"):
            # A test of which a sub-test was skipped hears of neither success nor failure of its own.
            self._said.append(("passed", ""))
        else:
            self._said.append(("skipped", _shorten(str(reason))))

    def addExpectedFailure(self, test, err):
        self._said.append(("xfailed", ""))

    def addUnexpectedSuccess(self, test):
        self._said.append(("xpassed", ""))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            super().addSubTest(test, subtest, err)
            outcome, found = ("failed", self.failures) if self.failures else ("error", self.errors)
            self._said.append((outcome, _shorten(f"{subtest.id()}\n{found.pop()[1]}")))

    def _blame_fixture(self, outcome, name, message):
        """What every test of a class or module has from a fixture that failed, or that skipped them."""
        found = _FIXTURE.match(name)
        if found and (outcome == "error" or found.group(1) == "setUp"):
            for test_id in dict.fromkeys(self._tests_of.get(found.group(2), ())):
                self.write("fault", id=test_id, outcome=outcome, message=f"{name}\n{message}")

    def _id_of(self, test):
        """unittest's own id, behind the file that the test is of; never the docstring."""
        if isinstance(test, _Canary):
            return test.name
        file = self._tree.file_of(type(test).__module__)
        return f"{file}::{test.id()}" if file else test.id()


class Runner:
    """In the place of unittest's own runner, which stops early or prints as its arguments say."""

    def __init__(self, report, key, canary, shuffle_seed):
        self._result = Report(report, key)
        self._canary, self._shuffle_seed = canary, shuffle_seed

    def run(self, suite):
        result = self._result
        tests = list(_tests_in(suite))
        result.expect(test for test in tests if hasattr(test, "id"))
        if self._shuffle_seed is not None:
            suite = unittest.TestSuite(_shuffled(tests, random.Random(self._shuffle_seed)))
        # A suite lets go of each test that has run.
        del tests
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("default")
            unittest.TestSuite([suite, _Canary(self._canary)]).run(result)
        result.write("end")
        return result


def _tests_in(suite):
    for test in suite:
        if isinstance(test, unittest.BaseTestSuite):
            yield from _tests_in(test)
        else:
            yield test


def _shuffled(tests, order):
    """The tests in another order, those of a class and of a module together as their fixtures want them."""
    tests = order.sample(tests, len(tests))
    modules, classes = (
        {owner: rank for rank, owner in enumerate(dict.fromkeys(owners))}
        for owners in ([type(test).__module__ for test in tests], map(type, tests))
    )
    return sorted(tests, key=lambda test: (modules[type(test).__module__], classes[type(test)]))


def _stands_for_a_module(test):
    """Whether unittest's loader made this test for a module that it could not import, or was told to skip."""
    return type(test).__module__ == "unittest.loader"


def _is_fixture(test):
    return type(test).__module__ == "unittest.suite"


def _shorten(text):
    if len(text) <= _MESSAGE_CHARACTERS:
        return text
    half = _MESSAGE_CHARACTERS // 2
    return text[:half] + "\n[...]\n" + text[-half:]


def main():
    """Discover and run the tests with the arguments of this program, as `python -m unittest discover` would."""
    here = Path(__file__).resolve().parent
    settings = take_settings(str(here))
    # `python -m unittest` looks for modules in the working directory first, where this file's folder is now.
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, str(Path.cwd()))
    arguments, sys.argv[:] = sys.argv[1:], [str(Path(unittest.__file__).with_name("__main__.py")), *sys.argv[1:]]
    loader = Loader(settings.pop("test_files"))
    command = ["python -m unittest", "discover", *arguments]
    unittest.main(module=None, argv=command, testRunner=Runner(**settings), testLoader=loader, exit=False)


if __name__ == "__main__":
    main()
