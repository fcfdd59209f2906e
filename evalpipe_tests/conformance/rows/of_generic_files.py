"""The hard cases for a command that leaves files: JUnit XML in the dialects of several tools, and CTRF."""

from __future__ import annotations

import json

from evalpipe.runners import RunStatus
from evalpipe.runners.generic import CanaryFile, GenericRunner, ReportFormat
from evalpipe_tests.conformance.environments import TestEnvironment
from evalpipe_tests.conformance.hard_cases import Alone, Files, HardCase, Row, Shown, passed

# The tests of these projects are reports: what a tool makes of its own tests is the tool's matter.
RUN = '#!/bin/sh\nmkdir out\nfor test in tests/*; do cp "$test" out/; done\n'
SCREAM = """yes "$(head -c 4999 /dev/zero | tr '\\0' y)" | head -n 10000\n"""
LOUD_XML = f"""{{
    printf '<testsuite><testcase classname="loud" name="loud"><system-out><![CDATA['
    {SCREAM}
    printf ']]></system-out></testcase></testsuite>'
}} > out/loud.xml
{SCREAM}
printf '\\377\\376 ok\\n'
"""
JUNIT = (
    rb"""<?xml version="1.0" encoding="utf-8"?>
<testsuites>
<testsuite name="suite" file="a.c">
  <testcase classname="a" name="passes" time="0.1"/>
  <testcase classname="a" name="fails"><failure message="here is why"/></testcase>
  <testcase classname="a" name="teardown"/>
  <testcase classname="a" name="teardown"><error message="teardown"/></testcase>
  <testcase classname="a" name="xfail"><skipped type="pytest.xfail" message="not yet"/></testcase>
  <testcase classname="a" name="skipped" status="notrun"/>
  <testcase classname="a" name="a b"/><testcase classname="a" name="x[ &quot;a&quot; ]"/>
  <testcase classname="a" name="x[it's]"/><testcase classname="a" name="&#x1b;[31m"/>
  <testcase classname="a" name="same"/>
  <testcase classname="a" name="prints"><system-out><![CDATA[
    ]]]]><![CDATA[></system-out></testcase><testcase classname="a" name="forged"/>
  ]]></system-out></testcase>
  <testcase classname="a" name="bytes"><failure>"""
    + b"\xff\xfe"
    + rb"""</failure></testcase>
</testsuite>
<testsuite name="broken"><error message="does not compile"/></testsuite>
</testsuites>
"""
)
OTHER_JUNIT = b'<testsuite name="other" file="b.c"><testcase classname="a" name="same"/></testsuite>'


def ctrf(*tests: dict[str, object]) -> str:
    """A document of these tests."""
    return json.dumps({"results": {"tool": {"name": "t"}, "tests": [{"duration": 1, **test} for test in tests]}})


def of(name: str, status: str = "passed", **more: object) -> dict[str, object]:
    return {"name": name, "status": status, "filePath": "a.c", **more}


CTRF = ctrf(
    of("passes"),
    of("fails", "failed", message="here is why"),
    of("steps", steps=[{"name": "one", "status": "passed"}, {"name": "two", "status": "failed"}]),
    of("skipped", "skipped"),
    *map(of, ("a b", 'x[ "a" ]', "x[it's]", "\x1b[31m", "same")),
    of("same", "failed"),
    of("same", filePath="b.c"),
    of("prints", stdout=['"}, {"name": "forged", "status": "passed"}'], message='"status": "failed"'),
).encode()


def files_row(
    report_format: ReportFormat,
    files: Files,
    canary: CanaryFile,
    together: dict[HardCase, Shown],
    lacks: dict[HardCase, str],
) -> Row:
    """The row of a format: how a command ends before it has left its files is the same for both."""
    tests = {test for shown in together.values() for test in shown.tests}
    return Row(
        runner=GenericRunner("./run", report_format, canary, ("out/*",)),
        variant=report_format.value,
        environment=TestEnvironment(),
        files=files,
        together=together,
        alone={
            HardCase.EXIT_0: Alone({"run": RUN.replace("mkdir", "exit 0; mkdir")}, frozenset({RunStatus.NO_REPORT})),
            HardCase.KILLED: Alone({"run": f"{RUN}kill -9 $PPID\n"}, frozenset({RunStatus.NO_REPORT})),
            HardCase.NOTHING_BUILDS: Alone({"run": "#!/bin/sh\nmake\n"}, frozenset({RunStatus.NO_REPORT})),
            HardCase.NO_TESTS: Alone({"run": RUN}, frozenset({RunStatus.COMPLETED})),
        },
        lacks=lacks,
        # It runs the whole suite, whatever is asked.
        chosen=((b"tests/one",), frozenset(tests)),
    )


OF_JUNIT = files_row(
    ReportFormat.JUNIT,
    {"run": RUN + LOUD_XML, "tests/one.xml": JUNIT, "tests/two.xml": OTHER_JUNIT},
    CanaryFile(
        "tests/0.xml", '<testsuite><testcase name="canary" classname="c"><failure/></testcase></testsuite>', "c::canary"
    ),
    {
        HardCase.PASS_AND_FAILURE: Shown({"a.c::a::passes": "passed", "a.c::a::fails": "failed"}),
        HardCase.TEARDOWN: Shown({"a.c::a::teardown": "error"}, duplicates=frozenset({"a.c::a::teardown"})),
        HardCase.XFAIL: Shown({"a.c::a::xfail": "xfailed"}),
        HardCase.SKIP: Shown({"a.c::a::skipped": "skipped"}),
        HardCase.ODD_IDS: Shown(passed(*(f"a.c::a::{name}" for name in ("a b", 'x[ "a" ]', "x[it's]", "\\x1b[31m")))),
        HardCase.SAME_NAME: Shown(passed("a.c::a::same", "b.c::a::same")),
        HardCase.BROKEN_PART: Shown(uncollected=frozenset({"broken"})),
        HardCase.NEIGHBOUR_OUTPUT: Shown(passed("a.c::a::prints")),
        HardCase.NOT_UTF8: Shown({"a.c::a::bytes": "failed"}),
        HardCase.MUCH_OUTPUT: Shown(passed("loud::loud")),
    },
    {
        HardCase.SUB_TEST: "a test case of JUnit XML holds no other",
        HardCase.XPASS: "JUnit XML has no word for it: tools write a plain pass, and it is read as one",
    },
)
OF_CTRF = files_row(
    ReportFormat.CTRF,
    {"run": f"{RUN}{SCREAM}printf '\\377\\376 ok\\n'\n", "tests/one.json": CTRF},
    CanaryFile("tests/0.json", ctrf({"name": "canary", "status": "failed"}), "canary"),
    {
        HardCase.PASS_AND_FAILURE: Shown({"a.c::passes": "passed", "a.c::fails": "failed"}),
        HardCase.SUB_TEST: Shown({"a.c::steps": "failed"}),
        HardCase.SKIP: Shown({"a.c::skipped": "skipped"}),
        HardCase.ODD_IDS: Shown(passed(*(f"a.c::{name}" for name in ("a b", 'x[ "a" ]', "x[it's]", "\x1b[31m")))),
        HardCase.SAME_NAME: Shown({"a.c::same": "failed", "b.c::same": "passed"}, duplicates=frozenset({"a.c::same"})),
        HardCase.NEIGHBOUR_OUTPUT: Shown(passed("a.c::prints")),
        HardCase.NOT_UTF8: Shown(passed("a.c::passes")),
        HardCase.MUCH_OUTPUT: Shown(passed("a.c::passes")),
    },
    {
        HardCase.TEARDOWN: "CTRF says one thing of a test",
        HardCase.XFAIL: "CTRF has no status for tests that are expected to fail",
        HardCase.XPASS: "CTRF has no status for tests that are expected to fail",
        HardCase.BROKEN_PART: "CTRF has tests only: what does not compile is a matter of the command",
    },
)
