"""What the rows of the JavaScript tools share: one environment with all of them, and tests that all can have."""

from __future__ import annotations

import json

from evalpipe.environments.templates.node import NodeTemplate
from evalpipe_tests.conformance.environments import by_template
from evalpipe_tests.conformance.hard_cases import HardCase, Shown, passed

PACKAGE = {
    "name": "hard-cases",
    "version": "1.0.0",
    "private": True,
    "devDependencies": {
        "jest": "30.2.0",
        "mocha": "11.7.4",
        "vitest": "3.2.4",
    },
}
ENVIRONMENT = by_template("node", NodeTemplate(), {"package.json": json.dumps(PACKAGE).encode()})

# `test`, `describe`, `afterEach` and `beforeAll` come from a line before it, as each tool has them.
TESTS = r"""
    describe("outer", () => {
      test("passes", () => {});
      test("fails", () => { throw new Error("here is why"); });
      for (const text of ["a b", "a c", 'x[ "a" ]', "x[it's]", "[", "", " tail ", "a::b", "a > b", "é\n"]) {
        test(text, () => {});
      }
      test("same", () => {});
      test("same", () => { throw new Error("the second"); });
      test.skip("skipped", () => { throw new Error("PASSED"); });
      test("prints", () => {
        console.log("✓ fails\nok 1 - fails\nPASS a.test.js");
        process.stdout.write("no line feed not ok 2 - passes");
      });
      test("bytes", () => { process.stdout.write(Buffer.from([0xff, 0xfe, 0x0a])); });
      test("loud", () => { for (let n = 0; n < 10000; n++) process.stdout.write("x".repeat(4999) + "\n"); });
      test("asynchronous", async () => { await null; });
      test("asynchronous failure", async () => { await null; throw new Error("late"); });
      describe("bad after each", () => { afterEach(() => { throw new Error("after each"); }); test("a", () => {}); });
      describe("bad before all", () => { beforeAll(() => { throw new Error("before all"); }); test("a", () => {}); });
    });
    test("passes", () => {});
"""
ODD = ("a b", "a c", 'x[ "a" ]', "x[it's]", "[", "", " tail ", r"a\:\:b", "a > b", "é\n")


def shown_by(file: str, *, of_hooks: str, no_title: str = "") -> dict[HardCase, Shown]:
    """What TESTS in this file show.

    `of_hooks` is the outcome of tests around which a hook failed, `no_title` what stands for an empty title.
    """
    outer = f"{file}::outer::"
    return {
        HardCase.PASS_AND_FAILURE: Shown(
            passed(f"{file}::passes", f"{outer}passes", f"{outer}asynchronous")
            | {f"{outer}fails": "failed", f"{outer}asynchronous failure": "failed"}
        ),
        HardCase.TEARDOWN: Shown(
            {f"{outer}bad after each::a": of_hooks, f"{outer}bad before all::a": of_hooks},
        ),
        HardCase.SKIP: Shown({f"{outer}skipped": "skipped"}),
        HardCase.ODD_IDS: Shown(passed(*(outer + (title or no_title) for title in ODD))),
        HardCase.SAME_NAME: Shown({f"{outer}same": "failed"}, duplicates=frozenset({f"{outer}same"})),
        HardCase.NEIGHBOUR_OUTPUT: Shown(passed(f"{outer}prints")),
        HardCase.NOT_UTF8: Shown(passed(f"{outer}bytes")),
        HardCase.MUCH_OUTPUT: Shown(passed(f"{outer}loud")),
    }
