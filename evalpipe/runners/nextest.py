"""The nextest runner: `cargo nextest run` of every workspace, and its JUnit XML, a suite for each test program.

Ids are written as nextest itself writes them, the program's and the test's name with a blank between. It runs each
test in a process of its own and judges it by the exit code; ignored tests are in no report, and documentation tests
are none for it.
"""

import os
import secrets
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalpipe.runners.cargo_project import CargoPackage, CargoTarget, CargoWorkspace, workspaces
from evalpipe.runners.cargo_selection import canaries, chosen_targets, selection, single_calls
from evalpipe.runners.joined_files import NotJoined, read_joined
from evalpipe.runners.junit_xml import DamagedXml, JUnitCase, read_junit_xml
from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan, new_report_path
from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult, storable_text
from evalpipe.runners.results import UNPROVEN, Results, shortened

# https://docs.rs/nextest-metadata/latest/nextest_metadata/enum.NextestExitCode.html
_TESTS_FAILED, _BUILD_FAILED, _NO_TESTS = 100, 101, 4
_NO_SUCH_COMMAND = "no such command"
_SCRIPT = r"""here=$1 report=$2 token=$3
top=$(pwd -P)
number=0
call() {
    number=$((number + 1))
    folder=$here/results/$number
    mkdir -p "$folder"
    printf %s "$1" >"$folder/label"
    shift
    rm -f "$here/junit.xml"
    cargo nextest run --profile evalpipe --tool-config-file "evalpipe:$here/nextest.toml" \
        --no-fail-fast --retries 0 "$@" </dev/null >"$folder/output" 2>&1
    status=$?
    echo "$status" >"$folder/status"
    [ ! -f "$here/junit.xml" ] || mv "$here/junit.xml" "$folder/junit.xml"
    return "$status"
}
show() {
    printf '\n%s file %s\n' "$token" "${2#"$here/results/"}"
    tail -c "$1" "$2"
}
"""
_JOIN = r"""for folder in "$here/results"/*; do
    [ -d "$folder" ] || continue
    for name in label status output; do show 100000 "$folder/$name"; done
    [ ! -f "$folder/junit.xml" ] || show 60000000 "$folder/junit.xml"
done >"$report"
printf '\n%s end 0\n' "$token" >>"$report"
"""


@dataclass(frozen=True, slots=True)
class NextestRunner:
    """Runs cargo nextest. `arguments` are added to the command, for example `--all-features`."""

    arguments: tuple[str, ...] = ()
    name: str = "nextest"
    can_shuffle: bool = False

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`. A chosen file stands for its target, or for its package where it is none by itself."""
        token, canary = secrets.token_hex(16), f"t_{secrets.token_hex(8)}"
        report_path = new_report_path("report")
        found = workspaces(tree)
        parts = [_SCRIPT]
        for workspace in found or [CargoWorkspace(b"", ())]:
            chosen = None if request.test_files is None else chosen_targets(workspace, request.test_files)
            if chosen is None or chosen:
                parts.append(self._calls(workspace, chosen))
        # The report of the last call that built something; the script takes it away after each.
        settings = f'[profile.evalpipe.junit]\npath = "{root}/runner/junit.xml"\n'
        return TestPlan(
            command=("/bin/sh", f"{root}/runner/nextest.sh", f"{root}/runner", f"{root}/{report_path}", token),
            env={"LC_ALL": "C.UTF-8", "TZ": "UTC", "CARGO_NET_OFFLINE": "true", "CARGO_TERM_COLOR": "never"},
            files={
                b"runner/nextest.sh": os.fsencode("\n".join([*parts, _JOIN])),
                b"runner/nextest.toml": settings.encode(),
                **canaries(canary, tree, found),
            },
            report_path=report_path,
            canary=canary,
            key=token,
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """See `Runner.read`; nextest's exit codes are in the report."""
        if report is None:
            return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
        try:
            return _suite_report(_calls_of(report, plan.key), plan.canary)
        except NotJoined as error:
            return SuiteReport(RunStatus.NO_REPORT, detail=str(error))
        except (DamagedXml, KeyError, ValueError) as error:
            detail = f"the report cannot be read: {storable_text(repr(error)[:500])}"
            return SuiteReport(RunStatus.DAMAGED_REPORT, detail=detail)

    def _calls(
        self, workspace: CargoWorkspace, chosen: Sequence[tuple[CargoPackage, CargoTarget | None]] | None
    ) -> str:
        """Shell commands: one call for all, or, where something does not build, one for each target."""
        options = ["--workspace"] if chosen is None else selection(chosen)
        wanted = [(package, None) for package in workspace.packages] if chosen is None else chosen
        singly = [
            shlex.join(["call", label, "--manifest-path", manifest, *option, *self.arguments])
            for package, target in wanted
            for label, manifest, option in single_calls(package, target)
            if "--doc" not in option
        ]
        return "\n".join(
            [
                f"cd {shlex.quote('./' + os.fsdecode(workspace.folder))} || exit",
                shlex.join(["call", "all", *options, *self.arguments]),
                f'if [ "$status" = {_BUILD_FAILED} ]; then',
                *(f"    {line}" for line in singly or ["true"]),
                "fi",
                'cd "$top" || exit',
            ]
        )


def _calls_of(report: bytes, token: str) -> list[Mapping[str, bytes]]:
    calls: defaultdict[int, dict[str, bytes]] = defaultdict(dict)
    for path, content in read_joined(report, token).files:
        number, _, name = path.partition("/")
        calls[int(number)][name] = content
    return [calls[number] for number in sorted(calls)]


def _suite_report(calls: Sequence[Mapping[str, bytes]], canary: str) -> SuiteReport:
    cases: list[JUnitCase] = []
    uncollected: dict[str, str] = {}
    for number, call in enumerate(calls):
        label, status, output = _text(call["label"]), int(call["status"]), _text(call["output"])
        if status not in (0, _TESTS_FAILED, _BUILD_FAILED, _NO_TESTS) or _NO_SUCH_COMMAND in output:
            detail = f"cargo nextest ended with exit status {status}: {shortened(output)}"
            return SuiteReport(RunStatus.NO_REPORT, detail=detail)
        if "junit.xml" in call:
            cases += read_junit_xml(call["junit.xml"]).cases
        elif status == _BUILD_FAILED and (label != "all" or number == len(calls) - 1):
            uncollected["." if label == "all" else label] = shortened(output)
        elif status == _TESTS_FAILED:
            return SuiteReport(RunStatus.NO_REPORT, detail="cargo nextest ran tests and left no report of them")
    return _judged(cases, uncollected, canary)


def _judged(cases: Sequence[JUnitCase], uncollected: dict[str, str], canary: str) -> SuiteReport:
    proofs: dict[str, TestOutcome] = {}
    for case in cases:
        if _is_canary(case, canary):
            proofs[_program(case)] = case.outcome
    results = Results()
    for case in cases:
        program = _program(case)
        if _is_canary(case, canary):
            continue
        if case.outcome is TestOutcome.PASSED and proofs.get(program) is not TestOutcome.FAILED:
            uncollected[program] = UNPROVEN
        else:
            results.add(TestResult(f"{program} {storable_text(case.name)}", case.outcome, case.seconds, case.message))
    if uncollected and not results.tests and not proofs:
        return SuiteReport(RunStatus.BUILD_FAILED, uncollected=uncollected, detail="no target with tests builds")
    return SuiteReport(
        RunStatus.COMPLETED,
        tests=results.tests,
        uncollected=uncollected,
        duplicates=results.duplicates,
        canary_failed=set(proofs.values()) == {TestOutcome.FAILED},
    )


def _is_canary(case: JUnitCase, canary: str) -> bool:
    return case.name == canary or case.name.endswith(f"::{canary}")


def _program(case: JUnitCase) -> str:
    return storable_text(case.suites[-1] if case.suites else case.classname)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace").strip("\n")
