"""The hard cases for a command that prints TAP; `of_generic_files` has those of commands that leave files."""

from __future__ import annotations

from evalpipe.runners import RunStatus
from evalpipe.runners.generic import CanaryFile, GenericRunner, ReportFormat
from evalpipe_tests.conformance.environments import TestEnvironment
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed

# Each prints a stream of its own.
RUN = '#!/bin/sh\nfor test in tests/*.sh; do /bin/sh "$test"; done\n'
TESTS = r"""
    cat <<'END'
    TAP version 14
    1..14
    ok 1 - passes
    not ok 2 - fails
      ---
      message: here is why
      ...
    # Subtest: group
        ok 1 - first
        not ok 2 - second
        1..2
    not ok 3 - group
    not ok 4 - xfail # TODO not yet
    ok 5 - xpass # TODO not yet
    ok 6 - skipped # SKIP PASSED
    ok 7 - a b
    ok 8 - a c
    ok 9 - x[ "a" ]
    ok 10 - x[it's]
    ok 11 - [ \# 5
    ok 12 - same
    not ok 13 - same
    END
    printf '\377\376 ok\n'
    yes "$(head -c 4999 /dev/zero | tr '\0' y)" | head -n 10000
    echo 'ok 14 - loud'
"""
ONE = "printf 'TAP version 14\\n1..2\\nok 1 - {0} one\\n'\n{1}\necho 'ok 2 - {0} two'\n"

ROW = Row(
    runner=GenericRunner(
        "./run",
        ReportFormat.TAP,
        CanaryFile("tests/0.sh", "printf 'TAP version 14\\n1..1\\nnot ok 1 - canary\\n'\n", "canary"),
    ),
    variant=ReportFormat.TAP.value,
    environment=TestEnvironment(),
    files={"run": RUN, "tests/a.sh": TESTS, "tests/b.sh": ONE.format("b", ":")},
    together={
        HardCase.PASS_AND_FAILURE: Shown({"passes": "passed", "fails": "failed"}),
        HardCase.SUB_TEST: Shown({"group::first": "passed", "group::second": "failed", "group": "failed"}),
        HardCase.XFAIL: Shown({"xfail": "xfailed"}),
        HardCase.XPASS: Shown({"xpass": "xpassed"}),
        HardCase.SKIP: Shown({"skipped": "skipped"}),
        HardCase.ODD_IDS: Shown(passed("a b", "a c", 'x[ "a" ]', "x[it's]", "[ # 5")),
        HardCase.SAME_NAME: Shown({"same": "failed"}, duplicates=frozenset({"same"})),
        HardCase.NOT_UTF8: Shown(passed("loud")),
        HardCase.MUCH_OUTPUT: Shown(passed("loud")),
    },
    besides=Shown(passed("b one", "b two")),
    alone={
        # The plan tells that a result is lost.
        HardCase.NEIGHBOUR_OUTPUT: Alone(
            {"run": RUN, "tests/a.sh": ONE.format("a", "printf 'no line feed'")}, frozenset({RunStatus.NO_REPORT})
        ),
        HardCase.EXIT_0: Alone({"run": RUN, "tests/a.sh": ONE.format("a", "exit 0")}, frozenset({RunStatus.NO_REPORT})),
        HardCase.KILLED: Alone(
            {"run": RUN, "tests/a.sh": ONE.format("a", "kill -9 $PPID")}, frozenset({RunStatus.NO_REPORT})
        ),
        HardCase.NOTHING_BUILDS: Alone({"run": "#!/bin/sh\nmake\n"}, frozenset({RunStatus.NO_REPORT})),
        HardCase.NO_TESTS: Alone({"run": RUN}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={
        HardCase.TEARDOWN: "a test point says one thing of a test",
        HardCase.BROKEN_PART: "what does not compile is a matter of the command",
    },
    # It runs the whole suite, whatever is asked.
    chosen=(
        (b"tests/b.sh",),
        frozenset(
            (
                *("passes", "fails", "group::first", "group::second", "group", "xfail", "xpass", "skipped", "loud"),
                *("a b", "a c", 'x[ "a" ]', "x[it's]", "[ # 5", "same", "b one", "b two"),
            )
        ),
    ),
)
