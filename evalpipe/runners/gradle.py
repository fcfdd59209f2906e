"""The Gradle runner: the `test` task of every project, and its JUnit XML. It calls the `gradle` of the image's PATH."""

import os
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalpipe.runners.java_canary import (
    Canary,
    JavaSource,
    canaries_of,
    canary_files,
    chosen_sources,
    sources_of_tests,
)
from evalpipe.runners.java_report import read_java_report
from evalpipe.runners.joined_files import end_command, join_command
from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan, new_report_path
from evalpipe.runners.report import SuiteReport

# Results of a build cache would be those of another run.
_OPTIONS = ("--offline", "--continue", "--no-daemon", "--no-build-cache", "--console=plain")
# After the canary, which fails, nothing else would run; without reports nothing would be known; and an agent for
# coverage that is older than the Java of the image ends every JVM.
_SETTINGS = b"""allprojects {
    afterEvaluate {
        tasks.withType(Test) { task ->
            if (task.hasProperty('failFast')) { task.failFast = false }
            def coverage = task.extensions.findByName('jacoco')
            if (coverage != null) { coverage.enabled = false }
            def report = task.reports.junitXml
            if (report.hasProperty('required')) { report.required.set(true) } else { report.enabled = true }
        }
    }
}
"""
_BUILD = re.compile(rb"(?:^|/)(?:build|settings)\.gradle(?:\.kts)?\Z")
_BUILD_LOGIC = re.compile(rb"(?:^|/)(?:buildSrc|build-logic)/")
_TESTS = re.compile(rb"(?:^|/)src/test/")
_SCRIPT = """here=$1 report=$2 token=$3
find . -path '*/build/test-results/*' -name 'TEST-*.xml' -exec rm -f {{}} +
(cd {folder} && {command}) </dev/null >"$here/log" 2>&1
status=$?
{{
    printf '\\n%s file modules\\n' "$token"
    cat "$here/modules"
    printf '\\n%s file log\\n' "$token"
    grep -a -E '(error|warning): |^e: |^> |FAILED' "$here/log" | head -c 200000
    {join}
    {end}
}} >"$report"
"""


@dataclass(frozen=True, slots=True)
class GradleRunner:
    """Runs Gradle. `arguments` are added to the command, for example `-Pci`."""

    arguments: tuple[str, ...] = ()
    name: str = "gradle"
    can_shuffle: bool = False

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`. Chosen files that are classes run alone; for any other, all tests run."""
        token, name = secrets.token_hex(16), secrets.token_hex(6)
        report_path = new_report_path("report")
        modules = {path[: match.start()] for path in tree if (match := _TESTS.search(path))}
        modules = {module for module in modules if not _BUILD_LOGIC.search(module + b"/")}
        sources = {module: sources_of_tests(tree, module, modules) for module in sorted(modules)}
        chosen = None if request.test_files is None else chosen_sources(request.test_files, sources)
        canaries = canaries_of(tree, sources if chosen is None else {one: sources[one] for one in chosen}, name)
        builds = sorted(path.rpartition(b"/")[0] for path in tree if _BUILD.search(path))
        settings = ("--init-script", f"{root}/runner/settings.gradle")
        script = _SCRIPT.format(
            folder=shlex.quote("./" + os.fsdecode(min(builds, key=len, default=b""))),
            command=shlex.join(["gradle", *settings, *_OPTIONS, *self.arguments, "test", *_filters(chosen, canaries)]),
            join=join_command(token, "-path", "*/build/test-results/*", "-name", "TEST-*.xml"),
            end=end_command(token, "$status"),
        )
        return TestPlan(
            command=("/bin/sh", f"{root}/runner/gradle.sh", f"{root}/runner", f"{root}/{report_path}", token),
            env={"LC_ALL": "C.UTF-8", "TZ": "UTC"},
            files={
                b"runner/gradle.sh": os.fsencode(script),
                b"runner/settings.gradle": _SETTINGS,
                **canary_files(canaries),
            },
            report_path=report_path,
            canary=f"A{name}",
            key=token,
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """See `java_report.read_java_report`; Gradle's exit code is in the report."""
        return read_java_report(report, plan.canary, plan.key)


def _filters(chosen: Mapping[bytes, Sequence[JavaSource]] | None, canaries: Mapping[bytes, Canary]) -> list[str]:
    """The options that choose classes, in whatever project they are; nothing for the whole suite."""
    if chosen is None or not all(chosen.values()):
        return []
    classes = [os.fsdecode(one.class_path).replace("/", ".") for found in chosen.values() for one in found]
    classes += [one.class_name for one in canaries.values()]
    return [word for name in classes for word in ("--tests", name)]
