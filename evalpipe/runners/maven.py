"""The Maven runner: the `test` phase of every module, and Surefire's XML. Failsafe's integration tests are left out."""

import os
import posixpath
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
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

_OPTIONS = (
    *("-B", "-o", "-ntp", "-fae", "-Dstyle.color=never"),
    # A failure in one module must not keep those that depend on it from being tested.
    *("-Dmaven.test.failure.ignore=true", "-Dsurefire.rerunFailingTestsCount=0", "-DdisableXmlReport=false"),
    "-Dsurefire.skipAfterFailureCount=0",
    *("-DfailIfNoTests=false", "-DfailIfNoSpecifiedTests=false", "-Dsurefire.failIfNoSpecifiedTests=false"),
)
# They judge the form of sources, of which the canary has none of the team's, and would fail the whole build.
_SKIPPED = (
    "checkstyle.skip",
    "cpd.skip",
    "formatter.skip",
    "impsort.skip",
    "license.skip",
    "pmd.skip",
    "rat.skip",
    "spotless.check.skip",
)
_SCRIPT = """here=$1 report=$2 token=$3
find . -path '*/surefire-reports/TEST-*.xml' -exec rm -f {{}} +
status=0
{calls}
{{
    printf '\\n%s file modules\\n' "$token"
    cat "$here/modules"
    printf '\\n%s file log\\n' "$token"
    grep -a -E '^\\[(ERROR|FATAL)\\]' "$here/log" | head -c 200000
    {join}
    {end}
}} >"$report"
"""


@dataclass(frozen=True, slots=True)
class MavenRunner:
    """Runs Maven. `arguments` are added to the command, for example `-Pci`."""

    arguments: tuple[str, ...] = ()
    name: str = "maven"
    can_shuffle: bool = True

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`. A chosen file stands for its class, or for its module where it is none."""
        token, name = secrets.token_hex(16), secrets.token_hex(6)
        report_path = new_report_path("report")
        modules = {path.rpartition(b"/")[0] for path in tree if posixpath.basename(path) == b"pom.xml"}
        sources = {module: sources_of_tests(tree, module, modules) for module in sorted(modules)}
        chosen = None if request.test_files is None else chosen_sources(request.test_files, sources)
        canaries = canaries_of(tree, sources if chosen is None else {one: sources[one] for one in chosen}, name)
        checks = [f"-D{name}=true" for name in _SKIPPED]
        options = [*_OPTIONS, *checks, *_order(request.shuffle_seed), *self.arguments]
        calls = [_call(top, options, chosen, canaries) for top in _outermost(modules or {b""})]
        script = _SCRIPT.format(
            calls="\n".join(call for call in calls if call),
            # TestNG leaves reports of its own in a folder below.
            join=join_command(token, "-path", "*/surefire-reports/TEST-*.xml", "!", "-path", "*/surefire-reports/*/*"),
            end=end_command(token, "$status"),
        )
        return TestPlan(
            command=("/bin/sh", f"{root}/runner/maven.sh", f"{root}/runner", f"{root}/{report_path}", token),
            env={"LC_ALL": "C.UTF-8", "TZ": "UTC"},
            files={
                b"runner/maven.sh": os.fsencode(script),
                **canary_files(canaries),
            },
            report_path=report_path,
            canary=f"A{name}",
            key=token,
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """See `java_report.read_java_report`; Maven's exit code is in the report."""
        return read_java_report(report, plan.canary, plan.key)


def _order(seed: int | None) -> list[str]:
    # The order of the file system is that of a machine.
    if seed is None:
        return ["-Dsurefire.runOrder=alphabetical"]
    return ["-Dsurefire.runOrder=random", f"-Dsurefire.runOrder.random.seed={seed}"]


def _call(
    top: bytes,
    options: Sequence[str],
    chosen: Mapping[bytes, Sequence[JavaSource]] | None,
    canaries: Mapping[bytes, Canary],
) -> str:
    """The shell command for the modules below `top`; nothing where none was chosen."""
    selection: list[str] = []
    if chosen is not None:
        mine = [module for module in chosen if module == top or not top or module.startswith(top + b"/")]
        if not mine:
            return ""
        # With those that they depend on, which are built, and whose tests no pattern fits.
        places = [os.fsdecode(posixpath.relpath(module or b".", top or b".")) for module in mine]
        selection = ["-pl", ",".join(places), "-am"]
        if all(chosen[module] for module in mine):
            classes = [source.class_path for module in mine for source in chosen[module]]
            names = [os.fsdecode(name) for name in classes]
            names += [canaries[module].class_name.replace(".", "/") for module in mine if module in canaries]
            selection.append(f"-Dtest={','.join(names)}")
    command = shlex.join(["mvn", *options, *selection, "test"])
    folder = shlex.quote("./" + os.fsdecode(top))
    return f'(cd {folder} && {command}) </dev/null >>"$here/log" 2>&1 || status=$?'


def _outermost(folders: Iterable[bytes]) -> list[bytes]:
    """The folders that lie in no other of them."""
    found: list[bytes] = []
    for folder in sorted(folders):
        if not any(not above or folder.startswith(above + b"/") for above in found):
            found.append(folder)
    return found
