"""go: where canaries lie, what is asked of go, and how its streams are read, those of old versions too."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import RunStatus, SuiteReport, SuiteRequest, TestPlan
from evalpipe.runners.go import GoRunner
from evalpipe.runners.go_report import read_report
from evalpipe_tests.runners.joined import TOKEN, joined

CANARY = "TestC0FFEE"
TREE = {
    b"go.mod": b"module m\n",
    b"a/a.go": b"package a\n",
    b"a/a_test.go": b"package a_test\n",
    b"a/more_test.go": b"// +build x\n\n/* package no */ package a // yes\n",
    b"b/b.go": b"package b\n",
    b"b/b_test.go": b"package b_test\n",
    b"b/gen.go": b"//go:build ignore\n\npackage main\n",
    b"two words/go.mod": b"module other\n",
    b"two words/in/x_test.go": b"package x\n",
    b"vendor/v/v_test.go": b"package v\n",
    b"a/testdata/t_test.go": b"no Go",
    b"_hidden/h_test.go": b"package h\n",
    b"none/none.go": b"package none\n",
}


def canaries(plan: TestPlan) -> dict[str, str]:
    """The packages of the canaries by their folders."""
    found = {path.decode().rpartition("/"): content for path, content in plan.files.items() if path.endswith(b".go")}
    assert all(name.startswith("0") and name.endswith("_test.go") for _, _, name in found)
    assert all(plan.canary.encode() in content for content in found.values())
    return {folder: content.split(b"\n")[0].decode() for (folder, _, _), content in found.items()}


def calls(plan: TestPlan) -> list[str]:
    script = plan.files[b"runner/go.sh"].decode()
    return [line for line in script.split("\n") if line.startswith("run ")]


def test_every_package_with_tests_has_a_canary_of_its_own_package() -> None:
    plan = GoRunner().plan("/box", TREE)
    assert canaries(plan) == {
        "repo/a": "package a",
        "repo/b": "package b_test",
        "repo/two words/in": "package x",
    }
    assert calls(plan) == [
        "run . -json -count=1 -vet=off -timeout=0 ./...",
        "run 'two words' -json -count=1 -vet=off -timeout=0 ./...",
    ]


def test_chosen_files_stand_for_their_packages() -> None:
    request = SuiteRequest((b"a/testdata/t_test.go", b"two words/in/x_test.go", b"README"), shuffle_seed=3)
    plan = GoRunner(arguments=("-tags=x",)).plan("/box", TREE, request)
    assert canaries(plan).keys() == {"repo/a", "repo/two words/in"}
    assert calls(plan) == [
        "run . -json -count=1 -vet=off -timeout=0 -shuffle=3 -tags=x ./a",
        "run 'two words' -json -count=1 -vet=off -timeout=0 -shuffle=3 -tags=x ./in",
    ]


@pytest.mark.parametrize("request_", [SuiteRequest(), SuiteRequest((b"go.mod",))])
def test_without_tests_a_canary_stands_alone(request_: SuiteRequest) -> None:
    (found,) = canaries(GoRunner().plan("/box", {b"go.mod": b"module m\n"}, request_)).items()
    assert found[1] == "package canary"


def test_two_plans_share_nothing_that_a_test_could_know() -> None:
    one, other = GoRunner().plan("/box", TREE), GoRunner().plan("/box", TREE)
    assert {one.canary, one.key, one.report_path}.isdisjoint({other.canary, other.key, other.report_path})
    assert one.files.keys() != other.files.keys()


def event(action: str, test: str | None = None, package: str = "m/p", **more: object) -> str:
    named = {} if test is None else {"Test": test}
    return json.dumps({"Action": action, "Package": package, **named, **more})


def ran(test: str, word: str = "PASS", *, package: str = "m/p", line: str = "", end: bool = True) -> list[str]:
    events = [event("run", test, package)]
    text = line or f"--- {word}: {test} (0.01s)\n"
    events.append(event("output", test, package, Output=text))
    return [*events, event(word.lower(), test, package, Elapsed=0.01)] if end else events


PROOF = ran(CANARY, "FAIL")


def read(*lines: str, errors: str = "", status: int = 1) -> SuiteReport:
    files = [(".", "\n".join(lines)), ("errors", errors), ("status", str(status))]
    return read_report(joined(*files), CANARY, TOKEN)


def words(report: SuiteReport) -> dict[str, str]:
    assert report.status is RunStatus.COMPLETED, report
    return {test_id: result.outcome.value for test_id, result in report.tests.items()}


def test_outcomes() -> None:
    report = read(*PROOF, *ran("TestA"), *ran("TestB/a b", "FAIL"), *ran("TestS", "SKIP"))
    assert words(report) == {"m/p::TestA": "passed", "m/p::TestB/a b": "failed", "m/p::TestS": "skipped"}
    assert report.canary_failed
    assert report.duplicates == frozenset()


def test_a_test_without_its_end_is_an_error_and_one_that_never_began_is_missing() -> None:
    report = read(*PROOF, event("run", "TestA"), event("output", "TestA", Output="panic: boom\n"), event("fail"))
    assert words(report) == {"m/p::TestA": "error"}
    assert report.tests["m/p::TestA"].message == "panic: boom\n\nthe test did not end"


def test_the_pass_of_a_process_that_exits_is_no_pass_of_the_test_in_it() -> None:
    """As go 1.26 writes it for a sub-test that calls `syscall.Exit(0)`."""
    report = read(
        *PROOF,
        event("run", "TestB"),
        event("run", "TestB/s"),
        event("output", "TestB/s", Output="ok  \tm/p\t0.002s\n"),
        event("pass", "TestB/s", Elapsed=0.002),
    )
    assert words(report) == {"m/p::TestB": "error", "m/p::TestB/s": "error"}


def test_a_result_glued_to_output_is_found_in_the_streams_of_old_versions() -> None:
    """As go 1.19 writes it for a parallel sub-test that prints without a line feed."""
    report = read(
        *PROOF,
        event("run", "TestG"),
        event("run", "TestG/s"),
        event("output", "TestG/s", Output="x--- PASS: TestG (0.00s)\n"),
        event("output", "TestG/s", Output="    --- PASS: TestG/s (0.00s)\n"),
        event("fail"),
    )
    assert words(report) == {"m/p::TestG": "passed", "m/p::TestG/s": "passed"}


def test_what_old_versions_take_for_results_makes_no_pass() -> None:
    """As go 1.19 writes it for a test that prints `--- FAIL: TestB`, and another that prints `--- PASS: TestB`."""
    report = read(
        *PROOF,
        *ran("TestB", "FAIL"),
        event("output", "TestB", Output="no line feed--- PASS: TestB (0.00s)\n"),
        event("output", "TestB", Output="--- PASS: TestB (0.00s)\n"),
        event("pass", "TestB", Elapsed=0),
    )
    assert words(report) == {"m/p::TestB": "failed"}
    assert report.duplicates == {"m/p::TestB"}


def test_a_result_of_a_test_that_never_began_is_no_pass() -> None:
    assert words(read(*PROOF, *ran("TestA")[1:])) == {"m/p::TestA": "error"}


def test_a_test_that_ran_twice_is_a_duplicate() -> None:
    report = read(*PROOF, *ran("TestA"), *ran("TestA"))
    assert words(report) == {"m/p::TestA": "passed"}
    assert report.duplicates == {"m/p::TestA"}


def test_passes_of_a_package_without_its_canary_are_left_out_and_it_is_told() -> None:
    other = [*ran("TestA", package="m/q"), *ran("TestB", "FAIL", package="m/q")]
    report = read(*PROOF, *ran("TestA"), *other)
    assert words(report) == {"m/p::TestA": "passed", "m/q::TestB": "failed"}
    assert report.uncollected.keys() == {"m/q"}
    assert report.canary_failed


@pytest.mark.parametrize("word", ["PASS", "SKIP"])
def test_a_canary_that_does_not_fail_is_told(word: str) -> None:
    report = read(*PROOF, *ran(CANARY, word, package="m/q"), *ran("TestA", package="m/q"))
    assert report.status is RunStatus.COMPLETED
    assert not report.canary_failed
    assert not report.tests


def test_a_canary_that_did_not_end_is_no_proof() -> None:
    assert not read(*ran(CANARY, "FAIL", end=False, line="x")).canary_failed


NEW_BUILD = [
    json.dumps({"ImportPath": "m/q [m/q.test]", "Action": "build-output", "Output": "# m/q [m/q.test]\n"}),
    json.dumps({"ImportPath": "m/q [m/q.test]", "Action": "build-output", "Output": "q.go:2: too many values\n"}),
    json.dumps({"ImportPath": "m/q [m/q.test]", "Action": "build-fail"}),
    event("output", package="m/q", Output="FAIL\tm/q [build failed]\n"),
    event("fail", package="m/q", Elapsed=0, FailedBuild="m/q [m/q.test]"),
]
OLD_ERRORS = "# m/o\nother\n# m/q [m/q.test]\nq.go:2: too many values\n"


@pytest.mark.parametrize(
    ("lines", "errors"),
    [
        (NEW_BUILD, ""),
        (["FAIL\tm/q [build failed]"], OLD_ERRORS),
        (["FAIL\tm/q [setup failed]"], OLD_ERRORS.replace("[m/q.test]", "")),
    ],
    ids=["1.24", "before", "setup"],
)
def test_a_package_that_does_not_build_is_told(lines: list[str], errors: str) -> None:
    report = read(*PROOF, *lines, errors=errors)
    assert report.uncollected.keys() == {"m/q"}
    assert "q.go:2: too many values" in report.uncollected["m/q"]
    assert "other" not in report.uncollected["m/q"]
    assert read(*lines, errors=errors).status is RunStatus.BUILD_FAILED


def test_a_package_that_ends_before_its_tests_is_told() -> None:
    lines = [event("output", package="m/q", Output="panic: in init\n"), event("fail", package="m/q")]
    assert read(*PROOF, *lines).uncollected == {"m/q": "panic: in init\n"}


def test_a_module_that_go_refuses_is_told_by_its_folder() -> None:
    report = read(errors="go: errors parsing go.mod")
    assert report.status is RunStatus.BUILD_FAILED
    assert report.uncollected == {".": "go: errors parsing go.mod"}


@pytest.mark.parametrize(
    "report",
    [
        None,
        b"",
        joined((".", ""), ("errors", "")),
        joined((".", ""), ("errors", ""), ("status", "1"), end=False),
        joined((".", ""), ("errors", ""), ("status", "137")),
        joined((".", ""), ("errors", ""), ("status", "127")),
        joined((".", ""), ("errors", ""), ("status", "")),
    ],
)
def test_a_run_that_did_not_end_is_no_report(report: bytes | None) -> None:
    assert read_report(report, CANARY, TOKEN).status is RunStatus.NO_REPORT


@pytest.mark.parametrize(
    "line",
    [
        '{"Action":',
        "{}x",
        '{"Action":3}',
        '{"Action":"run","Package":7}',
        '{"Action":"run","Package":"p","Test":[]}',
        '{"Action":"pass","Package":"p","Test":"t","Elapsed":"1"}',
        '{"a":' * 100_000,
    ],
    ids=range(7),
)
def test_a_line_that_is_no_event_damages_the_report(line: str) -> None:
    found = read(*PROOF, line)
    assert found.status is RunStatus.DAMAGED_REPORT
    assert not found.tests


@given(st.binary() | st.lists(st.sampled_from([*PROOF, *ran("A"), *NEW_BUILD, "FAIL\tx [build failed]", "{}"])))
def test_no_content_makes_the_reader_raise(content: bytes | list[str]) -> None:
    stream = content if isinstance(content, bytes) else "\n".join(content)
    assert read_report(joined((".", stream), ("errors", b"\xff"), ("status", "1")), CANARY, TOKEN).status
    if isinstance(content, bytes):
        assert read_report(content, CANARY, TOKEN).status is RunStatus.NO_REPORT


def test_the_filter_keeps_results_and_both_ends_of_what_a_test_prints(tmp_path: Path) -> None:
    def timed(line: str) -> str:
        return '{"Time":"2026-01-01T00:00:00Z",' + line.removeprefix("{").replace('": ', '":').replace(', "', ',"')

    flood = [event("output", "TestA", Output=f"line {number}\n") for number in range(20_000)]
    inner = ran("TestA", "FAIL")
    started = event("output", "TestA", Output="=== RUN   TestA\n")
    lines = [event("start"), inner[0], started, *flood, *inner[1:], *ran("TestQ/\\"), *PROOF]
    program = tmp_path / "filter.awk"
    program.write_bytes(GoRunner().plan("/box", {}).files[b"runner/filter.awk"])
    result = subprocess.run(
        ["awk", "-f", program], input="\n".join(map(timed, lines)).encode(), capture_output=True, check=True
    )
    assert len(result.stdout) < 20_000
    assert b"=== RUN" not in result.stdout
    report = read(result.stdout.decode())
    assert words(report) == {"m/p::TestA": "failed", "m/p::TestQ/\\": "passed"}
    message = report.tests["m/p::TestA"].message
    assert message.startswith("line 0\n")
    assert "line 19999\n" in message
