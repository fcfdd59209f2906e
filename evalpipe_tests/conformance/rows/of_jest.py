"""The hard cases for Jest 30. By hand the same was seen with 29, but for `test.failing`, which looks like any pass, and
the canary with ts-jest.
"""

from __future__ import annotations

import json

from evalpipe.runners import RunStatus
from evalpipe.runners.jest import JestRunner
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed
from evalpipe_tests.conformance.rows.javascript import ENVIRONMENT, PACKAGE, TESTS, shown_by

# Settings that would stop the run, or fail it for other reasons than a test.
SETTINGS = {
    "bail": 1,
    "collectCoverage": True,
    "coverageThreshold": {"global": {"lines": 100}},
    "projects": [
        {"displayName": "plain", "testPathIgnorePatterns": ["/both/"]},
        {"displayName": "other", "testMatch": ["**/both/*.js"]},
    ],
}
MORE = """
    test.failing("xfail", () => { throw new Error("expected"); });
    test.failing("xpass", () => {});
    test.todo("to do");
    test.each([["a", 1], ["b", 2]])("each %s %i", () => {});
    test("new snapshot", () => { expect({ a: 1 }).toMatchSnapshot(); });
"""

ROW = Row(
    runner=JestRunner(),
    environment=ENVIRONMENT,
    files={
        "package.json": json.dumps({**PACKAGE, "jest": SETTINGS}),
        "src/a.test.js": TESTS + MORE,
        "src/__tests__/two words.js": "test('a', () => {});\n",
        "src/broken.test.js": "require('./nowhere');\ntest('a', () => {});\n",
        "src/syntax.spec.js": "test('a', () => {;\n",
        "src/empty.test.js": "",
        "src/after.test.js": "afterAll(() => { throw new Error('after all'); });\ntest('a', () => {});\n",
        "src/only.test.js": "test.only('a', () => {});\ntest('b', () => {});\n",
        "src/retry.test.js": "jest.retryTimes(2);\nlet n = 0;\ntest('a', () => { if (!n++) throw Error(); });\n",
        "src/exits.test.js": "test('a', () => {});\ntest('b', () => { process.exit(0); });\n",
        "src/killed.test.js": "test('a', () => {});\ntest('b', () => { process.kill(process.pid, 9); });\n",
        "both/a_test.js": "test('a', () => {});\n",
    },
    together={
        **shown_by("src/a.test.js::|plain|", of_hooks="failed"),
        HardCase.XFAIL: Shown({"src/a.test.js::|plain|::xfail": "xfailed"}),
        HardCase.XPASS: Shown({"src/a.test.js::|plain|::xpass": "failed"}),
        HardCase.BROKEN_PART: Shown(
            passed("both/a_test.js::|other|::a"),
            uncollected=frozenset(f"src/{name}" for name in ("broken.test.js", "syntax.spec.js", "empty.test.js")),
        ),
        # The other tests of the file are gone with its process; all other files are there.
        HardCase.EXIT_0: Shown(uncollected=frozenset({"src/exits.test.js"})),
        HardCase.KILLED: Shown(uncollected=frozenset({"src/killed.test.js"})),
    },
    besides=Shown(
        passed("src/__tests__/two words.js::|plain|::a", "src/only.test.js::|plain|::a")
        | passed("src/a.test.js::|plain|::each a 1", "src/a.test.js::|plain|::each b 2")
        | {
            "src/a.test.js::|plain|::new snapshot": "failed",
            "src/a.test.js::|plain|::to do": "skipped",
            "src/only.test.js::|plain|::b": "skipped",
            "src/after.test.js::|plain|::a": "error",
            "src/retry.test.js::|plain|::a": "failed",
        },
    ),
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {"package.json": "{}", "a.test.js": "require('./nowhere');\n"},
            frozenset({RunStatus.COMPLETED}),
            Shown(uncollected=frozenset({"a.test.js"})),
        ),
        HardCase.NO_TESTS: Alone({"package.json": "{}", "a.js": ""}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={HardCase.SUB_TEST: "a test of Jest has no sub-tests"},
    chosen=(
        (b"src/__tests__/two words.js", b"both/a_test.js", b"gone.test.js"),
        frozenset({"src/__tests__/two words.js::|plain|::a", "both/a_test.js::|other|::a"}),
    ),
)
