"""The hard cases for Vitest 3. By hand the same was seen with 2."""

from __future__ import annotations

import json

from evalpipe.runners import RunStatus
from evalpipe.runners.vitest import VitestRunner
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed
from evalpipe_tests.conformance.rows.javascript import ENVIRONMENT, PACKAGE, TESTS, shown_by

IMPORTS = 'import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";\n'
MORE = """
    test.fails("xfail", () => { throw new Error("expected"); });
    test.fails("xpass", () => {});
    test.todo("to do");
    test("skips late", ({ skip }) => { skip(); });
    test.each([["a", 1], ["b", 2]])("each %s %i", () => {});
    test("new snapshot", () => { expect({ a: 1 }).toMatchSnapshot(); });
    let n = 0;
    test("flaky", { retry: 2 }, () => { if (!n++) throw new Error("first"); });
    test("exits", () => { process.exit(0); });
    describe("bad after all", () => { afterAll(() => { throw new Error("after all"); }); test("a", () => {}); });
"""
# Settings that would stop the run, or fail it for other reasons than a test.
SETTINGS = "{ bail: 1, coverage: { enabled: true, thresholds: { lines: 100 } }, watch: true }"

ROW = Row(
    runner=VitestRunner(),
    environment=ENVIRONMENT,
    files={
        "package.json": json.dumps({**PACKAGE, "type": "module"}),
        "vitest.config.js": f"export default {{ test: {SETTINGS} }};\n",
        "src/a.test.js": IMPORTS + TESTS.replace("\n    ", "\n") + MORE.replace("\n    ", "\n"),
        "src/two words.spec.ts": IMPORTS + "const a: number = 1;\ntest('a', () => { expect(a).toBe(1); });\n",
        "src/broken.test.js": IMPORTS + "import './nowhere';\ntest('a', () => {});\n",
        "src/syntax.test.js": "test('a', () => {;\n",
        "src/empty.test.js": "",
        "src/only.test.js": IMPORTS + "test.only('a', () => {});\ntest('b', () => {});\n",
        "src/lost.test.js": IMPORTS + "test('a', async () => { Promise.reject(new Error('lost')); });\n",
    },
    together={
        **shown_by("src/a.test.js", of_hooks="failed"),
        HardCase.TEARDOWN: Shown(
            {
                "src/a.test.js::outer::bad after each::a": "failed",
                "src/a.test.js::outer::bad before all::a": "error",
                "src/a.test.js::bad after all::a": "error",
            }
        ),
        HardCase.XFAIL: Shown({"src/a.test.js::xfail": "xfailed"}),
        HardCase.XPASS: Shown({"src/a.test.js::xpass": "failed"}),
        HardCase.BROKEN_PART: Shown(
            passed("src/two words.spec.ts::a"),
            uncollected=frozenset({"src/broken.test.js", "src/syntax.test.js", "src/empty.test.js"}),
        ),
        # Vitest puts something else in the place of process.exit.
        HardCase.EXIT_0: Shown({"src/a.test.js::exits": "failed"}),
    },
    besides=Shown(
        passed("src/only.test.js::a", "src/a.test.js::each a 1", "src/a.test.js::each b 2")
        | {
            "src/a.test.js::new snapshot": "failed",
            "src/a.test.js::to do": "skipped",
            "src/a.test.js::skips late": "skipped",
            "src/a.test.js::flaky": "failed",
            "src/only.test.js::b": "skipped",
            "src/lost.test.js::a": "error",
        },
    ),
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {"package.json": "{}", "a.test.js": "import './nowhere';\n"},
            frozenset({RunStatus.COMPLETED}),
            Shown(uncollected=frozenset({"a.test.js"})),
        ),
        HardCase.KILLED: Alone(
            {"package.json": "{}", "a.test.js": IMPORTS + "test('b', () => { process.kill(process.pid, 9); });\n"},
            frozenset({RunStatus.NO_REPORT}),
        ),
        HardCase.NO_TESTS: Alone({"package.json": "{}", "a.js": ""}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={HardCase.SUB_TEST: "a test of Vitest has no sub-tests"},
    chosen=((b"src/two words.spec.ts", b"gone.test.js"), frozenset({"src/two words.spec.ts::a"})),
)
