"""The hard cases for Maven: modules with Jupiter, JUnit 4 and TestNG, one that does not compile, one whose JVM ends."""

from __future__ import annotations

from evalpipe.environments.templates.maven import MavenTemplate
from evalpipe.runners import RunStatus
from evalpipe.runners.maven import MavenRunner
from evalpipe_tests.conformance.environments import by_template
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed
from evalpipe_tests.conformance.rows.java_tests import (
    BESIDE_A_NEIGHBOUR,
    JUNIT4,
    JUPITER,
    LOUD,
    NEIGHBOUR,
    SHORT_LIVED,
    TESTNG,
    outcome,
    passing,
)

HEAD = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
"""
PARENT = (
    HEAD
    + """<groupId>example</groupId><artifactId>parent</artifactId><version>1</version><packaging>pom</packaging>
<modules>{modules}</modules>
<properties><forks>1</forks>
<maven.compiler.release>17</maven.compiler.release><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
</properties>
<build><plugins>
<plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version></plugin>
<plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.1</version></plugin>
<plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version>
<configuration><forkCount>${{forks}}</forkCount></configuration></plugin>
</plugins></build>
</project>
"""
)
MODULE = (
    HEAD
    + """<parent><groupId>example</groupId><artifactId>parent</artifactId><version>1</version></parent>
<artifactId>{name}</artifactId>{more}
<dependencies>
<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version><scope>test</scope></dependency>
</dependencies>
</project>
"""
)


def module(name: str, library: str = "org.junit.jupiter:junit-jupiter:5.10.2", more: str = "") -> str:
    group, artifact, version = library.split(":")
    return MODULE.format(name=name, group=group, artifact=artifact, version=version, more=more)


def parent(*modules: str) -> str:
    return PARENT.format(modules="".join(f"<module>{name}</module>" for name in modules))


POMS = {
    "pom.xml": parent("core", "legacy", "ng", "broken", "exits"),
    "core/pom.xml": module("core", more="<properties><forks>2</forks></properties>"),
    "legacy/pom.xml": module("legacy", "junit:junit:4.13.2"),
    "ng/pom.xml": module("ng", "org.testng:testng:7.9.0"),
    "broken/pom.xml": module("broken"),
    "exits/pom.xml": module("exits"),
}
SOURCES = {
    "core/src/test/java/a/OutcomesTest.java": JUPITER,
    "core/src/test/java/a/SameTest.java": passing("SameTest", "same"),
    "core/src/test/java/b/FirstTest.java": NEIGHBOUR.replace("NAME", "FirstTest"),
    "core/src/test/java/b/SecondTest.java": NEIGHBOUR.replace("NAME", "SecondTest"),
    "core/src/test/java/b/LoudTest.java": LOUD,
    "legacy/src/test/java/a/SameTest.java": JUNIT4,
    "ng/src/test/java/a/SameTest.java": TESTNG,
    "broken/src/test/java/a/BrokenTest.java": passing("BrokenTest", "same").replace("void", "nothing"),
    "exits/src/test/java/a/B1Test.java": passing("B1Test", "first"),
    "exits/src/test/java/a/B2Test.java": passing("B2Test", "stops").replace("{ }", "{ Runtime.getRuntime().halt(0); }"),
}
KILLS = """{
    ProcessHandle process = ProcessHandle.current();
    while (process.parent().isPresent()) {
        process = process.parent().get();
        if (process.info().command().orElse("").endsWith("java")) { process.destroyForcibly(); break; }
    }
    try { Thread.sleep(20000); } catch (InterruptedException stop) { }
}"""


ROW = Row(
    runner=MavenRunner(),
    environment=by_template(
        "java",
        MavenTemplate(),
        {path: content.encode() for path, content in {**POMS, **SOURCES}.items()},
        env=SHORT_LIVED,
    ),
    files={**POMS, **SOURCES},
    together={
        HardCase.PASS_AND_FAILURE: Shown({**passed(*outcome("passes")), **dict.fromkeys(outcome("fails"), "failed")}),
        HardCase.SUB_TEST: Shown(
            {"core::a.OutcomesTest::made": "failed", **passed("core::a.OutcomesTest$Inner::passes")},
            duplicates=frozenset({"core::a.OutcomesTest::made"}),
        ),
        HardCase.TEARDOWN: Shown({"core::a.OutcomesTest$Teardown::passesBefore": "error"}),
        HardCase.SKIP: Shown(dict.fromkeys([*outcome("skipped", "assumes"), "ng::a.SameTest::depends"], "skipped")),
        HardCase.ODD_IDS: Shown(
            {
                **passed(*outcome(*(f"odd(String)[{number}]" for number in range(1, 10)))),
                "legacy::a.SameTest::same[a b]": "passed",
                'legacy::a.SameTest::same[x[ "a" ]]': "failed",
                "legacy::a.SameTest::skipped[a b]": "skipped",
                'legacy::a.SameTest::skipped[x[ "a" ]]': "skipped",
                "ng::a.SameTest::given[a b](1)": "passed",
                "ng::a.SameTest::given[a c](2)": "failed",
            }
        ),
        HardCase.SAME_NAME: Shown(
            passed("core::a.SameTest::same", "ng::a.SameTest::same", *outcome("repeated")),
            duplicates=frozenset(outcome("repeated")),
        ),
        HardCase.BROKEN_PART: Shown(uncollected=frozenset({"broken"})),
        HardCase.NEIGHBOUR_OUTPUT: BESIDE_A_NEIGHBOUR,
        HardCase.NOT_UTF8: Shown(passed(*outcome("bytes"))),
        HardCase.MUCH_OUTPUT: Shown(passed("core::b.LoudTest::loud")),
        HardCase.EXIT_0: Shown(passed("exits::a.B1Test::first")),
    },
    besides=Shown(
        {
            **dict.fromkeys(outcome("throwsError"), "error"),
            **passed("core::a.OutcomesTest$Inner::named", "ng::a.SameTest::expects"),
        },
        uncollected=frozenset({"core::a.OutcomesTest$Setup"}),
    ),
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {
                "pom.xml": parent("core"),
                "core/pom.xml": module("core"),
                "core/src/test/java/a/BrokenTest.java": passing("BrokenTest", "same").replace("void", "nothing"),
            },
            frozenset({RunStatus.BUILD_FAILED}),
        ),
        HardCase.KILLED: Alone(
            {
                "pom.xml": parent("core"),
                "core/pom.xml": module("core"),
                "core/src/test/java/a/StopsTest.java": passing("StopsTest", "stops").replace("{ }", KILLS),
            },
            frozenset({RunStatus.NO_REPORT}),
        ),
        HardCase.NO_TESTS: Alone(
            {"pom.xml": parent("core"), "core/pom.xml": module("core")}, frozenset({RunStatus.COMPLETED})
        ),
    },
    lacks={
        HardCase.XFAIL: "neither JUnit nor TestNG has tests that are expected to fail as a whole",
        HardCase.XPASS: "neither JUnit nor TestNG has tests that are expected to fail as a whole",
    },
    chosen=((b"core/src/test/java/a/SameTest.java",), frozenset({"core::a.SameTest::same"})),
)
