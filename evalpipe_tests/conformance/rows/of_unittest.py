"""The hard cases for unittest; `test_unittest_runner` asks more."""

from __future__ import annotations

from evalpipe.runners import RunStatus, UnittestRunner
from evalpipe_tests.conformance.environments import TestEnvironment
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed

TESTS = r"""
    import os, unittest

    class Case(unittest.TestCase):
        def test_passes(self):
            "A text of two lines,\nas Django would print it"
        def test_fails(self): self.fail("here is why")
        def test_sub_test(self):
            for number in range(3):
                with self.subTest("a [b] 'c'", number=number):
                    self.assertNotEqual(number, 1)
        @unittest.expectedFailure
        def test_xfail(self): self.fail()
        @unittest.expectedFailure
        def test_xpass(self): pass
        @unittest.skip("ok")
        def test_skip(self): self.fail()
        def test_prints(self): print("test_fails (test_it.Case) ... ok", end="")
        def test_bytes(self): os.write(1, b"\xff\xfe ok\n")
        def test_loud(self): [os.write(1, b"y" * 4999 + b"\n") for _ in range(10_000)]
    class BadTearDown(unittest.TestCase):
        def tearDown(self): raise RuntimeError("tear down")
        def test_a(self): pass
    class BadClassEnd(unittest.TestCase):
        @classmethod
        def tearDownClass(cls): raise RuntimeError("tear down class")
        def test_a(self): pass
    for text in ("a b", "a c", 'x[ "a" ]', "x[it's]", "["):
        setattr(Case, f"test_odd[{text}]", lambda self: None)
"""
SAME = "import unittest\nclass Case(unittest.TestCase):\n    def test_a(self): self.assertTrue({})\n"
HERE = "test_it.py::test_it.Case.test_"

ROW = Row(
    runner=UnittestRunner(),
    environment=TestEnvironment(),
    files={
        "test_it.py": TESTS,
        "one/__init__.py": "",
        "one/test_same.py": SAME.format(True),
        "two/__init__.py": "",
        "two/test_same.py": SAME.format(False),
        "two/test_again.py": "from two.test_same import Case\n",
        "test_broken.py": "import nowhere\n",
    },
    together={
        HardCase.PASS_AND_FAILURE: Shown({f"{HERE}passes": "passed", f"{HERE}fails": "failed"}),
        HardCase.SUB_TEST: Shown({f"{HERE}sub_test": "failed"}),
        HardCase.TEARDOWN: Shown(
            {"test_it.py::test_it.BadTearDown.test_a": "error", "test_it.py::test_it.BadClassEnd.test_a": "error"}
        ),
        HardCase.XFAIL: Shown({f"{HERE}xfail": "xfailed"}),
        HardCase.XPASS: Shown({f"{HERE}xpass": "xpassed"}),
        HardCase.SKIP: Shown({f"{HERE}skip": "skipped"}),
        HardCase.ODD_IDS: Shown(passed(*(f"{HERE}odd[{text}]" for text in ("a b", "a c", 'x[ "a" ]', "x[it's]", "[")))),
        HardCase.SAME_NAME: Shown(
            {
                "one/test_same.py::one.test_same.Case.test_a": "passed",
                "two/test_same.py::two.test_same.Case.test_a": "failed",
            },
            # unittest runs a class again for each module that holds it.
            duplicates=frozenset({"two/test_same.py::two.test_same.Case.test_a"}),
        ),
        HardCase.BROKEN_PART: Shown(uncollected=frozenset({"test_broken.py"})),
        HardCase.NEIGHBOUR_OUTPUT: Shown(passed(f"{HERE}prints")),
        HardCase.NOT_UTF8: Shown(passed(f"{HERE}bytes")),
        HardCase.MUCH_OUTPUT: Shown(passed(f"{HERE}loud")),
    },
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {"test_a.py": "import nowhere\n"},
            frozenset({RunStatus.COMPLETED}),
            Shown(uncollected=frozenset({"test_a.py"})),
        ),
        HardCase.EXIT_0: Alone(
            {"test_a.py": SAME.format("__import__('os')._exit(0)")}, frozenset({RunStatus.NO_REPORT})
        ),
        HardCase.KILLED: Alone(
            {"test_a.py": SAME.format("__import__('os').abort()")}, frozenset({RunStatus.NO_REPORT})
        ),
        HardCase.NO_TESTS: Alone({"README": "no tests\n"}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={},
    chosen=(
        (b"one/test_same.py", b"gone.py"),
        frozenset({"one/test_same.py::one.test_same.Case.test_a"}),
    ),
)
