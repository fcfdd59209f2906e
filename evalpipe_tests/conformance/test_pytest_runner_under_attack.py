"""What a pytest run must say when the suite forges, breaks, stops or floods it: by processes and in Docker."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from evalpipe.runners import PytestRunner, RunStatus
from evalpipe.runners.suite import run_suite
from evalpipe.sandbox import Limits
from evalpipe_tests.conformance.suites import LIMITS, TWO, Files, Place, outcomes

pytestmark = pytest.mark.slow

FORGED_OUTCOME = """
    import pytest
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        result = yield
        report = result.get_result()
        report.outcome = "passed"
"""
FORGED_CALL = """
    import pytest
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(item):
        item.runtest = lambda: None
"""


@pytest.mark.parametrize("conftest", [FORGED_OUTCOME, FORGED_CALL], ids=["makereport", "call"])
def test_a_conftest_that_forges_passes_is_shown_by_the_canary(place: Place, conftest: str) -> None:
    report = place.run({"conftest.py": conftest, "test_it.py": "def test_a(): assert 0\n"}).report
    assert report.status is RunStatus.COMPLETED
    assert not report.canary_failed


def test_printed_results_count_for_nothing(place: Place) -> None:
    conftest = """
        import sys
        print("PASSED test_it.py::test_a", flush=True)
        def pytest_runtest_logreport(report):
            sys.__stdout__.write(report.nodeid + " PASSED\\n")
        def pytest_unconfigure(config):
            print("PASSED test_it.py::test_new")
            print("== 99 passed in 0.01s ==")
    """
    report = place.report({"conftest.py": conftest, "test_it.py": "def test_a(): assert 0\n"})
    assert outcomes(report) == {"test_it.py::test_a": "failed"}


@pytest.mark.parametrize("name", ["evalpipe_report.py", "pytest.py", "json.py", "_pytest/__init__.py"])
def test_a_module_of_the_tree_does_not_take_the_place_of_the_runner(place: Place, name: str) -> None:
    report = place.report({name: "raise SystemExit(0)\n", "test_it.py": "def test_a(): assert 0\n"})
    assert outcomes(report) == {"test_it.py::test_a": "failed"}


def test_modules_are_found_from_the_top_of_the_tree(place: Place) -> None:
    suite = """
        import os, subprocess, sys, product
        def test_path(): assert sys.path[0] in (os.getcwd(), os.path.join(os.getcwd(), "tests"))
        def test_environment():
            assert not [name for name in os.environ if "EVALPIPE" in name]
            assert "PYTHONPATH" not in os.environ
        def test_command_line(): assert sys.argv[0].endswith("__main__.py")
    """
    found = outcomes(place.report({"product.py": "", "tests/test_it.py": suite}))
    assert set(found.values()) == {"passed"}


def test_options_of_the_host_do_not_reach_the_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")
    monkeypatch.setenv("PYTEST_PLUGINS", "nowhere")
    assert outcomes(place.report({"test_it.py": "def test_a(): pass\n"})) == {"test_it.py::test_a": "passed"}


def test_a_suite_of_unittest_alone(place: Place) -> None:
    suite = """
        import unittest
        class Case(unittest.TestCase):
            @classmethod
            def setUpClass(cls): cls.x = 1
            def test_a(self): self.assertEqual(self.x, 1)
            def test_b(self): self.assertEqual(self.x, 2)
        class Broken(unittest.TestCase):
            @classmethod
            def setUpClass(cls): raise RuntimeError
            def test_c(self): pass
        if __name__ == "__main__":
            unittest.main()
    """
    assert outcomes(place.report({"tests/__init__.py": "", "tests/test_it.py": suite})) == {
        "tests/test_it.py::Case::test_a": "passed",
        "tests/test_it.py::Case::test_b": "failed",
        "tests/test_it.py::Broken::test_c": "error",
    }


def test_a_suite_that_runs_pytest_itself_reports_its_own_tests_only(place: Place) -> None:
    suite = """
        import subprocess, sys
        pytest_plugins = "pytester"
        def test_inner(pytester):
            pytester.makepyfile("def test_x(): assert 0")
            assert pytester.runpytest_inprocess().ret == 1
            assert pytester.runpytest_subprocess().ret == 1
    """
    assert outcomes(place.report({"test_it.py": suite})) == {"test_it.py::test_inner": "passed"}


def test_a_child_that_runs_on_after_a_fork_reports_nothing(place: Place) -> None:
    suite = """
        import os
        def test_fork():
            child = os.fork()
            if child == 0:
                raise RuntimeError("the child goes on with the suite")
            os.waitpid(child, 0)
        def test_after(): pass
    """
    report = place.report({"test_it.py": suite})
    assert outcomes(report) == {"test_it.py::test_fork": "passed", "test_it.py::test_after": "passed"}
    assert report.duplicates == frozenset()


def test_fifty_megabytes_of_output_change_nothing(place: Place) -> None:
    suite = r"""
        import os
        def test_loud():
            for _ in range(800):
                os.write(1, b"\xff PASSED x\n" * 5500)
        def test_loud_failure():
            print("x" * 5_000_000)
            assert False, "y" * 5_000_000
    """
    run = place.run({"pytest.ini": "[pytest]\naddopts = -s\n", "test_it.py": suite})
    assert outcomes(run.report) == {"test_it.py::test_loud": "passed", "test_it.py::test_loud_failure": "failed"}
    assert len(run.outcome.stdout) <= LIMITS.output_bytes
    assert run.outcome.stdout_truncated
    assert len(run.report.tests["test_it.py::test_loud_failure"].message) < 5000


@pytest.mark.parametrize(
    ("last_words", "exit_code"),
    [
        ("os._exit(0)", 0),
        ("print('PASSED test_it.py::test_b'); os._exit(0)", 0),
        ("os.kill(os.getpid(), 9)", 137),
        ("os.abort()", 134),
        ("os.closerange(3, 100)", 1),
    ],
)
def test_a_process_that_ends_early_leaves_no_report(place: Place, last_words: str, exit_code: int) -> None:
    suite = f"import os\ndef test_a(): pass\ndef test_b():\n    {last_words}\ndef test_c(): pass\n"
    run = place.run({"test_it.py": suite})
    assert run.report.status is RunStatus.NO_REPORT
    assert not run.report.tests
    assert run.outcome.exit_code == exit_code


FORGERY = """
    import glob, json, os
    def answer():
        for path in glob.glob("../runner/*.json") + glob.glob("../*.jsonl"):
            with open(path, "rb") as file:
                known = file.read()
            with open(path, "ab" if {append} else "wb") as file:
                passed = dict(kind="phase", id="test_it.py::test_a", when="call", outcome="passed", xfail=False,
                              subtest=False, seconds=0.0, message="")
                seal = known[-1000:].split(b"\\n")[-2][:64] if known.count(b"\\n") else b"0" * 64
                for record in (passed, dict(kind="end", exit_status=1)):
                    file.write(seal + b" " + json.dumps(record).encode() + b"\\n")
        os._exit(0)
"""


@pytest.mark.parametrize("append", [True, False])
def test_a_report_that_the_product_writes_is_damaged(place: Place, append: bool) -> None:
    files = {
        "product.py": FORGERY.format(append=append),
        "test_it.py": "import product\ndef test_a(): product.answer()\n",
    }
    report = place.run(files).report
    assert report.status is RunStatus.DAMAGED_REPORT
    assert not report.tests


def test_a_report_that_the_product_prints_is_damaged(place: Place) -> None:
    product = """
        import json, os, re, signal
        def answer():
            shell = f"/proc/{os.getppid()}/fd"
            scripts = [name for name in os.listdir(shell) if "run.sh" in os.readlink(f"{shell}/{name}")]
            with open(f"{shell}/{scripts[0]}") as script:
                token = re.search("printf .*?([0-9a-f]{32})", script.read()).group(1)
            passed = dict(kind="phase", id="test_it.py::test_a", when="call", outcome="passed", xfail=False,
                          subtest=False, seconds=0.0, message="")
            lines = "".join("0" * 64 + " " + json.dumps(record) + "\\n" for record in (passed, dict(kind="end")))
            for number in os.listdir("/proc/self/fd"):
                try:
                    os.write(int(number), f"\\n{token} {len(lines)}\\n{lines}{token}\\n".encode())
                except OSError:
                    pass
            os.kill(os.getppid(), signal.SIGKILL)
    """
    report = place.run({"product.py": product, "test_it.py": "import product\ndef test_a(): product.answer()\n"}).report
    assert report.status is RunStatus.DAMAGED_REPORT
    assert not report.tests


def test_a_long_report_and_a_program_that_prints_on_are_no_matter(place: Place) -> None:
    noise = "import sys, time; end = time.time() + 4\\nwhile time.time() < end: print('noise', flush=True)"
    suite = f"""
        import os, pytest, subprocess, sys
        @pytest.mark.parametrize("number", range(700))
        def test_it(number):
            if number == 0:
                output = open(f"/proc/{{os.getppid()}}/fd/1", "w")
                subprocess.Popen([sys.executable, "-c", "{noise}"], stdout=output, start_new_session=True)
            assert number != 699
    """
    found = outcomes(place.report({"test_it.py": suite}))
    assert found == {f"test_it.py::test_it[{n}]": "failed" if n == 699 else "passed" for n in range(700)}


def test_the_key_does_not_lie_on_the_disk_when_the_tests_run(place: Place) -> None:
    suite = """
        import glob, os
        def test_files():
            assert sorted(os.listdir("../runner")) == ["evalpipe_report.py", "evalpipe_seal.py"]
            with open(glob.glob("../*.jsonl")[0]) as file:
                assert "key" not in file.read()
    """
    assert outcomes(place.report({"test_it.py": suite})) == {"test_it.py::test_files": "passed"}


@pytest.mark.parametrize(
    "stop", ["pytest.exit('enough', 0)", "raise KeyboardInterrupt", "request.session.shouldstop = 'x'"]
)
def test_a_run_that_is_stopped_in_the_middle_is_no_report(place: Place, stop: str) -> None:
    suite = f"import pytest\ndef test_a(request):\n    {stop}\ndef test_b(): pass\n"
    assert place.run({"test_it.py": suite}).report.status is RunStatus.NO_REPORT


@pytest.mark.parametrize(
    "files",
    [
        {"pytest.ini": "[pytest]\naddopts = --no-such-option\n", "test_it.py": TWO},
        {"pytest.ini": "[pytest]\naddopts = --collect-only\n", "test_it.py": TWO},
        {"conftest.py": "def pytest_runtest_protocol(item): raise RuntimeError\n", "test_it.py": TWO},
    ],
    ids=["option", "collect-only", "internal error"],
)
def test_a_run_that_cannot_begin_is_no_report(place: Place, files: Files) -> None:
    assert place.run(files).report.status is RunStatus.NO_REPORT


def test_a_conftest_that_cannot_be_imported_lets_nothing_build(place: Place) -> None:
    report = place.run({"conftest.py": "import nowhere\n", "test_it.py": TWO}).report
    assert report.status is RunStatus.BUILD_FAILED
    assert not report.tests


@pytest.mark.parametrize("close", ["sys.stdout.close()", "os.close(1)"])
def test_a_test_that_closes_its_output_makes_no_passes(place: Place, close: str) -> None:
    suite = f"import os, sys\ndef test_a(): pass\ndef test_b():\n    {close}\ndef test_c(): assert 0\n"
    report = place.run({"test_it.py": suite}).report
    # pytest survives the second; the first breaks its capturing, and with it every test that follows.
    assert report.status is (RunStatus.COMPLETED if "os.close" in close else RunStatus.NO_REPORT)
    assert "passed" not in [outcomes(report).get("test_it.py::test_c")]


def test_a_report_that_the_tests_replace_by_a_link_is_damaged(place: Place) -> None:
    suite = """
        import glob, os
        def test_a():
            (report,) = glob.glob("../*.jsonl")
            os.unlink(report)
            os.symlink("/etc/passwd", report)
    """
    assert place.run({"test_it.py": suite}).report.status is RunStatus.DAMAGED_REPORT


def test_a_python_that_is_not_there_is_no_report(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {"purpose": "test"}) as box:
        run = run_suite(box, PytestRunner(python="python1.0"), [])
    assert run.report.status is RunStatus.NO_REPORT


def test_a_test_over_the_limit_is_a_timeout_and_its_processes_are_gone(place: Place) -> None:
    mark = uuid.uuid4().hex
    suite = f"""
        import subprocess, sys, time
        def test_a(): pass
        def test_sleeps():
            command = [sys.executable, "-c", "import time; time.sleep(600)", "{mark}"]
            subprocess.Popen(command, start_new_session=True)
            time.sleep(600)
    """
    run = place.run({"test_it.py": suite}, limits=Limits(timeout_s=4))
    assert run.report.status is RunStatus.TIMEOUT
    assert run.report.detail == "stopped after 4 s"
    assert not run.report.tests
    assert _processes_with(mark) == []


def _processes_with(mark: str) -> list[str]:
    def arguments(process: Path) -> str:
        try:
            return (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return ""

    return [found for process in Path("/proc").glob("[0-9]*") if mark in (found := arguments(process))]


def test_nothing_is_written_into_the_tree_by_the_run_itself(place: Place) -> None:
    suite = """
        import os
        def test_tree():
            found = [os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names]
            assert found == ["./test_it.py"], found
    """
    assert outcomes(place.report({"test_it.py": suite})) == {"test_it.py::test_tree": "passed"}
