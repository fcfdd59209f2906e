"""Maven and Gradle: canaries for every framework, what is asked of the tools, and how their reports are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import RunStatus, SuiteReport, SuiteRequest, TestPlan
from evalpipe.runners.gradle import GradleRunner
from evalpipe.runners.java_canary import canaries_of, sources_of_tests
from evalpipe.runners.java_report import read_java_report
from evalpipe.runners.maven import MavenRunner
from evalpipe_tests.runners.joined import TOKEN, joined

CANARY = "Ac0ffee"


def canary(files: dict[str, str]) -> tuple[str, str, str]:
    """The path, text and name of the canary for one module of these test sources."""
    tree = {f"m/src/test/{path}".encode(): text.encode() for path, text in files.items()}
    sources = {b"m": sources_of_tests(tree, b"m", [b"m"])}
    (made,) = canaries_of(tree, sources, "c0ffee").values()
    return made.path.decode().removeprefix("m/src/test/"), made.content.decode(), made.class_name


@pytest.mark.parametrize(
    ("path", "text", "place", "content"),
    [
        (
            "java/a/CartTest.java",
            "package a;\nimport org.junit.jupiter.api.*;",
            "java/a/Ac0ffeeTest.java",
            "@org.junit.jupiter",
        ),
        (
            "java/a/TestCart.java",
            "package a;\nimport org.junit.Test;",
            "java/a/TestAc0ffee.java",
            "@org.junit.Test public",
        ),
        ("java/CartTests.java", "import org.testng.Assert;", "java/Ac0ffeeTests.java", "@org.testng.annotations.Test"),
        (
            "java/a/CartTestCase.java",
            "package a; import junit.framework.*;",
            "java/a/Ac0ffeeTestCase.java",
            "extends junit",
        ),
        (
            "java/a/CartShould.java",
            "package a;\nimport org.junit.Assert;",
            "java/a/Ac0ffeeShould.java",
            "@org.junit.Test",
        ),
        ("kotlin/a/CartTest.kt", "package a\nimport org.junit.jupiter.api.Test", "kotlin/a/Ac0ffeeTest.kt", "fun test"),
        ("groovy/a/CartSpec.groovy", "package a\nimport spock.lang.*", "groovy/a/Ac0ffeeSpec.groovy", "expect: false"),
    ],
)
def test_a_canary_is_written_and_named_as_its_neighbours_are(path: str, text: str, place: str, content: str) -> None:
    found, body, name = canary({path: text})
    assert found == place
    assert content in body
    assert body.startswith("package a") == ("package a" in text)
    assert name == found.partition("/")[2].rpartition(".")[0].replace("/", ".")


def test_the_newest_framework_and_the_commonest_name_decide() -> None:
    old = {f"java/z/Old{number}Tests.java": "package z; import org.junit.Test;" for number in range(9)}
    new = {
        f"java/b{number}/NewTest.java": f"package b{number}; import org.junit.jupiter.api.Test;" for number in (2, 1)
    }
    helper = {"java/a/Support.java": "package a; import org.junit.jupiter.api.Assertions;"}
    path, body, _ = canary({**old, **new, **helper})
    assert path == "java/b1/Ac0ffeeTest.java"
    assert "package b1;" in body


TREE = {
    b"pom.xml": b"",
    b"core/pom.xml": b"",
    b"core/src/test/java/a/CartTest.java": b"package a; import org.junit.Test;",
    b"core/src/test/java/a/Support.java": b"package a;",
    b"core/src/test/resources/x.json": b"",
    b"app/pom.xml": b"",
    b"app/src/test/java/b/AppTest.java": b"package b; import org.junit.Test;",
    b"none/pom.xml": b"",
    b"none/src/test/java/c/Weird.java": b"package c; import org.weird.Test;",
    b"settings.gradle": b"",
}


def script(plan: TestPlan) -> str:
    return next(data.decode() for path, data in plan.files.items() if path.endswith(b".sh"))


@pytest.mark.parametrize("runner", [MavenRunner(arguments=("-Pci",)), GradleRunner(arguments=("-Pci",))])
def test_every_module_with_tests_of_a_known_framework_has_a_canary(runner: MavenRunner | GradleRunner) -> None:
    plan = runner.plan("/box", TREE)
    places = {path.rpartition(b"/")[0] for path in plan.files if path.startswith(b"repo/")}
    assert places == {b"repo/core/src/test/java/a", b"repo/app/src/test/java/b"}
    assert plan.files[b"runner/modules"] == b"app\ncore\n"
    assert " -Pci" in script(plan)


def test_maven_runs_chosen_classes_with_the_canaries_of_their_modules() -> None:
    plan = MavenRunner().plan("/box", TREE, SuiteRequest((b"core/src/test/java/a/CartTest.java",), shuffle_seed=5))
    assert f"-pl core -am -Dtest=a/CartTest,a/{plan.canary}Test test" in script(plan)
    assert "-Dsurefire.runOrder=random -Dsurefire.runOrder.random.seed=5" in script(plan)
    assert plan.files[b"runner/modules"] == b"core\n"


def test_a_chosen_file_that_is_no_class_stands_for_its_module() -> None:
    request = SuiteRequest((b"core/src/test/java/a/CartTest.java", b"core/src/test/resources/x.json"))
    maven, gradle = MavenRunner().plan("/box", TREE, request), GradleRunner().plan("/box", TREE, request)
    assert "-pl core -am test)" in script(maven)
    assert "--tests" not in script(gradle)


def test_gradle_runs_chosen_classes_wherever_they_are() -> None:
    plan = GradleRunner().plan("/box", TREE, SuiteRequest((b"app/src/test/java/b/AppTest.java",)))
    assert f"test --tests b.AppTest --tests b.{plan.canary}Test)" in script(plan)


def suite(*cases: str, name: str = "a.CartTest") -> str:
    return f'<testsuite name="{name}">{"".join(cases)}</testsuite>'


def case(name: str, inner: str = "", classname: str = "a.CartTest") -> str:
    return f'<testcase name="{name}" classname="{classname}" time="0.1">{inner}</testcase>'


PROOF = suite(case("x", "<failure/>", f"a.{CANARY}Test"))


def read(*files: tuple[str, str | bytes], modules: str = "core\n", log: str = "", status: int = 0) -> SuiteReport:
    return read_java_report(joined(("modules", modules), ("log", log), *files, status=status), CANARY, TOKEN)


def words(report: SuiteReport) -> dict[str, str]:
    assert report.status is RunStatus.COMPLETED, report
    return {test_id: result.outcome.value for test_id, result in report.tests.items()}


def test_ids_have_the_module_the_task_the_class_and_the_name() -> None:
    gradle = "build/test-results"
    report = read(
        ("./target/surefire-reports/TEST-r.xml", suite(case("a"), PROOF)),
        ("./core/target/surefire-reports/TEST-a.xml", suite(case("a b[1]"), case("c", "<error/>"), PROOF)),
        (f"./lib/x y/{gradle}/test/TEST-a.xml", suite(case("a", "<skipped/>"), PROOF)),
        (f"./lib/x y/{gradle}/testDebug/TEST-a.xml", suite(case("a"))),
        modules=".\ncore\nlib/x y\n",
    )
    assert words(report) == {
        "a.CartTest::a": "passed",
        "core::a.CartTest::a b[1]": "passed",
        "core::a.CartTest::c": "error",
        "lib/x y::a.CartTest::a": "skipped",
        "lib/x y::testDebug::a.CartTest::a": "passed",
    }
    assert report.canary_failed
    assert not report.uncollected


def test_tests_of_one_name_are_duplicates_with_their_worst() -> None:
    report = read(("./core/target/surefire-reports/TEST-a.xml", suite(case("a"), case("a", "<failure/>"), PROOF)))
    assert words(report) == {"core::a.CartTest::a": "failed"}
    assert report.duplicates == {"core::a.CartTest::a"}


@pytest.mark.parametrize("name", ["", "a.CartTest"])
def test_what_befalls_a_class_before_its_tests_is_told(name: str) -> None:
    failed = case(name, '<error message="no database"/>')
    report = read(("./core/target/surefire-reports/TEST-a.xml", suite(failed, case(name, "<skipped/>"), PROOF)))
    assert words(report) == {}
    assert report.uncollected == {"core::a.CartTest": "no database"}


def test_passes_of_a_module_without_its_canary_are_left_out_and_it_is_told() -> None:
    report = read(
        ("./core/target/surefire-reports/TEST-a.xml", suite(case("a"), PROOF)),
        ("./app/target/surefire-reports/TEST-a.xml", suite(case("a"), case("b", "<failure/>"))),
        modules="app\ncore\n",
    )
    assert words(report) == {"core::a.CartTest::a": "passed", "app::a.CartTest::b": "failed"}
    assert report.uncollected.keys() == {"app"}
    assert report.canary_failed


@pytest.mark.parametrize("inner", ["", "<skipped/>"])
def test_a_canary_that_does_not_fail_is_told(inner: str) -> None:
    proof = case("x", inner, f"a.{CANARY}Test")
    report = read(("./core/target/surefire-reports/TEST-a.xml", suite(case("a"), proof)))
    assert report.status is RunStatus.COMPLETED
    assert not report.canary_failed
    assert not report.tests


LOG = """[ERROR] COMPILATION ERROR :
[ERROR] /work/repo/core/src/test/java/a/CartTest.java:[4,33] cannot find symbol
[ERROR] /work/repo/app/src/main/java/b/App.java:[1,1] class, interface or enum expected
"""


def test_a_module_without_reports_is_told_with_the_errors_of_its_files() -> None:
    file = ("./app/target/surefire-reports/TEST-a.xml", suite(case("a"), PROOF))
    report = read(file, modules="app\ncore\n", log=LOG)
    assert words(report) == {"app::a.CartTest::a": "passed"}
    assert report.uncollected.keys() == {"core"}
    assert "CartTest.java:[4,33]" in report.uncollected["core"]
    assert "App.java" not in report.uncollected["core"]


@pytest.mark.parametrize(
    "log",
    [
        "[ERROR] The forked VM terminated without properly saying goodbye. VM crash or System.exit called?\n",
        "> Process 'Gradle Test Executor 1' finished with non-zero exit value 134\n",
    ],
)
def test_a_jvm_that_dies_in_its_first_class_is_no_build_that_failed(log: str) -> None:
    report = read(modules=".\n", log=log, status=1)
    assert report.status is RunStatus.NO_REPORT
    assert log.strip() in report.detail


def test_where_nothing_ran_and_the_tool_failed_nothing_builds() -> None:
    report = read(modules="app\ncore\n", log=LOG, status=1)
    assert report.status is RunStatus.BUILD_FAILED
    assert "App.java" in report.uncollected["app"]
    assert read(modules="", log="no pom", status=1).uncollected == {".": "no pom"}
    assert read(modules="", status=0).status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("report", "status"),
    [
        (None, RunStatus.NO_REPORT),
        (b"", RunStatus.NO_REPORT),
        (joined(("modules", ""), ("log", ""), status=137), RunStatus.NO_REPORT),
        (joined(("modules", ""), ("log", ""), status=127), RunStatus.NO_REPORT),
        (joined(("modules", ""), ("log", ""), end=False), RunStatus.NO_REPORT),
        (joined(("modules", ""), ("./target/surefire-reports/TEST-a.xml", "<testsuite>")), RunStatus.DAMAGED_REPORT),
    ],
)
def test_a_run_that_did_not_end_has_no_report(report: bytes | None, status: RunStatus) -> None:
    assert read_java_report(report, CANARY, TOKEN).status is status


@given(st.binary(), st.binary(), st.binary())
def test_no_content_makes_the_reader_raise(modules: bytes, log: bytes, xml: bytes) -> None:
    files = (("modules", modules), ("log", log), ("./target/surefire-reports/TEST-a.xml", xml))
    assert read_java_report(joined(*files, status=1), CANARY, TOKEN).status in set(RunStatus)
