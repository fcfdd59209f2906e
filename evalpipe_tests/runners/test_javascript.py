"""How the runners of JavaScript plan a run: where the canary lies, what it says, and what reaches the tool."""

from __future__ import annotations

import json
import re

import pytest

from evalpipe.runners import Runner, SuiteRequest, TestPlan
from evalpipe.runners.javascript import let_canary_through
from evalpipe.runners.javascript_canary import choose_canaries
from evalpipe.runners.jest import JestRunner
from evalpipe.runners.mocha import MochaRunner
from evalpipe.runners.node import NodeRunner
from evalpipe.runners.vitest import VitestRunner

RUNNERS: list[Runner] = [JestRunner(), VitestRunner(), MochaRunner(), NodeRunner()]
NAMES = [runner.name for runner in RUNNERS]


def canary_paths(*paths: str, chosen: tuple[bytes, ...] | None = None, arguments: tuple[str, ...] = ()) -> list[str]:
    tree = {path.encode(): b"" for path in paths}
    return [canary.path.decode() for canary in choose_canaries(tree, "CANARY", chosen, arguments, [])]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a.test.ts", "src/CANARY.test.ts"),
        ("src/a.b.unit.spec.tsx", "src/CANARY.spec.tsx"),
        ("src/__tests__/a.jsx", "src/__tests__/CANARY.jsx"),
        ("test/deep/a.mjs", "test/deep/CANARY.mjs"),
        ("lib/a_test.js", "lib/CANARY_test.js"),
        ("lib/a-spec.cts", "lib/CANARY-spec.cts"),
        ("lib/ParserTest.js", "lib/CANARYTest.js"),
        ("lib/test-a.js", "lib/test-CANARY.js"),
        ("lib/test.js", "lib/CANARY.test.js"),
        ("a.test.js", "CANARY.test.js"),
        ("two words/a.test.js", "two words/CANARY.test.js"),
    ],
)
def test_the_canary_is_named_as_the_test_beside_it(path: str, expected: str) -> None:
    assert canary_paths(path, "src/latest.js", "src/contest.ts", "README.md", "types/a.test.d.ts") == [expected]


@pytest.mark.parametrize("paths", [(), ("README.md", "src/index.js", "src/latest.js")])
def test_without_a_test_the_canary_lies_where_most_tools_look(paths: tuple[str, ...]) -> None:
    assert canary_paths(*paths) == ["test/CANARY.test.js"]


def test_the_canaries_lie_beside_the_most_common_kinds_and_not_beside_what_tests_read() -> None:
    files = (
        [f"packages/a/src/{n}.test.ts" for n in range(3)] + [f"web/{n}.spec.js" for n in range(2)] + ["old/a_test.js"]
    )
    aside = [f"fixtures/{n}.cy.test.js" for n in range(9)] + [f"e2e/{n}.test.ts" for n in range(9)]
    assert canary_paths(*files, *aside) == ["packages/a/src/CANARY.test.ts", "web/CANARY.spec.js"]
    assert canary_paths("e2e/a.test.ts") == ["e2e/CANARY.test.ts"]


def test_chosen_files_and_folders_of_the_arguments_draw_the_canary() -> None:
    files = ("a/1.test.js", "a/2.test.js", "b/1.spec.js", "b/2.js")
    assert canary_paths(*files, chosen=(b"b/1.spec.js", b"gone.test.js")) == ["b/CANARY.spec.js"]
    assert canary_paths(*files, arguments=("--flag", "./b/")) == ["b/CANARY.spec.js"]
    assert canary_paths(*files, arguments=("b/1.spec.js",)) == ["b/CANARY.spec.js"]
    assert canary_paths(*files, arguments=("nowhere",)) == ["a/CANARY.test.js", "b/CANARY.spec.js"]


@pytest.mark.parametrize(
    ("path", "text", "package", "has_imports"),
    [
        ("a.test.js", "import x from 'y';\n", "{}", True),
        ("a.test.js", "const x = require('y');\n", '{"type": "module"}', False),
        ("a.test.js", "", '{"type": "module"}', True),
        ("a.test.js", "// no import here\n", '{"type": "commonjs"}', False),
        ("a.test.mjs", "", "{}", True),
        ("a.test.cjs", "", '{"type": "module"}', False),
        ("a.test.ts", "import { x } from './y';\n", "{}", True),
    ],
)
def test_the_canary_is_a_module_of_the_kind_beside_it(path: str, text: str, package: str, has_imports: bool) -> None:
    tree = {f"pkg/deep/{path}".encode(): text.encode(), b"pkg/package.json": package.encode(), b"package.json": b"{}"}
    plan = NodeRunner().plan("/box", tree)
    (content,) = canary_files(plan)
    taken = b'import { test } from "node:test";' in content
    assert taken == has_imports
    assert taken != (b'const { test } = require("node:test");' in content)
    assert (b"export {};" in content) == (path.endswith(".ts") and has_imports)


def canary_files(plan: TestPlan) -> list[bytes]:
    return [content for path, content in plan.files.items() if path.startswith(b"repo/")]


@pytest.mark.parametrize(
    ("runner", "text", "line"),
    [
        (JestRunner(), "test('a', () => {})", None),
        (JestRunner(), "import { test } from '@jest/globals'", 'import { test } from "@jest/globals";'),
        (JestRunner(), "const { it } = require('@jest/globals')", 'const { test } = require("@jest/globals");'),
        (VitestRunner(), "require('x')", 'import { test } from "vitest";'),
        (MochaRunner(), "it('a', () => {})", None),
        (MochaRunner(), "const { it } = require('mocha')", 'const { describe, it } = require("mocha");'),
    ],
)
def test_the_canary_takes_its_functions_from_where_the_test_beside_it_does(
    runner: Runner, text: str, line: str | None
) -> None:
    (content,) = canary_files(runner.plan("/box", {b"a.test.js": text.encode()}))
    found = [one for one in content.decode().splitlines() if "require(" in one or one.startswith("import")]
    assert found == ([line] if line else [])


@pytest.mark.parametrize("runner", RUNNERS, ids=NAMES)
def test_a_plan_keeps_its_secrets_out_of_the_command_and_the_environment(runner: Runner) -> None:
    one, other = (runner.plan("/box", {b"test/a.test.js": b""}) for _ in range(2))
    assert one.canary != other.canary
    assert one.report_path != other.report_path
    assert one.key != other.key
    for secret in (one.key, one.report_path):
        assert secret not in " ".join([*one.command, *one.env, *one.env.values()])
    settings = json.loads(one.files[b"runner/settings.json"])
    assert (settings["key"], settings["report"], settings["canary"]) == (one.key, f"/box/{one.report_path}", one.canary)
    assert all(re.match(rb"(runner|repo)/", path) for path in one.files)


@pytest.mark.parametrize("runner", RUNNERS, ids=NAMES)
def test_chosen_files_reach_the_tool_as_far_as_they_are_there(runner: Runner) -> None:
    tree = {b"test/a b.test.js": b"", b"test/other.test.js": b""}
    plan = runner.plan("/box", tree, SuiteRequest(test_files=(b"test/a b.test.js", b"gone.test.js")))
    told = "\n".join(plan.command) + plan.files[b"runner/settings.json"].decode()
    assert "test/a b.test.js" in told
    assert "gone.test.js" not in told
    assert "other.test.js" not in told


def test_a_seed_of_any_size_is_one_that_jest_takes() -> None:
    for seed in (0, 7, 2**31, 2**63, -5):
        command = JestRunner().plan("/box", {}, SuiteRequest(shuffle_seed=seed)).command
        (option,) = [argument for argument in command if argument.startswith("--seed=")]
        assert -(2**31) <= int(option.removeprefix("--seed=")) < 2**31


@pytest.mark.parametrize("argument", ["-i", "--runInBand", "-w", "--maxWorkers=50%", "--maxWorkers"])
def test_workers_that_a_team_limits_are_not_limited_again(argument: str) -> None:
    limits = [
        "--maxWorkers" in JestRunner(arguments=arguments).plan("/box", {}).command
        for arguments in ((), (argument, "1"))
    ]
    assert limits == [True, argument == "--maxWorkers"]


@pytest.mark.parametrize(("script", "expected"), [("jest", {}), ("node --experimental-vm-modules x/jest.js", None)])
def test_the_flag_that_a_script_gives_node_for_modules_is_given(script: str, expected: dict[str, str] | None) -> None:
    package = json.dumps({"scripts": {"test": script}}).encode()
    env = JestRunner().plan("/box", {b"pkg/package.json": package}).env
    assert env.get("NODE_OPTIONS") == (None if expected == {} else "--experimental-vm-modules")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-t", "fast", "-x"], ["-t", "(?:fast)|CANARY", "-x"]),
        (["--testNamePattern=a|b"], ["--testNamePattern=(?:a|b)|CANARY"]),
        (["-tx", "--other=-t", "t"], ["-tx", "--other=-t", "t"]),
        ([], []),
    ],
)
def test_a_pattern_of_names_lets_the_canary_through(arguments: list[str], expected: list[str]) -> None:
    assert let_canary_through(arguments, ("-t", "--testNamePattern"), "CANARY") == expected
