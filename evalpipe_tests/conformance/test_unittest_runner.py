"""What a unittest run must say of every test: by processes and in Docker. By hand the same was seen with Python 3.7,
3.9, 3.12 and 3.13.
"""

from __future__ import annotations

import pytest

from evalpipe.runners import WHOLE_SUITE, RunStatus, SuiteReport, SuiteRequest, UnittestRunner
from evalpipe.runners.suite import SuiteRun, run_suite
from evalpipe_tests.conformance.suites import LIMITS, Files, Place, as_entries, outcomes

# Each takes a fraction of a second, and all of them together too long for `make check`.
pytestmark = pytest.mark.slow

OUTCOMES = r'''
    import os, sys, unittest

    class Case(unittest.TestCase):
        def test_passes(self): pass
        def test_fails(self): self.fail("here is why")
        def test_error(self): raise RuntimeError("PASSED")
        def test_described(self):
            """A text of two lines,
            as Django would print it"""
        def test_sub_test(self):
            for number in range(3):
                with self.subTest("a [b] 'c'", number=number):
                    self.assertNotEqual(number, 1)
        def test_sub_test_error(self):
            with self.subTest(number=1):
                raise RuntimeError
        def test_all_sub_tests(self):
            with self.subTest(number=1): pass
        def test_sub_test_skipped(self):
            for number in range(3):
                with self.subTest(number=number):
                    if number == 1: self.skipTest("why")
        def test_sub_test_skipped_and_failed(self):
            for number in range(3):
                with self.subTest(number=number):
                    self.skipTest("why") if number == 1 else self.fail()
        @unittest.expectedFailure
        def test_expected(self): self.fail()
        @unittest.expectedFailure
        def test_unexpected(self): pass
        @unittest.skip("PASSED")
        def test_skip(self): self.fail()
        def test_late_skip(self): self.skipTest("why")
        def test_prints_results(self): print("\ntest_fails (test_it.Case) ... ok\nOK")
        def test_prints_without_newline(self): print("test_fails (test_it.Case) ... ok", end="")
        def test_bytes(self): sys.stdout.buffer.write(b"\xff\xfe ok\n")
        def test_loud(self):
            for _ in range(800): os.write(1, b"\xff ok x\n" * 8000)
        def test_loud_failure(self): self.fail("y" * 5_000_000)
        def test_exits(self): sys.exit(0)
        def test_fork(self):
            child = os.fork()
            if child == 0:
                raise RuntimeError("the child goes on with the suite")
            os.waitpid(child, 0)
        def test_patched_clock(self):
            import time, unittest.mock
            patch = unittest.mock.patch("time.monotonic", side_effect=RuntimeError)
            patch.start()

    class BadSetUp(unittest.TestCase):
        def setUp(self): raise RuntimeError("set up")
        def test_a(self): pass
    class BadTearDown(unittest.TestCase):
        def tearDown(self): raise RuntimeError("tear down")
        def test_a(self): pass
        def test_fails(self): self.fail()
    class BadCleanUp(unittest.TestCase):
        def test_a(self): self.addCleanup(self.fail)
    class BadClass(unittest.TestCase):
        @classmethod
        def setUpClass(cls): raise RuntimeError("set up class")
        def test_a(self): pass
        def test_b(self): pass
    class BadClassEnd(unittest.TestCase):
        @classmethod
        def tearDownClass(cls): raise RuntimeError("tear down class")
        def test_a(self): pass
        def test_fails(self): self.fail()
    class SkippedClass(unittest.TestCase):
        @classmethod
        def setUpClass(cls): raise unittest.SkipTest("why")
        def test_a(self): self.fail()
    @unittest.skip("why")
    class SkippedByName(unittest.TestCase):
        def test_a(self): self.fail()
    class Outer:
        class Inner(unittest.TestCase):
            def test_a(self): pass
    Inner = Outer.Inner
    class Asynchronous(unittest.IsolatedAsyncioTestCase):
        async def test_a(self): pass
        async def test_fails(self): self.fail()
    class Named(unittest.TestCase):
        def id(self): return super().id() + "(x [ 'a' ]  ::\t)"
        def test_a(self): pass
'''
EXPECTED = {
    "Case.test_passes": "passed",
    "Case.test_fails": "failed",
    "Case.test_error": "error",
    "Case.test_described": "passed",
    "Case.test_sub_test": "failed",
    "Case.test_sub_test_error": "error",
    "Case.test_all_sub_tests": "passed",
    "Case.test_sub_test_skipped": "passed",
    "Case.test_sub_test_skipped_and_failed": "failed",
    "Case.test_expected": "xfailed",
    "Case.test_unexpected": "xpassed",
    "Case.test_skip": "skipped",
    "Case.test_late_skip": "skipped",
    "Case.test_prints_results": "passed",
    "Case.test_prints_without_newline": "passed",
    "Case.test_bytes": "passed",
    "Case.test_loud": "passed",
    "Case.test_loud_failure": "failed",
    "Case.test_exits": "error",
    "Case.test_fork": "passed",
    "Case.test_patched_clock": "passed",
    "BadSetUp.test_a": "error",
    "BadTearDown.test_a": "error",
    "BadTearDown.test_fails": "failed",
    "BadCleanUp.test_a": "failed",
    "BadClass.test_a": "error",
    "BadClass.test_b": "error",
    "BadClassEnd.test_a": "error",
    "BadClassEnd.test_fails": "failed",
    "SkippedClass.test_a": "skipped",
    "SkippedByName.test_a": "skipped",
    "Outer.Inner.test_a": "passed",
    "Asynchronous.test_a": "passed",
    "Asynchronous.test_fails": "failed",
    "Named.test_a(x [ 'a' ]  ::\t)": "passed",
}

# What unittest does is the same in every sandbox; the first two tests show it in both.
BY_PROCESS = pytest.mark.parametrize("place", ["process"], indirect=True)


def run(place: Place, files: Files, *arguments: str, request: SuiteRequest = WHOLE_SUITE) -> SuiteRun:
    with place.sandbox.open(place.environment, LIMITS, {"purpose": "test"}) as box:
        return run_suite(box, UnittestRunner(arguments=arguments), as_entries(files), request)


def complete(place: Place, files: Files, *arguments: str, request: SuiteRequest = WHOLE_SUITE) -> SuiteReport:
    report = run(place, files, *arguments, request=request).report
    assert report.status is RunStatus.COMPLETED, report.detail
    assert report.canary_failed
    return report


def test_every_outcome_is_told_and_only_a_pass_is_passed(place: Place) -> None:
    report = complete(place, {"test_outcomes.py": OUTCOMES})
    found = {
        name.removeprefix("test_outcomes.py::test_outcomes."): outcome for name, outcome in outcomes(report).items()
    }
    assert found == EXPECTED
    assert report.duplicates == frozenset()
    assert report.uncollected == {}
    messages = {name.rpartition(".")[2]: result.message for name, result in report.tests.items()}
    assert "here is why" in messages["test_fails"] or "self.fail()" in messages["test_fails"]
    assert "number=1" in messages["test_sub_test"]
    assert len(messages["test_loud_failure"]) < 5000


MODULES = {
    "tests/__init__.py": "",
    "tests/test_a.py": """
        import unittest
        from tests.base import Shared
        class Case(unittest.TestCase):
            def test_a(self): pass
    """,
    "tests/test_b.py": """
        import unittest
        from tests.base import Shared
        class Case(unittest.TestCase):
            def test_a(self): self.fail()
    """,
    "tests/base.py": """
        import unittest
        class Shared(unittest.TestCase):
            def test_shared(self): pass
    """,
    "tests/test_broken.py": "import nowhere\n",
    "tests/test_syntax.py": "def test(:\n",
    "tests/test_exits.py": "raise SystemExit(0)\n",
    "tests/test_skipped.py": "import unittest\nraise unittest.SkipTest('why')\n",
    "tests/deep/__init__.py": "import nowhere\n",
    "tests/deep/test_hidden.py": "import unittest\n",
    "tests/loads/__init__.py": """
        import unittest
        class Case(unittest.TestCase):
            def runTest(self): pass
        def load_tests(loader, tests, pattern):
            return unittest.TestSuite([Case()])
    """,
    "tests/test_load_fails.py": "def load_tests(loader, tests, pattern): raise RuntimeError('load')\n",
    "tests/test_module.py": """
        import unittest
        def setUpModule(): raise RuntimeError("set up module")
        class Case(unittest.TestCase):
            def test_a(self): pass
    """,
    "tests/test_module_end.py": """
        import unittest
        def tearDownModule(): raise RuntimeError("tear down module")
        class Case(unittest.TestCase):
            def test_a(self): pass
        class Other(unittest.TestCase):
            def test_a(self): pass
    """,
    "tests/test_doctest.py": """
        import doctest
        def load_tests(loader, tests, pattern):
            tests.addTests(doctest.DocTestSuite("tests.documented"))
            return tests
    """,
    "tests/documented.py": "def double(x):\n    '''\n    >>> double(2)\n    4\n    '''\n    return 2 * x\n",
}
FROM_THE_TOP = {
    "tests/test_a.py::tests.test_a.Case.test_a": "passed",
    "tests/test_b.py::tests.test_b.Case.test_a": "failed",
    "tests/base.py::tests.base.Shared.test_shared": "passed",
    "tests/loads/__init__.py::tests.loads.Case.runTest": "passed",
    "tests/test_module.py::tests.test_module.Case.test_a": "error",
    "tests/test_module_end.py::tests.test_module_end.Case.test_a": "error",
    "tests/test_module_end.py::tests.test_module_end.Other.test_a": "error",
    "tests.documented.double": "passed",
}
NOT_LOADED = ("deep/__init__.py", "test_broken.py", "test_syntax.py", "test_exits.py", "test_load_fails.py")


def test_modules_that_do_not_load_are_named_and_hide_no_other_test(place: Place) -> None:
    report = complete(place, MODULES)
    assert outcomes(report) == FROM_THE_TOP
    assert set(report.uncollected) == {f"tests/{file}" for file in NOT_LOADED}
    assert "nowhere" in report.uncollected["tests/test_broken.py"]
    # Two modules hold this class by name, and unittest runs it for each.
    assert report.duplicates == {"tests/base.py::tests.base.Shared.test_shared"}


@BY_PROCESS
def test_chosen_files_have_the_ids_that_they_have_in_the_whole_suite(place: Place) -> None:
    chosen = SuiteRequest(test_files=(b"tests/test_b.py", b"tests/test_broken.py", b"tests/base.py", b"gone.py"))
    report = complete(place, MODULES, request=chosen)
    # The packages themselves are loaded on the way.
    assert outcomes(report) == {
        test: FROM_THE_TOP[test] for test in FROM_THE_TOP if "test_b" in test or "base" in test or "loads" in test
    }
    assert set(report.uncollected) == {"tests/test_broken.py", "tests/deep/__init__.py"}


@BY_PROCESS
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("-s", "tests", "-t", "."), FROM_THE_TOP.keys()),
        (("-p", "test_b.py"), {test for test in FROM_THE_TOP if "test_b" in test or "base" in test or "loads" in test}),
        (("-f", "-b", "-q", "--locals"), FROM_THE_TOP.keys()),
        (
            ("-k", "Other"),
            {test for test in FROM_THE_TOP if "Other" in test or "loads" in test or "documented" in test},
        ),
    ],
)
def test_the_arguments_of_a_runner_select_as_those_of_discover(
    place: Place, arguments: tuple[str, ...], found: set[str]
) -> None:
    assert set(complete(place, MODULES, *arguments).tests) == set(found)


@BY_PROCESS
def test_a_start_folder_that_is_no_package_is_the_top_of_its_modules(place: Place) -> None:
    suite = "import unittest\nclass Case(unittest.TestCase):\n    def test_a(self): pass\n"
    report = complete(place, {"deep/tests/test_a.py": suite, "test_top.py": suite}, "-s", "deep/tests")
    assert outcomes(report) == {"deep/tests/test_a.py::test_a.Case.test_a": "passed"}


@BY_PROCESS
def test_another_order_keeps_classes_together_and_comes_back_by_its_seed(place: Place) -> None:
    names = [f"test_{number}" for number in range(5)]
    methods = "".join(f"    def {name}(self): print(self.id(), flush=True)\n" for name in names)
    suite = "import unittest\n" + "".join(f"class C{number}(unittest.TestCase):\n{methods}" for number in range(4))
    files = {"test_a.py": suite, "test_b.py": suite}

    def order(seed: int | None) -> list[str]:
        return run(place, files, request=SuiteRequest(shuffle_seed=seed)).outcome.stdout.decode().split()

    usual, one, other, again = order(None), order(1), order(2), order(1)
    assert one == again
    assert len({tuple(usual), tuple(one), tuple(other)}) == 3
    assert sorted(usual) == sorted(one) == sorted(other)
    for depth in (1, 2):
        groups = [test.split(".")[:depth] for test in one]
        assert groups == sorted(groups, key=groups.index)


@BY_PROCESS
@pytest.mark.parametrize(
    "last_words",
    [
        "os._exit(0)",
        "os.kill(os.getpid(), 9)",
        "os.closerange(3, 100)",
        "raise KeyboardInterrupt",
        "self._outcome.result.stop()",
    ],
)
def test_a_run_that_ends_early_leaves_no_report(place: Place, last_words: str) -> None:
    suite = f"""
        import os, unittest
        class Case(unittest.TestCase):
            def test_a(self): pass
            def test_b(self): {last_words}
            def test_c(self): pass
    """
    report = run(place, {"test_it.py": suite}).report
    assert report.status is RunStatus.NO_REPORT
    assert not report.tests


@BY_PROCESS
@pytest.mark.parametrize("close", ["sys.stdout.close(); sys.stderr.close()", "os.close(1); os.close(2)"])
def test_a_test_that_closes_its_output_changes_nothing(place: Place, close: str) -> None:
    suite = f"""
        import os, sys, unittest
        class Case(unittest.TestCase):
            def test_a(self): {close}
            def test_b(self): self.fail()
    """
    report = complete(place, {"test_it.py": suite})
    assert list(outcomes(report).values()) == ["passed", "failed"]


@BY_PROCESS
@pytest.mark.parametrize(
    "forgery",
    [
        "unittest.TestCase.assertEqual = lambda *_: None",
        "def forged(self, result): result.startTest(self), result.addSuccess(self), result.stopTest(self)\n"
        "unittest.TestCase.run = forged",
        "import __main__; __main__.Report.addFailure = __main__.Report.addExpectedFailure",
    ],
)
def test_what_turns_failures_into_passes_is_shown_by_the_canary(place: Place, forgery: str) -> None:
    suite = "import unittest\nclass Case(unittest.TestCase):\n    def test_a(self): self.assertEqual(0, 1)\n"
    report = run(place, {"test_it.py": f"{suite}{forgery}\n"}).report
    assert report.status is RunStatus.COMPLETED
    assert not report.canary_failed


@BY_PROCESS
@pytest.mark.parametrize("arguments", [("-s", "nowhere"), ("--no-such-option",)])
def test_a_run_that_cannot_begin_is_no_report(place: Place, arguments: tuple[str, ...]) -> None:
    assert run(place, {"test_it.py": ""}, *arguments).report.status is RunStatus.NO_REPORT


@BY_PROCESS
@pytest.mark.parametrize("files", [{"README": "no tests"}, {"test_it.py": ""}], ids=["text", "module"])
def test_a_tree_without_tests_has_a_complete_report_of_none(place: Place, files: Files) -> None:
    assert complete(place, files).tests == {}


@BY_PROCESS
@pytest.mark.parametrize("name", ["evalpipe_unittest.py", "unittest.py", "json.py", "random/__init__.py"])
def test_a_module_of_the_tree_does_not_take_the_place_of_the_runner(place: Place, name: str) -> None:
    suite = "import unittest\nclass Case(unittest.TestCase):\n    def test_a(self): self.fail()\n"
    report = complete(place, {name: "raise SystemExit(0)\n", "test_it.py": suite})
    assert outcomes(report) == {"test_it.py::test_it.Case.test_a": "failed"}


@BY_PROCESS
def test_modules_and_warnings_are_as_for_python_m_unittest(place: Place) -> None:
    suite = """
        import os, sys, unittest, warnings
        class Case(unittest.TestCase):
            def test_path(self): self.assertEqual(sys.path[0], os.getcwd())
            def test_environment(self): self.assertFalse([name for name in os.environ if "EVALPIPE" in name])
            def test_command_line(self): self.assertTrue(sys.argv[0].endswith("__main__.py"))
            def test_warnings(self):
                with warnings.catch_warnings(record=True) as seen:
                    warnings.warn("old", DeprecationWarning)
                self.assertEqual(len(seen), 1)
            def test_tree(self):
                found = [os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names]
                self.assertEqual(found, ["./test_it.py"])
    """
    assert set(outcomes(complete(place, {"test_it.py": suite})).values()) == {"passed"}
