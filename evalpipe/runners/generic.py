"""The generic runner: any shell command that leaves JUnit XML, CTRF or TAP.

It knows nothing of the tool, so a team says where the report is, and how a test that must fail is added: a file, and
the id under which the report names its test.
"""

import os
import posixpath
import secrets
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.runners.ctrf import DamagedCtrf, read_ctrf
from evalpipe.runners.joined_files import NotJoined, end_command, join_command, read_joined
from evalpipe.runners.json_lines import SEPARATOR, joined_id
from evalpipe.runners.junit_xml import DamagedXml, read_junit_xml
from evalpipe.runners.plan import REPOSITORY_FOLDER, WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan, new_report_path
from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult, storable_text
from evalpipe.runners.results import Results
from evalpipe.runners.tap import DamagedTap, UnfinishedTap, read_tap

_SHOWN_IDS = 3
_ENDED_BY_SIGNAL = 128

# Shows all that the command prints, and keeps what may be TAP: the output of tests can be hundreds of megabytes.
_KEEP_TAP = r"""
{ print }
yaml {
    end = /^ *\.\.\.[ \r]*$/
    if (end || yaml++ < 200) print substr($0, 1, 2000) >kept
    if (end) yaml = 0
    next
}
after && /^ *---[ \r]*$/ { print >kept; yaml = 1; next }
{ after = /^ *(not )?ok/ }
/^ *#/ { if (comments++ < 50) print substr($0, 1, 2000) >kept; next }
/^ *((not )?ok|1\.\.|Bail out!|TAP version)/ { print >kept; comments = 0 }
"""

# What the tree brings of reports is not of this run.
_FROM_FILES = """
report=$1 token=$2
{find} -exec rm -f {{}} +
/bin/sh -c "$3"
status=$?
{{ {join}; {end}; }} >"$report"
exit $status
"""
_FROM_OUTPUT = """
report=$1 token=$2 kept=$1.tap
{{ /bin/sh -c "$3"; echo $? >"$report.status"; }} | LC_ALL=C awk -v kept="$kept" "$4"
{{
    printf '\\n%s file output\\n' "$token"
    cat "$kept"
    read -r status <"$report.status" && {end}
}} >"$report"
exit "$status"
"""


class ReportFormat(StrEnum):
    """What the command leaves."""

    JUNIT = "junit"
    CTRF = "ctrf"
    TAP = "tap"


@dataclass(frozen=True, slots=True)
class CanaryFile:
    """A test that must fail: `text` is laid into the tree as `file`, and its test comes back as `test_id`."""

    file: str
    text: str
    test_id: str


@dataclass(frozen=True, slots=True)
class GenericRunner:
    """Runs `command`, and reads the files that match `reports`; for TAP without `reports`, what the command prints.

    In `reports`, `*` and `**` stand for any characters, `/` too. The command runs the whole suite, whatever is asked.
    """

    command: str
    report_format: ReportFormat
    canary: CanaryFile
    reports: tuple[str, ...] = ()
    name: str = "generic"
    can_shuffle: bool = False

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        token = secrets.token_hex(16)
        report_path = new_report_path("report")
        end = end_command(token, "$status")
        if self.reports:
            patterns = [word for pattern in self.reports for word in ("-o", "-path", _find_pattern(pattern))]
            found = ("(", *patterns[1:], ")")
            find = shlex.join(("find", ".", *found, "-type", "f"))
            script = _FROM_FILES.format(find=find, join=join_command(token, *found), end=end)
        else:
            script = _FROM_OUTPUT.format(end=end)
        report = f"{root}/{report_path}"
        return TestPlan(
            command=("/bin/sh", "-c", script, "sh", report, token, self.command, _KEEP_TAP),
            env={"CI": "true", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            files={os.fsencode(f"{REPOSITORY_FOLDER}/{self.canary.file}"): self.canary.text.encode()},
            report_path=report_path,
            canary=self.canary.test_id,
            key=token,
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the joined reports; see `Runner.read`. What the command's exit status says is not asked."""
        if not report:
            return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
        top = plan.command[4].removesuffix(plan.report_path) + REPOSITORY_FOLDER
        results, uncollected = Results(), dict[str, str]()
        try:
            joined = read_joined(report, plan.key)
            for path, content in joined.files:
                for result in self._results(path, content, top, uncollected):
                    results.add(result)
        except (NotJoined, UnfinishedTap) as error:
            return SuiteReport(RunStatus.NO_REPORT, detail=str(error))
        except (DamagedXml, DamagedCtrf, DamagedTap) as error:
            return SuiteReport(RunStatus.DAMAGED_REPORT, detail=f"{storable_text(path)}: {error}")
        if joined.exit_status >= _ENDED_BY_SIGNAL:
            return SuiteReport(RunStatus.NO_REPORT, detail=f"the command was ended: exit status {joined.exit_status}")
        if not joined.files:
            return SuiteReport(RunStatus.NO_REPORT, detail=f"no file matches {', '.join(self.reports)}")
        return _suite_report(results, uncollected, plan.canary)

    def _results(self, path: str, content: bytes, top: str, uncollected: dict[str, str]) -> Iterator[TestResult]:
        match self.report_format:
            case ReportFormat.JUNIT:
                report = read_junit_xml(content)
                for case in report.cases:
                    group = case.classname or (case.suites[-1] if case.suites else "")
                    test_id = _id(_in_tree(case.file, top), group, case.name)
                    yield TestResult(test_id, case.outcome, case.seconds, case.message)
                uncollected |= {SEPARATOR.join(suites): text for suites, text in report.suite_failures.items()}
            case ReportFormat.CTRF:
                for test in read_ctrf(content):
                    test_id = _id(_in_tree(test.file, top), *test.suites, test.name)
                    yield TestResult(test_id, test.outcome, test.seconds, test.message)
            case ReportFormat.TAP:
                for point in read_tap(content):
                    # Its streams name no file, and those of several files may have the same titles.
                    test_id = _id(posixpath.normpath(path) if self.reports else "", *point.titles)
                    yield TestResult(test_id, point.outcome, point.seconds, point.message)


def _suite_report(results: Results, uncollected: dict[str, str], canary_id: str) -> SuiteReport:
    canary = results.pop(canary_id)
    if canary is None:
        ids = ", ".join(repr(test_id) for test_id in list(results.tests)[:_SHOWN_IDS]) or "none at all"
        detail = f"the report has no test {canary_id!r}, which must fail; it has {ids}"
        return SuiteReport(RunStatus.NO_REPORT, uncollected=uncollected, detail=detail)
    return SuiteReport(
        RunStatus.COMPLETED,
        tests=dict(results.tests),
        uncollected=uncollected,
        duplicates=results.duplicates,
        canary_failed=canary.outcome in (TestOutcome.FAILED, TestOutcome.ERROR),
    )


def _id(file: str, *names: str) -> str:
    """What the report has of a file, groups and a name, joined; parts that it does not have are left out."""
    *groups, name = names
    return joined_id([part for part in (file, *groups) if part] + [name])


def _in_tree(file: str, top: str) -> str:
    """A path from the top of the repository; some tools write where it lies in the box."""
    return posixpath.relpath(file, top) if file.startswith(top + "/") else file


def _find_pattern(pattern: str) -> str:
    return "./" + pattern.removeprefix("./").replace("**/", "*").replace("**", "*")
