"""Commands that leave report files: what is read of them, and what a run must be that leaves none, or not its own."""

from __future__ import annotations

import pytest

from evalpipe.runners import RunStatus, SuiteReport
from evalpipe.runners.generic import CanaryFile, GenericRunner, ReportFormat
from evalpipe.runners.suite import run_suite
from evalpipe_tests.conformance.suites import LIMITS, Files, Place, as_entries, outcomes

# How a command does its work is the same in every sandbox; the hard cases show it in containers.
pytestmark = pytest.mark.parametrize("place", ["process"], indirect=True)

CANARY = CanaryFile("canary.txt", "it fails", "canary.txt::tests::canary")
XML = (
    '<testsuites><testsuite name="outer" file="{file}"><testcase classname="tests" name="{name}">{inside}</testcase>'
    "</testsuite></testsuites>"
)
JSON = (
    '{{"results": {{"tests": [{{"name": "{name}", "status": "{status}", "suite": ["tests"], "filePath": "{file}"}}]}}}}'
)


def xml(name: str, *, fails: bool = False, file: str = "a b.c") -> str:
    return XML.format(file=file, name=name, inside='<failure message="here is why"/>' if fails else "")


def json(name: str, *, fails: bool = False, file: str = "a b.c") -> str:
    return JSON.format(file=file, name=name, status="failed" if fails else "passed")


def tap(name: str, *, fails: bool = False) -> str:
    return f"1..1\n{'not ' if fails else ''}ok 1 - {name}\n"


def run(
    place: Place,
    command: str,
    files: Files,
    report_format: ReportFormat = ReportFormat.JUNIT,
    reports: tuple[str, ...] = ("out/**/*.xml",),
    canary: CanaryFile = CANARY,
) -> SuiteReport:
    runner = GenericRunner(command, report_format, canary, reports)
    with place.sandbox.open(place.environment, LIMITS, {"purpose": "test"}) as box:
        return run_suite(box, runner, as_entries(files)).report


BOTH = "mkdir -p out/deep && cp canary.report out/one.xml && cp a.report out/deep/two.xml && touch out/deep/x.txt"


def test_the_files_of_a_command_make_one_report(place: Place) -> None:
    canary = xml("canary", fails=True, file="canary.txt")
    # The tree has a report of its own, which is not of this run.
    files = {"canary.report": canary, "a.report": xml("one"), "out/old.xml": xml("old")}
    report = run(place, BOTH, files)
    assert (report.status, report.canary_failed) == (RunStatus.COMPLETED, True)
    assert outcomes(report) == {"a b.c::tests::one": "passed"}


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_exit_status_decides_nothing(place: Place, status: int) -> None:
    files = {"canary.report": xml("canary", fails=True, file="canary.txt"), "a.report": xml("one", fails=True)}
    report = run(place, f"{BOTH}; exit {status}", files)
    assert outcomes(report) == {"a b.c::tests::one": "failed"}
    assert report.tests["a b.c::tests::one"].message == "here is why"


def test_paths_of_the_box_are_not_in_ids(place: Place) -> None:
    files = {"canary.report": xml("canary", fails=True, file="@/canary.txt"), "a.report": xml("one", file="@/src/a.c")}
    report = run(place, f'sed -i "s,@,$PWD," *.report; {BOTH}', files)
    assert outcomes(report) == {"src/a.c::tests::one": "passed"}


def test_ctrf_is_read(place: Place) -> None:
    files = {"canary.report": json("canary", fails=True, file="canary.txt"), "a.report": json("one")}
    report = run(place, BOTH, files, ReportFormat.CTRF)
    assert (report.status, report.canary_failed) == (RunStatus.COMPLETED, True)
    assert outcomes(report) == {"a b.c::tests::one": "passed"}


def test_the_tests_of_tap_files_are_named_by_their_file(place: Place) -> None:
    files = {"canary.report": tap("canary", fails=True), "a.report": tap("one")}
    canary = CanaryFile("canary.txt", "it fails", "out/one.xml::canary")
    report = run(place, BOTH, files, ReportFormat.TAP, canary=canary)
    assert (report.status, report.canary_failed) == (RunStatus.COMPLETED, True)
    assert outcomes(report) == {"out/deep/two.xml::one": "passed"}


def test_a_canary_that_passes_is_told(place: Place) -> None:
    files = {"canary.report": xml("canary", file="canary.txt"), "a.report": xml("one")}
    report = run(place, BOTH, files)
    assert (report.status, report.canary_failed) == (RunStatus.COMPLETED, False)


def test_the_canary_is_laid_into_the_tree(place: Place) -> None:
    files = {"canary.report": xml("canary", fails=True, file="canary.txt"), "a.report": xml("one")}
    report = run(place, f'[ "$(cat canary.txt)" = "it fails" ] && {BOTH}', files)
    assert report.status is RunStatus.COMPLETED


def test_a_report_without_the_canary_names_ids_that_it_has(place: Place) -> None:
    report = run(place, BOTH, {"canary.report": xml("other"), "a.report": xml("one")})
    assert report.status is RunStatus.NO_REPORT
    assert report.detail.startswith("the report has no test 'canary.txt::tests::canary', which must fail; it has ")
    assert "'a b.c::tests::one'" in report.detail


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        ("exit 0", "no file matches out/**/*.xml"),
        ("no-such-command", "no file matches"),
        (f"{BOTH}; kill -9 $$", "the command was ended: exit status 137"),
        ("kill -9 $PPID", "left no report"),
    ],
)
def test_a_run_that_leaves_no_report_is_none(place: Place, command: str, detail: str) -> None:
    files = {"canary.report": xml("canary", fails=True, file="canary.txt"), "a.report": xml("one")}
    report = run(place, command, {**files, "out/old.xml": xml("old")})
    assert report.status is RunStatus.NO_REPORT
    assert detail in report.detail
    assert not report.tests


@pytest.mark.parametrize(
    ("report_format", "content"), [("junit", "<testsuite>"), ("ctrf", "{"), ("tap", "1..1\nok\nok\n")]
)
def test_a_file_that_cannot_be_read_damages_the_report_by_name(place: Place, report_format: str, content: str) -> None:
    report = run(place, "mkdir out && cp x out/x.xml", {"x": content}, ReportFormat(report_format))
    assert report.status is RunStatus.DAMAGED_REPORT
    assert report.detail.startswith("./out/x.xml: ")
