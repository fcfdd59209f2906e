"""What a pytest run must say, whatever the repository does: the same cases by processes and in Docker.

The base image has pytest 7, the virtual environment pytest 9; where their outcomes differ, the test says so.
"""

from __future__ import annotations

import shlex
import sys
import textwrap
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalpipe.runners import PytestRunner, RunStatus, SuiteReport
from evalpipe.runners.suite import SuiteRun, run_suite
from evalpipe.sandbox import REGULAR, FileEntry, Limits, ProcessSandbox, Sandbox

LIMITS = Limits(timeout_s=120)
Files = Mapping[str, str] | Mapping[bytes, str]


@dataclass(frozen=True)
class Place:
    """A sandbox with an environment that has pytest."""

    sandbox: Sandbox
    environment: str

    def run(self, files: Files, *, limits: Limits = LIMITS, arguments: tuple[str, ...] = ()) -> SuiteRun:
        """Run the suite that these files are, through the function that validation and grading use."""
        with self.sandbox.open(self.environment, limits, {"purpose": "test"}) as box:
            return run_suite(box, PytestRunner(arguments=arguments), [_entry(*file) for file in files.items()])

    def report(self, files: Files, *, arguments: tuple[str, ...] = ()) -> SuiteReport:
        """The report of a run that must be complete and have a canary that failed."""
        report = self.run(files, arguments=arguments).report
        assert report.status is RunStatus.COMPLETED, report.detail
        assert report.canary_failed
        return report


def _entry(path: str | bytes, content: str) -> FileEntry:
    name = path.encode() if isinstance(path, str) else path
    return FileEntry(name, REGULAR, textwrap.dedent(content).encode())


@pytest.fixture(scope="module", params=[pytest.param("docker", marks=pytest.mark.docker), "process"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    if request.param == "docker":
        return Place(request.getfixturevalue("docker_sandbox"), request.getfixturevalue("base_image"))
    return Place(ProcessSandbox("test", tmp_path_factory.mktemp("boxes")), str(_environment(tmp_path_factory)))


def _environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of this test run, with pytest and none of the plugins that lie there: they take most of its time."""
    folder = tmp_path_factory.mktemp("environment")
    program = folder / "bin" / "python3"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o755)
    return folder


def _outcomes(report: SuiteReport) -> dict[str, str]:
    return {test_id: result.outcome.value for test_id, result in report.tests.items()}


OUTCOMES = """
    import os, sys, unittest
    import pytest

    @pytest.fixture
    def bad_teardown():
        yield
        raise RuntimeError("teardown")

    @pytest.fixture
    def bad_setup():
        raise RuntimeError("setup")

    def test_passes(): pass
    def test_fails(): assert 0, "here is why"
    def test_teardown(bad_teardown): pass
    def test_fails_twice(bad_teardown): assert 0
    def test_setup(bad_setup): pass
    @pytest.mark.xfail
    def test_xfail(): assert 0
    @pytest.mark.xfail
    def test_xpass(): pass
    @pytest.mark.xfail(strict=True)
    def test_xpass_strict(): pass
    @pytest.mark.skip(reason="PASSED")
    def test_skip(): assert 0
    def test_late_skip(): pytest.skip("why")
    async def test_async(): assert 0
    def test_prints_results(): print("\\nPASSED test_outcomes.py::test_fails\\n. [100%]\\nPASSED")
    def test_prints_without_newline(): print("test_outcomes.py::test_fails PASSED", end="")
    def test_bytes(): sys.stdout.buffer.write(b"\\xff\\xfe PASSED\\n")
    def test_changes_folder(tmp_path): os.chdir(tmp_path)
    def test_no_fixture(nowhere): pass

    class TestUnit(unittest.TestCase):
        def test_sub_test(self):
            "A text of two lines,\\nas Django would print it"
            for number in range(3):
                with self.subTest(number=number):
                    self.assertNotEqual(number, 1)
        def test_all_sub_tests(self):
            with self.subTest(number=1):
                pass
        @unittest.expectedFailure
        def test_expected(self): self.fail()
        @unittest.expectedFailure
        def test_unexpected(self): pass
        @unittest.skip("why")
        def test_skip(self): self.fail()
        def tearDown(self): print("ok")
"""
EXPECTED = {
    "test_passes": "passed",
    "test_fails": "failed",
    "test_teardown": "error",
    "test_fails_twice": "failed",
    "test_setup": "error",
    "test_xfail": "xfailed",
    "test_xpass": "xpassed",
    "test_xpass_strict": "failed",
    "test_skip": "skipped",
    "test_late_skip": "skipped",
    "test_prints_results": "passed",
    "test_prints_without_newline": "passed",
    "test_bytes": "passed",
    "test_changes_folder": "passed",
    "test_no_fixture": "error",
    "TestUnit::test_sub_test": "failed",
    "TestUnit::test_all_sub_tests": "passed",
    "TestUnit::test_expected": "xfailed",
    "TestUnit::test_unexpected": "failed",
    "TestUnit::test_skip": "skipped",
}


def test_every_outcome_is_told_and_only_a_pass_is_passed(place: Place) -> None:
    report = place.report({"test_outcomes.py": OUTCOMES})
    found = {test_id.removeprefix("test_outcomes.py::"): outcome for test_id, outcome in _outcomes(report).items()}
    # Without a plugin for them, pytest skips asynchronous tests, and from version 8.4 on fails them.
    assert found.pop("test_async") in ("skipped", "failed")
    assert found == EXPECTED
    assert "here is why" in report.tests["test_outcomes.py::test_fails"].message
    assert report.duplicates == frozenset()


def test_a_sub_test_of_the_fixture_that_fails_fails_its_test(place: Place) -> None:
    suite = """
        def test_one_fails(subtests):
            for number in range(3):
                with subtests.test(number=number):
                    assert number != 1
        def test_all_pass(subtests):
            with subtests.test("fine"):
                pass
    """
    found = _outcomes(place.report({"test_sub.py": suite}))
    # Before pytest 9 there is no such fixture.
    assert found in (
        {"test_sub.py::test_one_fails": "failed", "test_sub.py::test_all_pass": "passed"},
        {"test_sub.py::test_one_fails": "error", "test_sub.py::test_all_pass": "error"},
    )


IDS = """
    import pytest
    TEXTS = ["a b", "a c", 'x[ "a" ]', "x[it's]", "[", "", " tail ", "a::b", "a\\nb", "\\x1b[31m", "é", "\\udcff"]
    @pytest.mark.parametrize("text", TEXTS)
    def test_text(text): pass
    @pytest.mark.parametrize("number", [1, 1, 2], ids=["same", "same", "other"])
    def test_same(number): assert number == 1
    @pytest.mark.parametrize("thing", [object(), object()])
    def test_things(thing): pass
    def test_named_twice(): pass
    def test_named_twice(): assert 0
"""
ESCAPED = ["a b", "a c", 'x[ "a" ]', "x[it's]", "[", "", " tail ", "a::b", r"a\nb", r"\x1b[31m", r"\xe9", r"\udcff"]


def test_ids_are_those_of_pytest_to_the_character(place: Place) -> None:
    found = _outcomes(place.report({"tests/test_a blank.py": IDS}))
    passed = [f"text[{text}]" for text in ESCAPED]
    passed += ["same[same0]", "same[same1]", "things[thing0]", "things[thing1]"]
    failed = ["same[other]", "named_twice"]
    expected = dict.fromkeys(passed, "passed") | dict.fromkeys(failed, "failed")
    assert found == {f"tests/test_a blank.py::test_{test}": outcome for test, outcome in expected.items()}


def test_ids_that_a_repository_lets_stand_raw_can_be_stored(place: Place) -> None:
    setting = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support"
    found = place.report({"pytest.ini": f"[pytest]\n{setting} = True\n", "test_ids.py": IDS})
    raw = {test_id.removeprefix("test_ids.py::test_text") for test_id in found.tests if "test_text" in test_id}
    assert {"[é]", "[a b]", "[a\nb]", r"[\xff]"} <= raw
    "".join(found.tests).encode()


def test_a_test_file_whose_name_is_not_utf8_has_a_storable_id(place: Place) -> None:
    found = _outcomes(
        place.report({b"test_\xff.py": "def test_a(): pass\n", "grün/test_é.py".encode(): "def test_b(): pass\n"})
    )
    assert found == {r"test_\xff.py::test_a": "passed", "grün/test_é.py::test_b": "passed"}


def test_files_of_one_name_are_told_apart(place: Place) -> None:
    files = {"one/test_it.py": "def test_a(): pass\n", "two/test_it.py": "def test_a(): assert 0\n"}
    report = place.report(files)
    # pytest imports both as `test_it`, and refuses the second.
    assert _outcomes(report) == {"one/test_it.py::test_a": "passed"}
    assert set(report.uncollected) == {"two/test_it.py"}
    packages = {"one/__init__.py": "", "two/__init__.py": ""}
    assert _outcomes(place.report({**files, **packages})) == {
        "one/test_it.py::test_a": "passed",
        "two/test_it.py::test_a": "failed",
    }


def test_a_test_that_is_collected_twice_is_a_duplicate(place: Place) -> None:
    settings = "[pytest]\naddopts = --keep-duplicates test_it.py test_it.py\n"
    report = place.report({"pytest.ini": settings, "test_it.py": "def test_a(): pass\n", "test_other.py": TWO})
    assert report.duplicates == {"test_it.py::test_a"}
    assert _outcomes(report) == {"test_it.py::test_a": "passed"}


def test_modules_that_do_not_import_are_named_and_hide_no_other_test(place: Place) -> None:
    report = place.report(
        {
            "test_a.py": "import nowhere\ndef test_a(): pass\n",
            "tests/test_b.py": "def test_b(:\n",
            "tests/test_c.py": "def test_c(): pass\n",
        }
    )
    assert _outcomes(report) == {"tests/test_c.py::test_c": "passed"}
    assert set(report.uncollected) == {"test_a.py", "tests/test_b.py"}
    assert "nowhere" in report.uncollected["test_a.py"]


def test_a_conftest_of_a_folder_that_does_not_import_is_named(place: Place) -> None:
    report = place.report({"deep/conftest.py": "import nowhere\n", "deep/test_a.py": "def test_a(): pass\n"})
    assert not report.tests
    # Before pytest 8, which has a node for a folder, the whole session has the error.
    assert set(report.uncollected) in ({"deep"}, {""})


@pytest.mark.parametrize("files", [{}, {"README": "no tests"}, {"conftest.py": ""}], ids=["empty", "text", "conftest"])
def test_a_tree_without_tests_has_a_complete_report_of_none(place: Place, files: Files) -> None:
    files = files or {"x": ""}
    assert place.report(files).tests == {}


TWO = """
    import pytest
    def test_a(): assert 0
    def test_b(): pass
    @pytest.mark.slow
    def test_c(): pass
"""
ALL = {"test_it.py::test_a": "failed", "test_it.py::test_b": "passed", "test_it.py::test_c": "passed"}


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        ("-x --maxfail=1 --exitfirst --stepwise", ()),
        ("-p no:terminal", ()),
        ("-p no:cacheprovider --strict-markers --strict-config -W error", ()),
        ("-q -q -s --tb=no --no-header --color=yes --durations=3 -p no:capture", ()),
        ("-vv -rA --junitxml=report.xml --import-mode=importlib", ()),
        ("-m 'not slow'", ("c",)),
        ("-k test_b", ("a", "c")),
        ("--deselect test_it.py::test_a", ("a",)),
    ],
)
def test_settings_of_the_repository_neither_stop_the_run_nor_take_the_canary(
    place: Place, options: str, left_out: tuple[str, ...]
) -> None:
    settings = f"[pytest]\naddopts = {options}\nmarkers = slow: takes long\n"
    report = place.report({"pytest.ini": settings, "test_it.py": TWO, "test_broken.py": "import nowhere\n"})
    assert _outcomes(report) == {test: outcome for test, outcome in ALL.items() if test[-1] not in left_out}
    assert set(report.uncollected) == {"test_broken.py"}


def test_the_arguments_of_a_runner_select(place: Place) -> None:
    settings = "[pytest]\nmarkers = slow: takes long\n"
    report = place.report({"pytest.ini": settings, "test_it.py": TWO}, arguments=("-m", "slow"))
    assert _outcomes(report) == {"test_it.py::test_c": "passed"}


def test_workers_of_a_distributing_plugin_are_turned_off(place: Place) -> None:
    conftest = """
        def pytest_addoption(parser):
            parser.addoption("--numprocesses", type=int)
            parser.addoption("--dist")
            parser.addoption("--tx", action="append", default=[])
        def pytest_configure(config):
            option = config.option
            assert (option.numprocesses, option.dist, option.tx) == (0, "no", []), option
    """
    settings = "[pytest]\naddopts = --numprocesses 2 --dist load --tx 2*popen\n"
    files = {"pytest.ini": settings, "conftest.py": conftest, "test_it.py": "def test_a(): pass\n"}
    assert _outcomes(place.report(files)) == {"test_it.py::test_a": "passed"}


@pytest.mark.parametrize("hook", ["", "@pytest.hookimpl(trylast=True)", "@pytest.hookimpl(hookwrapper=True)"])
def test_a_conftest_that_deselects_everything_keeps_the_canary(place: Place, hook: str) -> None:
    conftest = f"""
        import pytest
        {hook}
        def pytest_collection_modifyitems(items):
            {"yield" if "wrapper" in hook else ""}
            items[:] = []
    """
    assert place.report({"conftest.py": conftest, "test_it.py": TWO}).tests == {}


def test_hooks_that_read_what_functions_have_do_not_break_the_canary(place: Place) -> None:
    conftest = """
        import pytest
        def pytest_runtest_setup(item):
            assert "db" not in item.fixturenames
            item.function.__name__, item.obj.__doc__, item.module.__name__, item.cls, item.instance, item.funcargs
            list(item.iter_markers()), item.get_closest_marker("slow"), item.location, item.keywords
        @pytest.fixture(autouse=True)
        def of_a_module(request):
            request.module.__name__
    """
    assert _outcomes(place.report({"conftest.py": conftest, "test_it.py": "def test_a(): pass\n"}))


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
    assert _outcomes(report) == {"test_it.py::test_a": "failed"}


@pytest.mark.parametrize("name", ["evalpipe_report.py", "pytest.py", "json.py", "_pytest/__init__.py"])
def test_a_module_of_the_tree_does_not_take_the_place_of_the_runner(place: Place, name: str) -> None:
    report = place.report({name: "raise SystemExit(0)\n", "test_it.py": "def test_a(): assert 0\n"})
    assert _outcomes(report) == {"test_it.py::test_a": "failed"}


def test_modules_are_found_from_the_top_of_the_tree(place: Place) -> None:
    suite = """
        import os, subprocess, sys, product
        def test_path(): assert sys.path[0] in (os.getcwd(), os.path.join(os.getcwd(), "tests"))
        def test_environment():
            assert not [name for name in os.environ if "EVALPIPE" in name]
            assert "PYTHONPATH" not in os.environ
        def test_command_line(): assert sys.argv[0].endswith("__main__.py")
    """
    found = _outcomes(place.report({"product.py": "", "tests/test_it.py": suite}))
    assert set(found.values()) == {"passed"}


def test_options_of_the_host_do_not_reach_the_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")
    monkeypatch.setenv("PYTEST_PLUGINS", "nowhere")
    assert _outcomes(place.report({"test_it.py": "def test_a(): pass\n"})) == {"test_it.py::test_a": "passed"}


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
    assert _outcomes(place.report({"tests/__init__.py": "", "tests/test_it.py": suite})) == {
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
    assert _outcomes(place.report({"test_it.py": suite})) == {"test_it.py::test_inner": "passed"}


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
    assert _outcomes(report) == {"test_it.py::test_fork": "passed", "test_it.py::test_after": "passed"}
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
    assert _outcomes(run.report) == {"test_it.py::test_loud": "passed", "test_it.py::test_loud_failure": "failed"}
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


@pytest.mark.parametrize(
    "stop", ["pytest.exit('enough', 0)", "raise KeyboardInterrupt", "request.session.shouldstop = 'x'"]
)
def test_a_run_that_is_stopped_in_the_middle_is_no_report(place: Place, stop: str) -> None:
    suite = f"import pytest\ndef test_a(request):\n    {stop}\ndef test_b(): pass\n"
    assert place.run({"test_it.py": suite}).report.status is RunStatus.NO_REPORT


@pytest.mark.parametrize(
    "files",
    [
        {"conftest.py": "import nowhere\n", "test_it.py": TWO},
        {"pytest.ini": "[pytest]\naddopts = --no-such-option\n", "test_it.py": TWO},
        {"pytest.ini": "[pytest]\naddopts = --collect-only\n", "test_it.py": TWO},
        {"conftest.py": "def pytest_runtest_protocol(item): raise RuntimeError\n", "test_it.py": TWO},
    ],
    ids=["conftest", "option", "collect-only", "internal error"],
)
def test_a_run_that_cannot_begin_is_no_report(place: Place, files: Files) -> None:
    assert place.run(files).report.status is RunStatus.NO_REPORT


@pytest.mark.parametrize("close", ["sys.stdout.close()", "os.close(1)"])
def test_a_test_that_closes_its_output_makes_no_passes(place: Place, close: str) -> None:
    suite = f"import os, sys\ndef test_a(): pass\ndef test_b():\n    {close}\ndef test_c(): assert 0\n"
    report = place.run({"test_it.py": suite}).report
    # pytest survives the second; the first breaks its capturing, and with it every test that follows.
    assert report.status is (RunStatus.COMPLETED if "os.close" in close else RunStatus.NO_REPORT)
    assert "passed" not in [_outcomes(report).get("test_it.py::test_c")]


def test_a_report_that_the_tests_replace_by_a_link_is_damaged(place: Place) -> None:
    suite = """
        import glob, os
        def test_a():
            (report,) = glob.glob("../out/*.jsonl")
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
    assert _outcomes(place.report({"test_it.py": suite})) == {"test_it.py::test_tree": "passed"}
