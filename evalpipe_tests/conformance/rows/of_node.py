"""The hard cases for the runner of node itself, of version 20."""

from __future__ import annotations

from evalpipe.runners import RunStatus
from evalpipe.runners.node import NodeRunner
from evalpipe_tests.conformance.environments import TestEnvironment
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed
from evalpipe_tests.conformance.rows.javascript import TESTS, shown_by

NAMES = 'const { after, afterEach, before: beforeAll, describe, test } = require("node:test");\n'
MORE = """
    test("sub-tests", async (t) => {
      for (const n of [1, 2]) await t.test(`number ${n}`, () => { if (n === 2) throw new Error("two"); });
    });
    test("not awaited", (t) => { t.test("late", () => new Promise((resolve) => setTimeout(resolve, 50))); });
    test("xfail", { todo: true }, () => { throw new Error("expected"); });
    test("xpass", { todo: "why" }, () => {});
    test("skips late", (t) => { t.skip("why"); });
    describe("bad after all", () => { after(() => { throw new Error("after all"); }); test("a", () => {}); });
    describe("skipped", { skip: true }, () => { test("a", () => {}); });
    describe("throws", () => { throw new Error("in the group"); });
"""
A = 'const { after, test } = require("node:test");\ntest("a", () => {});\n'

ROW = Row(
    runner=NodeRunner(),
    environment=TestEnvironment("node"),
    files={
        "package.json": "{}",
        "test/a.js": NAMES + TESTS.replace("\n    ", "\n") + MORE.replace("\n    ", "\n"),
        "two words.test.mjs": 'import { test } from "node:test";\ntest("a", () => {});\n',
        "test/broken.js": A + "require('./nowhere');\n",
        "test/syntax.js": "test('a', () => {;\n",
        "test/after.js": A + "after(() => { throw new Error('after all'); });\n",
        "test/helper.js": "exports.help = 1;\n",
        "test/exits.js": A + "test('b', () => { process.exit(0); });\n",
        "test/killed.js": A + "test('b', () => { process.kill(process.pid, 9); });\n",
    },
    together={
        **shown_by("test/a.js", of_hooks="failed", no_title="<anonymous>"),
        HardCase.SUB_TEST: Shown(
            passed("test/a.js::sub-tests::number 1")
            | {
                "test/a.js::sub-tests::number 2": "failed",
                "test/a.js::sub-tests": "failed",
                "test/a.js::not awaited": "failed",
                "test/a.js::not awaited::late": "failed",
            }
        ),
        HardCase.XFAIL: Shown({"test/a.js::xfail": "xfailed"}),
        HardCase.XPASS: Shown({"test/a.js::xpass": "xpassed"}),
        HardCase.BROKEN_PART: Shown(uncollected=frozenset({"test/broken.js", "test/syntax.js"})),
        # Node knows of no test in a process that has ended.
        HardCase.EXIT_0: Shown(),
        HardCase.KILLED: Shown(uncollected=frozenset({"test/killed.js"})),
    },
    besides=Shown(
        passed("two words.test.mjs::a")
        | {
            "test/a.js::skips late": "skipped",
            "test/a.js::bad after all::a": "error",
            "test/after.js::a": "error",
        },
        # A group that throws.
        uncollected=frozenset({"test/a.js"}),
    ),
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {"test/a.js": "require('./nowhere');\n"},
            frozenset({RunStatus.COMPLETED}),
            Shown(uncollected=frozenset({"test/a.js"})),
        ),
        HardCase.NO_TESTS: Alone({"README": "no tests\n"}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={},
    chosen=(
        (b"two words.test.mjs", b"test/after.js", b"gone.test.js"),
        frozenset({"two words.test.mjs::a", "test/after.js::a"}),
    ),
)
