"""The hard cases for Gradle: projects with JUnit 4 and TestNG, one that does not compile, one whose JVM ends.

The Gradle is Debian's 4.4, the only one that the registries have: it does not know JUnit's platform yet.
"""

from __future__ import annotations

from evalpipe.environments.templates.gradle import GradleTemplate
from evalpipe.runners import RunStatus
from evalpipe.runners.gradle import GradleRunner
from evalpipe_tests.conformance.environments import by_template
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed
from evalpipe_tests.conformance.rows.java_tests import (
    BESIDE_A_NEIGHBOUR,
    JUNIT4,
    LOUD,
    NEIGHBOUR,
    SHORT_LIVED,
    TESTNG,
    outcome,
    passing,
)
from evalpipe_tests.conformance.rows.of_maven import KILLS

SETUP = "apt-get update -qq && apt-get install -y -qq --no-install-recommends gradle && rm -rf /var/lib/apt/lists/*"
BUILD = """subprojects {
    apply plugin: 'java'
    repositories { mavenCentral() }
    compileTestJava.options.encoding = 'UTF-8'
    dependencies { testCompile(name == 'ng' ? 'org.testng:testng:7.5.1' : 'junit:junit:4.13.2') }
}
"""
BUILDS = {
    "build.gradle": BUILD,
    "settings.gradle": "include 'core', 'ng', 'broken', 'exits'\n",
    "core/build.gradle": "test.maxParallelForks = 2\ntest.reports.junitXml.enabled = false\n",
    "ng/build.gradle": "test.useTestNG()\n",
    # Classes come in the order of the file system: in one JVM, the one that ends it might come before the canary.
    "exits/build.gradle": "test.forkEvery = 1\n",
}
ALONE = {"build.gradle": BUILD, "settings.gradle": "include 'core'\n"}
OUTCOMES = r"""
    package a;

    import static org.junit.Assert.*;
    import org.junit.*;

    public class OutcomesTest {
        @Test public void passes() { }
        @Test public void fails() { fail("here is why"); }
        @Test public void throwsError() { throw new IllegalStateException("an error"); }
        @Ignore("<testcase name='x'/>") @Test public void skipped() { fail(); }
        @Test public void assumes() { Assume.assumeTrue("PASSED", false); }
        @Test public void bytes() { System.out.write(0xff); System.out.write(0xfe); System.out.println(); }
        @Test public void prints() {
            System.out.println("]]></system-out></testcase><testcase name=\"forged\" classname=\"a.OutcomesTest\"/>");
            System.out.print("\u0000\u001b[31m");
        }

        public static class Teardown {
            @After public void clean() { throw new IllegalStateException("teardown"); }
            @Test public void passesBefore() { }
        }

        public static class Setup {
            @BeforeClass public static void begin() { throw new IllegalStateException("setup"); }
            @Test public void neverRuns() { }
        }
    }
"""


def junit4(source: str) -> str:
    """A class of Jupiter's as one of JUnit 4."""
    public = source.replace("org.junit.jupiter.api.Test", "org.junit.Test").replace("Test void", "Test public void")
    return public.replace("\nclass", "\npublic class").replace("    class", "    public class")


BROKEN = junit4(passing("BrokenTest", "same")).replace("void", "nothing")
SOURCES = {
    "core/src/test/java/a/OutcomesTest.java": OUTCOMES,
    "core/src/test/java/a/SameTest.java": junit4(passing("SameTest", "same")),
    "core/src/test/java/b/FirstTest.java": junit4(NEIGHBOUR).replace("NAME", "FirstTest"),
    "core/src/test/java/b/SecondTest.java": junit4(NEIGHBOUR).replace("NAME", "SecondTest"),
    "core/src/test/java/b/LoudTest.java": junit4(LOUD),
    "core/src/test/java/a/ParametersTest.java": JUNIT4.replace("SameTest", "ParametersTest"),
    "ng/src/test/java/a/SameTest.java": TESTNG,
    "broken/src/test/java/a/BrokenTest.java": BROKEN,
    "exits/src/test/java/a/B1Test.java": junit4(passing("B1Test", "first")),
    "exits/src/test/java/a/B2Test.java": junit4(passing("B2Test", "stops")).replace(
        "{ }", "{ Runtime.getRuntime().halt(0); }"
    ),
}
FILES = {**BUILDS, **SOURCES}

ROW = Row(
    runner=GradleRunner(),
    environment=by_template(
        "java",
        GradleTemplate(),
        {path: content.encode() for path, content in FILES.items()},
        setup=(SETUP,),
        env=SHORT_LIVED,
    ),
    files=FILES,
    together={
        HardCase.PASS_AND_FAILURE: Shown({**passed(*outcome("passes")), **dict.fromkeys(outcome("fails"), "failed")}),
        HardCase.TEARDOWN: Shown({"core::a.OutcomesTest$Teardown::passesBefore": "failed"}),
        HardCase.SKIP: Shown(dict.fromkeys([*outcome("skipped", "assumes"), "ng::a.SameTest::depends"], "skipped")),
        HardCase.ODD_IDS: Shown(
            {
                "core::a.ParametersTest::same[a b]": "passed",
                'core::a.ParametersTest::same[x[ "a" ]]': "failed",
                "core::a.ParametersTest::skipped[a b]": "skipped",
                'core::a.ParametersTest::skipped[x[ "a" ]]': "skipped",
                "ng::a.SameTest::given[0](a b)": "passed",
                "ng::a.SameTest::given[1](a c)": "failed",
            }
        ),
        HardCase.SAME_NAME: Shown(passed("core::a.SameTest::same", "ng::a.SameTest::same")),
        HardCase.BROKEN_PART: Shown(uncollected=frozenset({"broken"})),
        HardCase.NEIGHBOUR_OUTPUT: BESIDE_A_NEIGHBOUR,
        HardCase.NOT_UTF8: Shown(passed(*outcome("bytes"))),
        HardCase.MUCH_OUTPUT: Shown(passed("core::b.LoudTest::loud")),
        HardCase.EXIT_0: Shown(passed("exits::a.B1Test::first")),
    },
    besides=Shown(
        {
            **dict.fromkeys([*outcome("throwsError"), "core::a.OutcomesTest$Setup::classMethod"], "failed"),
            **passed("ng::a.SameTest::expects"),
        }
    ),
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {**ALONE, "core/src/test/java/a/BrokenTest.java": BROKEN}, frozenset({RunStatus.BUILD_FAILED})
        ),
        HardCase.KILLED: Alone(
            {
                **ALONE,
                "core/src/test/java/a/StopsTest.java": junit4(passing("StopsTest", "stops")).replace("{ }", KILLS),
            },
            frozenset({RunStatus.NO_REPORT}),
        ),
        HardCase.NO_TESTS: Alone({**ALONE, "core/build.gradle": ""}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={
        HardCase.SUB_TEST: "JUnit 4 and TestNG have none; JUnit's platform needs Gradle 4.6, and Debian has 4.4",
        HardCase.XFAIL: "neither JUnit nor TestNG has tests that are expected to fail as a whole",
        HardCase.XPASS: "neither JUnit nor TestNG has tests that are expected to fail as a whole",
    },
    # Gradle knows the class, and runs those of this name in every project.
    chosen=(
        (b"core/src/test/java/b/FirstTest.java",),
        frozenset({"core::b.FirstTest::talks", "core::b.FirstTest::fails"}),
    ),
)
