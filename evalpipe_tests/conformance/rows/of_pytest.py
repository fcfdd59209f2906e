"""The hard cases for pytest 7; `test_pytest_runner` and its neighbour ask more, of more versions."""

from __future__ import annotations

from evalpipe.runners import PytestRunner, RunStatus
from evalpipe_tests.conformance.environments import TestEnvironment
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed

TESTS = r"""
    import os, sys, unittest
    import pytest

    @pytest.fixture
    def bad_teardown():
        yield
        raise RuntimeError("teardown")

    def test_passes(): pass
    def test_fails(): assert 0, "here is why"
    def test_teardown(bad_teardown): pass
    @pytest.mark.xfail
    def test_xfail(): assert 0
    @pytest.mark.xfail
    def test_xpass(): pass
    @pytest.mark.skip(reason="PASSED")
    def test_skip(): assert 0
    @pytest.mark.parametrize("text", ["a b", "a c", 'x[ "a" ]', "x[it's]", "["])
    def test_odd(text): pass
    def test_prints(): print("test_it.py::test_fails PASSED", end="")
    def test_bytes(): os.write(1, b"\xff\xfe PASSED\n")
    def test_loud(): os.write(2, b"x" * 99 + b"\n") and [os.write(1, b"y" * 4999 + b"\n") for _ in range(10_000)]

    class TestUnit(unittest.TestCase):
        def test_sub_test(self):
            for number in range(3):
                with self.subTest(number=number):
                    self.assertNotEqual(number, 1)
"""
PASSES = "def test_a(): pass\n"

ROW = Row(
    runner=PytestRunner(arguments=("-s",)),
    environment=TestEnvironment(),
    files={
        "tests/test_it.py": TESTS,
        "tests/one/__init__.py": "",
        "tests/one/test_same.py": PASSES,
        "tests/two/__init__.py": "",
        "tests/two/test_same.py": "def test_a(): assert 0\n",
        "tests/test_broken.py": "import nowhere\n" + PASSES,
    },
    together={
        HardCase.PASS_AND_FAILURE: Shown(
            {"tests/test_it.py::test_passes": "passed", "tests/test_it.py::test_fails": "failed"}
        ),
        HardCase.SUB_TEST: Shown({"tests/test_it.py::TestUnit::test_sub_test": "failed"}),
        HardCase.TEARDOWN: Shown({"tests/test_it.py::test_teardown": "error"}),
        HardCase.XFAIL: Shown({"tests/test_it.py::test_xfail": "xfailed"}),
        HardCase.XPASS: Shown({"tests/test_it.py::test_xpass": "xpassed"}),
        HardCase.SKIP: Shown({"tests/test_it.py::test_skip": "skipped"}),
        HardCase.ODD_IDS: Shown(
            passed(*(f"tests/test_it.py::test_odd[{text}]" for text in ("a b", "a c", 'x[ "a" ]', "x[it's]", "[")))
        ),
        HardCase.SAME_NAME: Shown(
            {"tests/one/test_same.py::test_a": "passed", "tests/two/test_same.py::test_a": "failed"}
        ),
        HardCase.BROKEN_PART: Shown(uncollected=frozenset({"tests/test_broken.py"})),
        HardCase.NEIGHBOUR_OUTPUT: Shown(passed("tests/test_it.py::test_prints")),
        HardCase.NOT_UTF8: Shown(passed("tests/test_it.py::test_bytes")),
        HardCase.MUCH_OUTPUT: Shown(passed("tests/test_it.py::test_loud")),
    },
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {"test_a.py": "import nowhere\n"},
            frozenset({RunStatus.COMPLETED}),
            Shown(uncollected=frozenset({"test_a.py"})),
        ),
        HardCase.EXIT_0: Alone(
            {"test_a.py": PASSES + "def test_b(): import os; os._exit(0)\n"}, frozenset({RunStatus.NO_REPORT})
        ),
        HardCase.KILLED: Alone(
            {"test_a.py": PASSES + "def test_b(): import os; os.kill(os.getpid(), 9)\n"},
            frozenset({RunStatus.NO_REPORT}),
        ),
        HardCase.NO_TESTS: Alone({"README": "no tests\n"}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={},
    chosen=(
        (b"tests/one/test_same.py", b"tests/two/test_same.py"),
        frozenset({"tests/one/test_same.py::test_a", "tests/two/test_same.py::test_a"}),
    ),
)
