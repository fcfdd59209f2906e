"""What a pytest run must say of every test, whatever the settings of the repository: by processes and in Docker.

The base image has pytest 7, the virtual environment pytest 9; where their outcomes differ, the test says so. By hand
the same was seen with 6.2, 7.4 and 8.4, and with `-n 2` and pytest-xdist. Hostile suites are in
`test_pytest_runner_under_attack`.
"""

from __future__ import annotations

import pytest

from evalpipe_tests.conformance.suites import TWO, Files, Place, outcomes

# Each takes a fraction of a second, and all of them together too long for `make check`.
pytestmark = pytest.mark.slow

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
    found = {test_id.removeprefix("test_outcomes.py::"): outcome for test_id, outcome in outcomes(report).items()}
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
    found = outcomes(place.report({"test_sub.py": suite}))
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
    found = outcomes(place.report({"tests/test_a blank.py": IDS}))
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
    found = outcomes(
        place.report({b"test_\xff.py": "def test_a(): pass\n", "grün/test_é.py".encode(): "def test_b(): pass\n"})
    )
    assert found == {r"test_\xff.py::test_a": "passed", "grün/test_é.py::test_b": "passed"}


def test_files_of_one_name_are_told_apart(place: Place) -> None:
    files = {"one/test_it.py": "def test_a(): pass\n", "two/test_it.py": "def test_a(): assert 0\n"}
    report = place.report(files)
    # pytest imports both as `test_it`, and refuses the second.
    assert outcomes(report) == {"one/test_it.py::test_a": "passed"}
    assert set(report.uncollected) == {"two/test_it.py"}
    packages = {"one/__init__.py": "", "two/__init__.py": ""}
    assert outcomes(place.report({**files, **packages})) == {
        "one/test_it.py::test_a": "passed",
        "two/test_it.py::test_a": "failed",
    }


def test_a_test_that_is_collected_twice_is_a_duplicate(place: Place) -> None:
    settings = "[pytest]\naddopts = --keep-duplicates test_it.py test_it.py\n"
    report = place.report({"pytest.ini": settings, "test_it.py": "def test_a(): pass\n", "test_other.py": TWO})
    assert report.duplicates == {"test_it.py::test_a"}
    assert outcomes(report) == {"test_it.py::test_a": "passed"}


def test_modules_that_do_not_import_are_named_and_hide_no_other_test(place: Place) -> None:
    report = place.report(
        {
            "test_a.py": "import nowhere\ndef test_a(): pass\n",
            "tests/test_b.py": "def test_b(:\n",
            "tests/test_c.py": "def test_c(): pass\n",
        }
    )
    assert outcomes(report) == {"tests/test_c.py::test_c": "passed"}
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
    assert outcomes(report) == {test: outcome for test, outcome in ALL.items() if test[-1] not in left_out}
    assert set(report.uncollected) == {"test_broken.py"}


def test_the_arguments_of_a_runner_select(place: Place) -> None:
    settings = "[pytest]\nmarkers = slow: takes long\n"
    report = place.report({"pytest.ini": settings, "test_it.py": TWO}, arguments=("-m", "slow"))
    assert outcomes(report) == {"test_it.py::test_c": "passed"}


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
    assert outcomes(place.report(files)) == {"test_it.py::test_a": "passed"}


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
    assert outcomes(place.report({"conftest.py": conftest, "test_it.py": "def test_a(): pass\n"}))
