"""The hard cases for go: a workspace without one of its modules, and packages that stop each their own way."""

from __future__ import annotations

from evalpipe.environments.templates.go import GoTemplate
from evalpipe.runners import RunStatus
from evalpipe.runners.go import GoRunner
from evalpipe_tests.conformance.environments import by_template
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed

MODULE = b"module example.com/m\n\ngo 1.21\n"
TESTS = r"""
    // Package good_test would be external.
    package good

    import (
        "fmt"
        "os"
        "strings"
        "testing"
    )

    func TestPasses(t *testing.T) {}
    func TestFails(t *testing.T)  { t.Fatal("here is why") }

    func TestOdd(t *testing.T) {
        for _, name := range []string{"a b", "a c", `x[ "a" ]`, "x[it's]", "[", "", "a/b", "é", "\x1b"} {
            t.Run(name, func(t *testing.T) {})
        }
    }

    func TestSub(t *testing.T) {
        for number := 0; number < 3; number++ {
            t.Run("same", func(t *testing.T) {
                if number == 1 {
                    t.Error("one")
                }
            })
        }
    }

    func TestTeardown(t *testing.T) { t.Cleanup(func() { t.Error("teardown") }) }
    func TestSkip(t *testing.T)     { t.Skip("--- PASS: TestSkip (0.00s)") }

    func TestPrints(t *testing.T) {
        fmt.Println("--- FAIL: TestPasses (0.00s)\n--- PASS: TestFails (0.00s)\n=== RUN   TestOther\nPASS")
        fmt.Println(`{"Action":"pass","Package":"example.com/m/good","Test":"TestFails"}`)
        fmt.Print("no line feed--- FAIL: TestPrints (0.00s)")
    }

    func TestNeighbours(t *testing.T) {
        for _, name := range []string{"one", "two"} {
            t.Run(name, func(t *testing.T) {
                t.Parallel()
                for number := 0; number < 100; number++ {
                    fmt.Print("--- FAIL: ")
                    t.Log("PASS")
                }
            })
        }
    }

    func TestBytes(t *testing.T) { os.Stdout.WriteString("\xff\xfe --- PASS\n") }

    func TestLoud(t *testing.T) {
        line := strings.Repeat("x", 4999) + "\n"
        for number := 0; number < 10000; number++ {
            os.Stdout.WriteString(line)
        }
    }

    func ExampleShown() {
        fmt.Println("x")
        // Output: y
    }

    func FuzzSeed(f *testing.F) {
        f.Add("a b")
        f.Fuzz(func(t *testing.T, text string) { t.Error(text) })
    }
"""
STOPS = """
    package {package}

    import (
        "os"
        "syscall"
        "testing"
    )

    func TestA(t *testing.T) {{}}
    func TestB(t *testing.T) {{ t.Run("inner", func(t *testing.T) {{ {stop} }}) }}
    func TestC(t *testing.T) {{ os.Getpid(); syscall.Getpid() }}
"""
PASSES = 'package {package}\n\nimport "testing"\n\nfunc TestSame(t *testing.T) {{}}\n'
FAILS = 'package {package}\n\nimport "testing"\n\nfunc TestSame(t *testing.T) {{ t.Fail() }}\n'


def of(package: str, *tests: str) -> list[str]:
    return [f"example.com/m/{package}::Test{test}" for test in tests]


ROW = Row(
    runner=GoRunner(),
    environment=by_template("go", GoTemplate(), {"go.mod": MODULE, "a_test.go": TESTS.replace("    ", "").encode()}),
    files={
        "go.mod": MODULE,
        "go.work": "go 1.21\n\nuse .\n",
        "good/good.go": "package good\n\nfunc Shown() {}\n",
        "good/good_test.go": TESTS,
        "one/it_test.go": PASSES.format(package="same_test"),
        "two words/go.mod": "module example.com/m/other\n\ngo 1.21\n",
        "two words/it_test.go": FAILS.format(package="same"),
        "bad/bad.go": "package bad\n\nfunc Bad() { return 1 }\n",
        "bad/bad_test.go": PASSES.format(package="bad"),
        "stops/exits/it_test.go": STOPS.format(package="exits", stop="syscall.Exit(0)"),
        "stops/killed/it_test.go": STOPS.format(package="killed", stop="syscall.Kill(os.Getpid(), 9)"),
        "stops/panics/it_test.go": STOPS.format(package="panics", stop='panic("boom")'),
        "stops/main/it_test.go": 'package main\n\nimport (\n\t"os"\n\t"testing"\n)\n\n'
        "func TestMain(m *testing.M) { m.Run(); os.Exit(0) }\nfunc TestA(t *testing.T) { t.Fail() }\n",
        "testdata/no_test.go": "this is no Go",
    },
    together={
        HardCase.PASS_AND_FAILURE: Shown(
            {**passed(*of("good", "Passes")), **dict.fromkeys(of("good", "Fails"), "failed")}
        ),
        HardCase.SUB_TEST: Shown(
            dict.fromkeys(of("good", "Sub", "Sub/same#01"), "failed") | passed(*of("good", "Sub/same", "Sub/same#02"))
        ),
        HardCase.TEARDOWN: Shown(dict.fromkeys(of("good", "Teardown"), "failed")),
        HardCase.SKIP: Shown(dict.fromkeys(of("good", "Skip"), "skipped")),
        HardCase.ODD_IDS: Shown(
            passed(
                *of("good", "Odd"),
                *(
                    f"example.com/m/good::TestOdd/{name}"
                    for name in ("a_b", "a_c", 'x[_"a"_]', "x[it's]", "[", "#00", "a/b", "é", r"\x1b")
                ),
            )
        ),
        HardCase.SAME_NAME: Shown({**passed("example.com/m/one::TestSame"), "example.com/m/other::TestSame": "failed"}),
        HardCase.BROKEN_PART: Shown(uncollected=frozenset({"example.com/m/bad"})),
        HardCase.NEIGHBOUR_OUTPUT: Shown(
            passed(*of("good", "Prints", "Neighbours", "Neighbours/one", "Neighbours/two"))
        ),
        HardCase.NOT_UTF8: Shown(passed(*of("good", "Bytes"))),
        HardCase.MUCH_OUTPUT: Shown(passed(*of("good", "Loud"))),
        HardCase.EXIT_0: Shown(
            passed(*of("stops/exits", "A")) | dict.fromkeys(of("stops/exits", "B", "B/inner"), "error")
        ),
    },
    besides=Shown(
        {
            "example.com/m/good::ExampleShown": "failed",
            "example.com/m/good::FuzzSeed": "failed",
            "example.com/m/good::FuzzSeed/seed#0": "failed",
            **passed(*of("stops/killed", "A")),
            **dict.fromkeys(of("stops/killed", "B", "B/inner"), "error"),
            **passed(*of("stops/panics", "A")),
            **dict.fromkeys(of("stops/panics", "B", "B/inner"), "failed"),
            "example.com/m/stops/main::TestA": "failed",
        }
    ),
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {"go.mod": MODULE, "a.go": "package a\nfunc A() { return 1 }\n", "a_test.go": PASSES.format(package="a")},
            frozenset({RunStatus.BUILD_FAILED}),
        ),
        HardCase.KILLED: Alone(
            {"go.mod": MODULE, "a_test.go": STOPS.format(package="a", stop="syscall.Kill(os.Getppid(), 9)")},
            frozenset({RunStatus.NO_REPORT}),
        ),
        HardCase.NO_TESTS: Alone({"go.mod": MODULE, "a.go": "package a\n"}, frozenset({RunStatus.COMPLETED})),
    },
    lacks={
        HardCase.XFAIL: "go test knows no tests that are expected to fail",
        HardCase.XPASS: "go test knows no tests that are expected to fail",
    },
    chosen=(
        (b"one/it_test.go", b"two words/it_test.go"),
        frozenset({"example.com/m/one::TestSame", "example.com/m/other::TestSame"}),
    ),
)
