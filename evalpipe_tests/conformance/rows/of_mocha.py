"""The hard cases for Mocha 11. By hand the same was seen with 10."""

from __future__ import annotations

import json

from evalpipe.runners import RunStatus
from evalpipe.runners.mocha import MochaRunner
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed
from evalpipe_tests.conformance.rows.javascript import ENVIRONMENT, PACKAGE, TESTS, shown_by

NAMES = "const test = it, beforeAll = before, afterAll = after;\n"
MORE = """
    test("to do");
    test("skips late", function () { this.skip(); });
    test("calls back twice", (done) => { done(); done(new Error("again")); });
    let n = 0;
    test("flaky", function () { this.retries(2); if (!n++) throw new Error("first"); });
    describe("bad before each", () => {
      beforeEach(() => { throw new Error("each"); });
      test("a", () => {});
      test("b", () => {});
    });
    describe("bad after all", () => {
      afterAll(() => { throw new Error("after all"); });
      test("a", () => {});
      describe("deep", () => { test("b", () => {}); });
    });
    test("takes the report", () => {
      const { exports } = Object.values(require.cache).find((one) => one.filename.endsWith("evalpipe_report.cjs"));
      exports.Report.prototype.test = () => {};
      throw new Error("and goes on");
    });
    test("takes the file system", () => { require("fs").writeSync = require("fs").openSync = null; });
"""
# Settings that would stop the run, fail it for other reasons than a test, or hide tests from the reporter.
SETTINGS = {"spec": ["test/**/*.{js,mjs}"], "bail": True, "parallel": True, "forbidPending": True, "reporter": "dot"}

ROW = Row(
    runner=MochaRunner(),
    environment=ENVIRONMENT,
    files={
        "package.json": json.dumps(PACKAGE),
        ".mocharc.json": json.dumps(SETTINGS),
        "test/a.js": NAMES + TESTS.replace("\n    ", "\n") + MORE.replace("\n    ", "\n"),
        "test/two words.mjs": "import assert from 'node:assert';\nit('a', () => { assert(true); });\n",
        "test/broken.js": "describe('early', () => { it('a', () => {}); require('./nowhere'); });\n",
        "test/broken.mjs": "import './nowhere.mjs';\nit('a', () => {});\n",
        "test/later.js": "it('stands at the top', () => {});\n",
        "test/syntax.js": "it('a', () => {;\n",
        "test/nothing.js": "",
    },
    together={
        **shown_by("test/a.js", of_hooks="error"),
        HardCase.BROKEN_PART: Shown(
            passed("test/later.js::stands at the top", "test/two words.mjs::a"),
            uncollected=frozenset({"test/broken.js", "test/broken.mjs", "test/syntax.js"}),
        ),
    },
    besides=Shown(
        passed("test/a.js::takes the file system")
        | {
            "test/a.js::takes the report": "failed",
            "test/a.js::to do": "skipped",
            "test/a.js::skips late": "skipped",
            "test/a.js::calls back twice": "failed",
            "test/a.js::flaky": "failed",
            "test/a.js::bad before each::a": "error",
            "test/a.js::bad before each::b": "error",
            "test/a.js::bad after all::a": "error",
            "test/a.js::bad after all::deep::b": "error",
        },
    ),
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {"test/a.js": "require('./nowhere');\n"},
            frozenset({RunStatus.COMPLETED}),
            Shown(uncollected=frozenset({"test/a.js"})),
        ),
        HardCase.EXIT_0: Alone(
            {"test/a.js": "it('a', () => {});\nit('b', () => { process.exit(0); });\n"},
            frozenset({RunStatus.NO_REPORT}),
        ),
        HardCase.KILLED: Alone(
            {"test/a.js": "it('a', () => {});\nit('b', () => { process.kill(process.pid, 9); });\n"},
            frozenset({RunStatus.NO_REPORT}),
        ),
        HardCase.NO_TESTS: Alone({"README": "no tests\n"}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={
        HardCase.SUB_TEST: "a test of Mocha has no sub-tests",
        HardCase.XFAIL: "Mocha knows no tests that are expected to fail",
        HardCase.XPASS: "Mocha knows no tests that are expected to fail",
    },
    chosen=(
        (b"test/later.js", b"test/two words.mjs", b"test/gone.js"),
        frozenset({"test/later.js::stands at the top", "test/two words.mjs::a"}),
    ),
)
