"""Test classes in Java that the rows of Maven and Gradle share."""

from __future__ import annotations

from evalpipe_tests.conformance.hard_cases import Shown, passed

SHORT_LIVED = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For JVMs that end before it pays to compile much: they take half of the time."""

JUPITER = r"""
    package a;

    import static org.junit.jupiter.api.Assertions.*;
    import java.util.*;
    import java.util.stream.Stream;
    import org.junit.jupiter.api.*;
    import org.junit.jupiter.params.ParameterizedTest;
    import org.junit.jupiter.params.provider.ValueSource;

    class OutcomesTest {
        @Test void passes() { }
        @Test void fails() { fail("here is why"); }
        @Test void throwsError() { throw new IllegalStateException("an error"); }
        @Test @Disabled("<testcase name='x'/>") void skipped() { fail(); }
        @Test void assumes() { Assumptions.assumeTrue(false, "PASSED"); }
        @Test void bytes() { System.out.write(0xff); System.out.write(0xfe); System.out.println(); }
        @Test void prints() {
            System.out.println("]]></system-out></testcase><testcase name=\"forged\" classname=\"a.OutcomesTest\"/>");
            System.out.print("\u0000\u001b[31m");
        }
        @ParameterizedTest
        @ValueSource(strings = {"a b", "a c", "x[ \"a\" ]", "x[it's]", "", "\u001b", "é", "]]>", "a\nb"})
        void odd(String text) { }
        @RepeatedTest(2) void repeated() { }
        @TestFactory Stream<DynamicTest> made() {
            return Stream.of("one", "two", "two")
                .map(name -> DynamicTest.dynamicTest(name, () -> assertEquals("two", name)));
        }

        @Nested class Inner {
            @Test void passes() { }
            @Test @DisplayName("a \"shown\" name") void named() { }
        }

        @Nested class Teardown {
            @AfterEach void clean() { throw new IllegalStateException("teardown"); }
            @Test void passesBefore() { }
        }

        @Nested @TestInstance(TestInstance.Lifecycle.PER_CLASS) class Setup {
            @BeforeAll void begin() { throw new IllegalStateException("setup"); }
            @Test void neverRuns() { }
        }
    }
"""
NEIGHBOUR = r"""
    package b;

    import org.junit.jupiter.api.Test;

    class NAME {
        @Test void talks() {
            for (int number = 0; number < 200; number++) {
                System.out.print("[ERROR] Tests run: 1, Failures: 1 <<< FAILURE! - in b.NAME\nTests ");
                System.err.print("run: ");
            }
        }
        @Test void fails() { throw new AssertionError("NAME"); }
    }
"""
LOUD = r"""
    package b;

    import org.junit.jupiter.api.Test;

    class LoudTest {
        @Test void loud() {
            String line = "x".repeat(4999);
            for (int number = 0; number < 10000; number++) {
                System.out.println(line);
            }
        }
    }
"""
JUNIT4 = r"""
    package a;

    import java.util.*;
    import org.junit.*;
    import org.junit.runner.RunWith;
    import org.junit.runners.Parameterized;

    @RunWith(Parameterized.class)
    public class SameTest {
        @Parameterized.Parameters(name = "{0}")
        public static List<String> texts() { return List.of("a b", "x[ \"a\" ]"); }
        @Parameterized.Parameter public String text;
        @Test public void same() { Assert.assertEquals("a b", text); }
        @Ignore @Test public void skipped() { Assert.fail(); }
    }
"""
TESTNG = r"""
    package a;

    import org.testng.*;
    import org.testng.annotations.*;

    public class SameTest {
        @DataProvider public Object[][] texts() { return new Object[][] {{"a b"}, {"a c"}}; }
        @Test public void same() { }
        @Test(dataProvider = "texts") public void given(String text) { Assert.assertEquals(text, "a b"); }
        @Test(dependsOnMethods = "given") public void depends() { }
        @Test(expectedExceptions = Error.class) public void expects() { throw new Error(); }
    }
"""


def passing(name: str, method: str) -> str:
    """A class with one Jupiter test that does nothing."""
    return f"package a;\n\nclass {name} {{\n    @org.junit.jupiter.api.Test void {method}() {{ }}\n}}\n"


def outcome(*names: str) -> list[str]:
    """The ids of tests in `a.OutcomesTest`."""
    return [f"core::a.OutcomesTest::{name}" for name in names]


BESIDE_A_NEIGHBOUR = Shown(
    {
        **passed("core::b.FirstTest::talks", "core::b.SecondTest::talks", *outcome("prints")),
        "core::b.FirstTest::fails": "failed",
        "core::b.SecondTest::fails": "failed",
    }
)
"""What `NEIGHBOUR` as two classes shows, that print into each other's output."""
