"""cargo and nextest: what is asked of them, where canaries lie, and how what they leave is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import RunStatus, SuiteReport, SuiteRequest, TestPlan
from evalpipe.runners.cargo import CargoRunner
from evalpipe.runners.cargo_report import read_report
from evalpipe.runners.nextest import NextestRunner
from evalpipe_tests.runners.joined import TOKEN, joined

CANARY = "t_c0ffee"
TREE = {
    b"Cargo.toml": b'[package]\nname = "app"\nedition = "2021"\n[workspace]\nmembers = ["crates/*"]\n',
    b"src/lib.rs": b"/// ```\n/// ```\npub fn a() {}",
    b"src/main.rs": b"fn main() {}\n",
    b"tests/api.rs": b"#[test] fn a() {}\n",
    b"tests/common/mod.rs": b"",
    b"crates/one/Cargo.toml": b'[package]\nname="one"\nedition="2021"\n[[test]]\nname="own-main"\nharness=false\n',
    b"crates/one/src/lib.rs": b"",
    b"crates/one/tests/own-main.rs": b"fn main() {}\n",
    b"crates/one/tests/it.rs": b"",
}


def calls(plan: TestPlan, script: bytes = b"runner/cargo.sh") -> list[str]:
    lines = [line.strip().removeprefix("if ") for line in plan.files[script].decode().split("\n")]
    return [line.removesuffix("; then") for line in lines if line.startswith("call ")]


def test_the_first_file_of_each_target_has_a_canary_at_its_end() -> None:
    plan = CargoRunner().plan("/box", TREE)
    changed = {path.removeprefix(b"repo/"): data for path, data in plan.files.items() if path.startswith(b"repo/")}
    harnessed = {b"src/lib.rs", b"src/main.rs", b"tests/api.rs", b"crates/one/src/lib.rs", b"crates/one/tests/it.rs"}
    assert changed.keys() == harnessed
    for path, data in changed.items():
        assert data.startswith(TREE[path] + b"\n#[cfg(test)]")
        assert (b"#[cfg(doctest)]" in data) == (path == b"src/lib.rs")
    assert plan.files[b"runner/no-harness"] == b"one/own_main\n"


def test_all_is_one_call_and_each_target_one_where_something_does_not_build() -> None:
    assert calls(CargoRunner(arguments=("--all-features", "--", "--skip", "slow")).plan("/box", TREE)) == [
        "call build --no-run --message-format=json --no-fail-fast --workspace --all-features -- --skip slow",
        "call all --no-fail-fast --workspace --all-features -- --skip slow",
        *(
            f"call {label} --no-fail-fast --manifest-path ./{manifest} {option} --all-features -- --skip slow"
            for label, manifest, option in (
                ("app::lib", "Cargo.toml", "--lib"),
                ("app::bin/app", "Cargo.toml", "--bin app"),
                ("app::test/api", "Cargo.toml", "--test api"),
                ("app::doc", "Cargo.toml", "--doc"),
                ("one::lib", "crates/one/Cargo.toml", "--lib"),
                ("one::test/own-main", "crates/one/Cargo.toml", "--test own-main"),
                ("one::test/it", "crates/one/Cargo.toml", "--test it"),
                ("one::doc", "crates/one/Cargo.toml", "--doc"),
            )
        ),
    ]


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ((b"tests/api.rs", b"crates/one/tests/it.rs"), "-p app -p one --test api --test it"),
        ((b"tests/api.rs", b"crates/one/src/lib.rs"), "-p app -p one"),
        ((b"tests/common/mod.rs", b"tests/api.rs"), "-p app"),
    ],
)
def test_chosen_files_stand_for_targets_or_packages(files: tuple[bytes, ...], options: str) -> None:
    plan = CargoRunner().plan("/box", TREE, SuiteRequest(files))
    assert calls(plan)[1] == f"call all --no-fail-fast {options}"
    assert (
        calls(NextestRunner().plan("/box", TREE, SuiteRequest(files)), b"runner/nextest.sh")[0] == f"call all {options}"
    )


PROGRAM = "/work/repo/target/debug/deps/app-0a1b"


def artifact(kind: str = "lib", package_id: str = "path+file:///work/repo#app@0.1.0") -> str:
    message = {
        "reason": "compiler-artifact",
        "package_id": package_id,
        "target": {"kind": [kind], "name": "api"},
        "profile": {"test": True},
        "executable": PROGRAM,
    }
    return json.dumps(message)


def call(
    number: int, label: str, status: int = 0, messages: str = "", errors: str = ""
) -> list[tuple[str, str | bytes]]:
    texts = {"messages": messages, "label": label, "status": str(status), "errors": errors}
    return [(f"{number}/{name}", text) for name, text in texts.items()]


def program(
    number: int, names: list[str], log: str | None, output: str = "", **more: str
) -> list[tuple[str, str | bytes]]:
    listed = "".join(f"{name}: test\n" for name in [*names, CANARY])
    texts = {"program": PROGRAM, "package": "app", "list": listed, "output": output, "status": "101", **more}
    if log is not None:
        texts["log"] = log
    return [(f"{number}/run.x/{name}", text) for name, text in texts.items()]


def read(*files: tuple[str, str | bytes]) -> SuiteReport:
    return read_report(joined(*files), CANARY, TOKEN)


def words(report: SuiteReport) -> dict[str, str]:
    assert report.status is RunStatus.COMPLETED, report
    return {test_id: result.outcome.value for test_id, result in report.tests.items()}


BUILT = call(1, "build", messages=artifact())
LOG = f"ok a\nfailed {CANARY}\nfailed: panic did not contain expected string\n    of: `x`,\n b::c\nignored: ok a d\n"


def test_the_log_tells_outcomes_reasons_and_names() -> None:
    report = read(*BUILT, *call(2, "all", 101), *program(2, ["a", "b::c", "d", "e"], LOG, "aborted"))
    expected = {"a": "passed", "b::c": "failed", "d": "skipped", "e": "error"}
    assert words(report) == {f"app::lib::{name}": outcome for name, outcome in expected.items()}
    assert report.canary_failed
    assert report.tests["app::lib::e"].message.startswith("the program ended with exit status 101 before this test did")


@pytest.mark.parametrize(
    ("kind", "package_id", "prefix"),
    [
        ("proc-macro", "path+file:///work/repo/macros#app@0.1.0", "app::lib"),
        ("test", "path+file:///work/repo/app#0.1.0", "app::test/api"),
        ("bin", "app 0.1.0 (path+file:///work/repo)", "app::bin/api"),
    ],
)
def test_targets_by_the_ids_that_versions_of_cargo_give(kind: str, package_id: str, prefix: str) -> None:
    built = call(1, "build", messages=artifact(kind, package_id))
    assert words(read(*built, *call(2, "all"), *program(2, ["a"], LOG))) == {f"{prefix}::a": "passed"}


def test_without_a_log_file_the_printed_results_count() -> None:
    output = f"\xfftest a ... ok\ntest {CANARY} ... FAILED\ntest b - should panic ... FAILED\nxtest b ... ok\n"
    output += "test d ... ignored, why\n"
    report = read(*BUILT, *call(2, "all"), *program(2, ["a", "b", "d", "e"], None, output))
    expected = {"a": "passed", "b": "failed", "d": "skipped", "e": "error"}
    assert words(report) == {f"app::lib::{name}": outcome for name, outcome in expected.items()}


def test_a_name_that_is_logged_twice_with_two_outcomes_failed() -> None:
    report = read(*BUILT, *call(2, "all"), *program(2, ["a"], f"failed {CANARY}\nfailed a\nok a\n"))
    assert words(report) == {"app::lib::a": "failed"}


@pytest.mark.parametrize("canary", ["", f"ok {CANARY}\n", f"ignored {CANARY}\n"])
def test_passes_of_a_program_whose_canary_did_not_fail_are_left_out(canary: str) -> None:
    report = read(*BUILT, *call(2, "all"), *program(2, ["a", "b"], f"ok a\nfailed b\n{canary}"))
    assert words(report) == {"app::lib::b": "failed"}
    assert report.uncollected.keys() == {"app::lib"}
    assert not report.canary_failed


DOC = f"""
running 5 tests
test src/lib.rs - a (line 30) ... ok
test src/lib.rs - (line 2) ... ignored
test src/lib.rs - a (line 9) - compile fail ... ok
test src/lib.rs - A<B c>::d (line 4) - should panic ... FAILED
test src/lib.rs - {CANARY} (line 99) ... FAILED

failures:

---- src/lib.rs - A<B c>::d (line 4) stdout ----
running 1 test
test src/lib.rs - a (line 1) ... ok

failures:
    src/lib.rs - A<B c>::d (line 4)

test result: FAILED. 3 passed; 2 failed

running 1 test
test src/lib.rs - a (line 12) - compile ... ok

"""


def test_documentation_tests_are_numbered_by_their_item() -> None:
    texts: list[tuple[str, str | bytes]] = [
        ("2/doc.x/package", "app"),
        ("2/doc.x/output", DOC),
        ("2/doc.x/status", "101"),
    ]
    expected = {"a (1)": "passed", "a (2)": "passed", "a (3)": "passed", "(1)": "skipped", "A<B c>::d (1)": "failed"}
    report = read(*BUILT, *call(2, "all"), *texts)
    assert words(report) == {f"app::doc::src/lib.rs - {name}": outcome for name, outcome in expected.items()}
    assert report.canary_failed


def test_a_target_that_does_not_compile_is_told_and_a_package_outside_of_the_workspace_is_not() -> None:
    message = {
        "reason": "compiler-message",
        "package_id": "path+file:///work/repo#app@0.1.0",
        "target": {"kind": ["test"], "name": "broken"},
        "message": {"rendered": "error: no\n", "level": "error"},
    }
    calls_ = [
        *call(1, "build", 101, json.dumps(message) + '\n{"reason":"cut'),
        *(*call(2, "app::lib", 101), *program(2, ["a"], LOG)),
        *call(3, "app::test/broken", 101, errors="more"),
        *call(4, "app::bin/x", 101, errors="error: could not compile"),
        *call(5, "fixture::lib", 101, errors="error: current package believes it's in a workspace when it's not:"),
        *call(6, "app::test/y", 101, errors="error: target `y` in package `app` requires the features: `x`"),
    ]
    report = read(*calls_)
    assert words(report) == {"app::lib::a": "passed"}
    assert report.uncollected == {"app::test/broken": "error: no\n", "app::bin/x": "error: could not compile"}
    assert read(*calls_[:4], *call(3, "app::lib", 101, errors="no")).status is RunStatus.BUILD_FAILED


def test_tests_without_libtest_are_told() -> None:
    files = [
        (f"2/run.x/{name}", text) for name, text in (("program", PROGRAM), ("package", "app"), ("no-harness", "1"))
    ]
    report = read(*BUILT, *call(2, "all"), *files)
    assert report.uncollected.keys() == {"app::lib"}


@pytest.mark.parametrize(
    "report",
    [
        None,
        b"",
        joined(*BUILT, *call(2, "all", 137)),
        joined(*BUILT, *call(2, "all", 127, errors="cargo: not found")),
        joined(*BUILT, *call(2, "all"), end=False),
        joined(*BUILT, *call(2, "all"), *[one for one in program(2, ["a"], LOG) if "status" not in one[0]]),
    ],
)
def test_a_run_that_did_not_end_is_no_report(report: bytes | None) -> None:
    assert read_report(report, CANARY, TOKEN).status is RunStatus.NO_REPORT


@given(st.binary(), st.binary(), st.binary())
def test_no_content_makes_the_reader_raise(log: bytes, output: bytes, messages: bytes) -> None:
    files = [*program(2, ["a"], ""), ("2/doc.x/package", b"p"), ("2/doc.x/output", output)]
    changed = [(path, {"log": log, "output": output}.get(path.rpartition("/")[2], text)) for path, text in files]
    report = read(("1/messages", messages), *BUILT[1:], *call(2, "all"), *changed)
    assert report.status in set(RunStatus)


NEXTEST = f"""<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run">
    <testsuite name="app">
        <testcase name="tests::a" classname="app" time="0.039"/>
        <testcase name="{CANARY}" classname="app"><failure type="test failure with exit code 101">x</failure></testcase>
        <testcase name="again" classname="app"><flakyFailure type="x" message="once"/></testcase>
    </testsuite>
    <testsuite name="app::api">
        <testcase name="a" classname="app::api"><failure type="test abort">signal 6</failure></testcase>
        <testcase name="b" classname="app::api"/>
    </testsuite>
</testsuites>
"""


def nextest(number: int, label: str, status: int, output: str = "", junit: str = "") -> list[tuple[str, str | bytes]]:
    texts = {"label": label, "status": str(status), "output": output} | ({"junit.xml": junit} if junit else {})
    return [(f"{number}/{name}", text) for name, text in texts.items()]


def read_nextest(*files: tuple[str, str | bytes]) -> SuiteReport:
    plan = TestPlan((), {}, {}, "", canary=CANARY, key=TOKEN)
    return NextestRunner().read(plan, joined(*files), 0)


def test_nextest_writes_ids_as_it_shows_them() -> None:
    report = read_nextest(*nextest(1, "all", 100, junit=NEXTEST))
    assert words(report) == {"app tests::a": "passed", "app again": "failed", "app::api a": "failed"}
    assert report.uncollected.keys() == {"app::api"}
    assert report.canary_failed


@pytest.mark.parametrize(
    ("calls_", "status"),
    [
        (nextest(1, "all", 4), RunStatus.COMPLETED),
        (nextest(1, "all", 101, "error: no Cargo.toml"), RunStatus.BUILD_FAILED),
        ([*nextest(1, "all", 101), *nextest(2, "app::lib", 101, "error")], RunStatus.BUILD_FAILED),
        (nextest(1, "all", 101, "error: no such command: `nextest`"), RunStatus.NO_REPORT),
        (nextest(1, "all", 104, "error: creating test list failed"), RunStatus.NO_REPORT),
        (nextest(1, "all", 137), RunStatus.NO_REPORT),
        (nextest(1, "all", 100), RunStatus.NO_REPORT),
        (nextest(1, "all", 100, junit="<testsuites>"), RunStatus.DAMAGED_REPORT),
    ],
)
def test_how_nextest_ends(calls_: list[tuple[str, str | bytes]], status: RunStatus) -> None:
    report = read_nextest(*calls_)
    assert report.status is status
    assert not report.tests
