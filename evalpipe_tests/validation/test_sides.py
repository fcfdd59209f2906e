"""Both sides of real changes in real git repositories: the same tests run on the old code and on the new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from evalpipe.history import Repository
from evalpipe.runners import PytestRunner, RunStatus, SuiteReport
from evalpipe.sandbox import Limits, ProcessSandbox
from evalpipe.validation import (
    AFTER,
    BEFORE,
    WITH_NETWORK,
    ChangeUnderTest,
    RunConditions,
    Suite,
    TwoSides,
    ValidationClass,
    judge_pass,
    run_conditions,
    side_files,
)
from evalpipe_tests.history.builder import EXECUTABLE, LINK, Builder, File
from evalpipe_tests.runners.environment import bare_pytest

pytestmark = pytest.mark.slow

OLD = b"def double(x): return x + 1\n"
NEW = b"def double(x): return x * 2\n"
TEST = b"import product\ndef test_double(): assert product.double(4) == 8\n"
OTHER = b"def test_other(): pass\n"


@dataclass
class Bench:
    """A repository, a sandbox and an environment."""

    builder: Builder
    sandbox: ProcessSandbox
    environment: str

    def outcomes(
        self, old: dict[bytes, File], change: dict[bytes, File], tests: list[bytes]
    ) -> tuple[TwoSides, dict[str, str]]:
        """Both sides of `change` on top of `old`, and each test's outcomes in one word: `failed passed`."""
        found = self.sides(old, change, tests)
        before, after = found.before, found.after
        assert before.status is after.status is RunStatus.COMPLETED, (before.detail, after.detail)
        words = {
            test: " ".join(side.tests[test].outcome.value if test in side.tests else "-" for side in (before, after))
            for test in [*before.tests, *after.tests]
        }
        return found, words

    def sides(self, old: dict[bytes, File], change: dict[bytes, File], tests: list[bytes]) -> TwoSides:
        """Both sides of `change` on top of `old`."""
        parent = self.builder.commit({b"product.py": OLD, **old}, "old")
        commit = self.builder.commit({b"product.py": NEW, **change}, "new")
        under_test = ChangeUnderTest("demo-1", parent, commit, tuple(tests))
        before, after = (self.run(under_test, side) for side in (BEFORE, AFTER))
        return TwoSides(before, after, "2026-10-01")

    def run(self, change: ChangeUnderTest, conditions: RunConditions) -> SuiteReport:
        files = side_files(Repository(self.builder.path), change, conditions.side)
        suite = Suite(self.environment, Limits(timeout_s=60), PytestRunner())
        labels = {"purpose": "test"}
        run = run_conditions(self.sandbox, suite, files, conditions, labels)
        assert labels == {"purpose": "test"}
        assert list(self.sandbox.boxes.iterdir()) == []
        return run.report


@pytest.fixture
def bench(tmp_path: Path, process_sandbox: ProcessSandbox) -> Bench:
    return Bench(Builder(tmp_path / "source.git"), process_sandbox, bare_pytest(tmp_path / "environment"))


def test_a_changed_test_file_runs_on_the_old_code(bench: Bench) -> None:
    path = b"tests/test_product.py"
    sides, found = bench.outcomes({path: OTHER, b"tests/test_x.py": OTHER}, {path: TEST + OTHER}, [path])
    assert found == {
        "tests/test_product.py::test_double": "failed passed",
        "tests/test_product.py::test_other": "passed passed",
        "tests/test_x.py::test_other": "passed passed",
    }
    assert judge_pass(sides, [path]).validation_class is ValidationClass.VALID


def test_a_change_whose_only_test_change_is_one_new_file(bench: Bench) -> None:
    path = b"tests/test_new.py"
    sides, found = bench.outcomes({b"tests/test_x.py": OTHER}, {path: TEST}, [path])
    assert found == {"tests/test_new.py::test_double": "failed passed", "tests/test_x.py::test_other": "passed passed"}
    assert judge_pass(sides, [path]).fail_to_pass == {"tests/test_new.py::test_double"}


def test_a_test_file_that_the_change_deletes_runs_on_neither_side(bench: Bench) -> None:
    gone, kept = b"tests/test_gone.py", b"tests/test_product.py"
    _, found = bench.outcomes({gone: OTHER, kept: OTHER}, {gone: None, kept: TEST}, [gone, kept])
    assert found == {"tests/test_product.py::test_double": "failed passed"}


def test_a_test_file_that_the_change_moves_runs_under_its_new_name(bench: Bench) -> None:
    old, new = b"tests/test_old.py", "tests/new folder/test_é.py".encode()
    _, found = bench.outcomes({old: OTHER}, {old: None, new: OTHER + TEST}, [old, new])
    assert found == {
        "tests/new folder/test_é.py::test_other": "passed passed",
        "tests/new folder/test_é.py::test_double": "failed passed",
    }


def test_a_binary_fixture_arrives_byte_by_byte(bench: Bench) -> None:
    data = bytes(range(256)) * 4
    test = b"""
import pathlib, product
DATA = pathlib.Path(__file__).with_name("data.bin").read_bytes()
def test_data(): assert DATA == bytes(range(256)) * 4
def test_double(): assert product.double(len(DATA)) == 2048
"""
    tests = [b"tests/data.bin", b"tests/test_product.py"]
    _, found = bench.outcomes({tests[0]: b"\x00old"}, {tests[0]: data, tests[1]: test}, tests)
    assert found == {
        "tests/test_product.py::test_data": "passed passed",
        "tests/test_product.py::test_double": "failed passed",
    }


def test_no_line_ending_filter_or_attribute_changes_a_byte(bench: Bench) -> None:
    attributes = b"*.txt text eol=crlf\n*.py text eol=lf ident\ntests/left_out.txt export-ignore\n"
    test = (
        b"import pathlib, product\r\n"
        b"HERE = pathlib.Path(__file__).parent\r\n"
        b"def test_own(): assert b'\\r\\n' in pathlib.Path(__file__).read_bytes()  # $Id$\r\n"
        b"def test_text(): assert (HERE / 'a.txt').read_bytes() == b'one\\ntwo\\r\\nthree'\r\n"
        b"def test_left(): assert (HERE / 'left_out.txt').read_bytes() == b'x'\r\n"
        b"def test_double(): assert product.double(4) == 8\r\n"
    )
    files: dict[bytes, File] = {
        b"tests/a.txt": b"one\ntwo\r\nthree",
        b"tests/left_out.txt": b"x",
        b"tests/test_product.py": test,
    }
    _, found = bench.outcomes({b".gitattributes": attributes}, files, list(files))
    assert found == {
        "tests/test_product.py::test_own": "passed passed",
        "tests/test_product.py::test_text": "passed passed",
        "tests/test_product.py::test_left": "passed passed",
        "tests/test_product.py::test_double": "failed passed",
    }


def test_modes_and_links_are_those_of_git(bench: Bench) -> None:
    test = b"""
import os, subprocess
HERE = os.path.dirname(__file__)
def test_link(): assert os.readlink(os.path.join(HERE, "link")) == "tool"
def test_tool(): assert subprocess.check_output([os.path.join(HERE, "tool")]) == b"hello\\n"
"""
    files: dict[bytes, File] = {
        b"tests/tool": (EXECUTABLE, b"#!/bin/sh\necho hello\n"),
        b"tests/link": (LINK, b"tool"),
        b"tests/test_tool.py": test,
    }
    _, found = bench.outcomes({}, files, list(files))
    assert found == {"tests/test_tool.py::test_link": "passed passed", "tests/test_tool.py::test_tool": "passed passed"}


def test_a_new_test_file_that_does_not_import_before_is_compile_only(bench: Bench) -> None:
    path = b"tests/test_new.py"
    change: dict[bytes, File] = {b"product.py": NEW + b"triple = 3\n", path: b"from product import triple\n" + OTHER}
    sides, found = bench.outcomes({}, change, [path])
    assert found == {"tests/test_new.py::test_other": "- passed"}
    judged = judge_pass(sides, [path])
    assert judged.validation_class is ValidationClass.COMPILE_ONLY
    assert "tests/test_new.py is not collected there" in judged.evidence


def test_a_new_conftest_that_does_not_import_before_is_compile_only(bench: Bench) -> None:
    tests = [b"checks/conftest.py", b"checks/test_new.py"]
    change: dict[bytes, File] = {
        b"product.py": NEW + b"triple = 3\n",
        tests[0]: b"from product import triple\n",
        tests[1]: OTHER,
    }
    sides, _ = bench.outcomes({b"test_x.py": OTHER}, change, tests)
    assert judge_pass(sides, tests).validation_class is ValidationClass.COMPILE_ONLY


def test_a_conftest_that_pytest_reads_at_its_start_does_not_import_before(bench: Bench) -> None:
    """pytest looks into folders called `test…` before it collects, and a failure there ends it."""
    tests = [b"tests/conftest.py", b"tests/test_new.py"]
    change: dict[bytes, File] = {
        b"product.py": NEW + b"triple = 3\n",
        tests[0]: b"from product import triple\n",
        tests[1]: OTHER,
    }
    sides = bench.sides({b"test_x.py": OTHER}, change, tests)
    assert sides.before.status is RunStatus.BUILD_FAILED
    judged = judge_pass(sides, tests)
    assert judged.validation_class is ValidationClass.COMPILE_ONLY
    assert judged.missing_names == ("triple",)
    assert judged.fail_to_pass == {"tests/test_new.py::test_other"}
    assert "tests/conftest.py cannot be imported" in judged.evidence


def test_a_conftest_that_breaks_in_another_way_gives_no_report(bench: Bench) -> None:
    tests = [b"tests/conftest.py"]
    sides = bench.sides({tests[0]: b"", b"test_x.py": OTHER}, {tests[0]: b"raise RuntimeError('no database')\n"}, tests)
    judged = judge_pass(sides, tests)
    assert judged.validation_class is ValidationClass.NO_REPORT


def test_a_test_that_wants_the_network_is_found_by_comparing(bench: Bench) -> None:
    if not bench.sandbox.cuts_network:
        pytest.skip("this kernel does not let the process sandbox cut the network")
    path = b"tests/test_net.py"
    # To connect a datagram socket to a documentation address takes a route, and sends nothing.
    test = b"import socket\ndef test_net(): socket.socket(type=socket.SOCK_DGRAM).connect(('198.51.100.7', 9))\n"
    sides, _ = bench.outcomes({}, {path: test}, [path])
    assert judge_pass(sides, [path]).validation_class is ValidationClass.AFTER_FAILS
    tip = bench.builder.branches["main"]
    change = ChangeUnderTest("demo-1", tip, tip, (path,))
    compared = replace(sides, with_network=bench.run(change, WITH_NETWORK))
    judged = judge_pass(compared, [path])
    assert judged.validation_class is ValidationClass.NEEDS_NETWORK
    assert judged.need_network == {"tests/test_net.py::test_net"}


def test_a_path_that_is_not_utf8_is_one_of_the_changes_own(bench: Bench) -> None:
    path = b"tests/test_\xe9.py"
    sides, found = bench.outcomes({}, {path: b"def test_a(): assert 0\n"}, [path])
    assert found == {r"tests/test_\xe9.py::test_a": "failed failed"}
    assert judge_pass(sides, [path]).validation_class is ValidationClass.AFTER_FAILS
