"""What the JUnit XML of Maven and Gradle says: one file for each class, below the folder of its module.

Both tools write a file when its class is done, from the process that asked for the tests: what forks print side by
side is in none of them. A process that dies leaves no file for the class that it was in.
"""

import re
from collections.abc import Sequence

from evalpipe.runners.joined_files import JoinedFiles, NotJoined, read_joined
from evalpipe.runners.junit_xml import DamagedXml, JUnitCase, read_junit_xml
from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult, storable_text
from evalpipe.runners.results import UNPROVEN, Results, shortened

_NO_COMMAND = 126
# Surefire's and Gradle's words for a JVM that died; what did not compile starts none.
_CRASHED = re.compile(r"The forked VM terminated|Gradle Test Executor \d+' finished with non-zero exit value")
_TASK = re.compile(r"(?:^|/)build/test-results/(?P<task>[^/]+)/")
_FOLDERS = re.compile(r"(?:^|/)(?:target/surefire-reports|build/test-results)/")


def read_java_report(report: bytes | None, canary: str, token: str) -> SuiteReport:
    """What a run says by its report (None: it left none). Never raises on content.

    The canaries are classes whose names have `canary` in them.
    """
    if report is None:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
    try:
        joined = read_joined(report, token)
        if joined.exit_status >= _NO_COMMAND:
            detail = f"the build tool ended with exit status {joined.exit_status}: {shortened(_log(joined))}"
            return SuiteReport(RunStatus.NO_REPORT, detail=detail)
        return _suite_report(joined, canary)
    except NotJoined as error:
        return SuiteReport(RunStatus.NO_REPORT, detail=str(error))
    except DamagedXml as error:
        return SuiteReport(RunStatus.DAMAGED_REPORT, detail=storable_text(str(error)))


def _suite_report(joined: JoinedFiles, canary: str) -> SuiteReport:
    modules = _modules(joined)
    cases: dict[str, list[tuple[str, JUnitCase]]] = {}
    for path, content in joined.files:
        if path.endswith(".xml"):
            module, prefix = _place(path)
            cases.setdefault(module, []).extend((prefix, case) for case in _cases(path, content))
    results, uncollected, proofs = Results(), dict[str, str](), list[TestOutcome | None]()
    for module in sorted(modules | cases.keys()):
        found = cases.get(module, [])
        proof = _proof(found, canary)
        proofs.append(proof)
        _add(results, uncollected, [item for item in found if canary not in item[1].classname], proof)
        if not found:
            uncollected[module or "."] = _errors(module, modules, joined)
    if not results.tests and set(proofs) <= {None} and joined.exit_status:
        if _CRASHED.search(_log(joined)):
            detail = f"the JVM of the tests ended before any class was done: {shortened(_log(joined))}"
            return SuiteReport(RunStatus.NO_REPORT, detail=detail)
        uncollected = uncollected or {".": shortened(_log(joined))}
        return SuiteReport(RunStatus.BUILD_FAILED, uncollected=uncollected, detail="no module with tests builds")
    return SuiteReport(
        RunStatus.COMPLETED,
        tests=results.tests,
        uncollected=uncollected,
        duplicates=results.duplicates,
        canary_failed=TestOutcome.FAILED in proofs and set(proofs) <= {None, TestOutcome.FAILED},
    )


def _cases(path: str, content: bytes) -> Sequence[JUnitCase]:
    try:
        return read_junit_xml(content).cases
    except DamagedXml as error:
        raise DamagedXml(f"{path}: {error}") from error


def _proof(found: Sequence[tuple[str, JUnitCase]], canary: str) -> TestOutcome | None:
    """The outcome of the canary of a module; an error counts, since frameworks differ in what they call one."""
    outcomes = {case.outcome for _, case in found if canary in case.classname}
    if outcomes and outcomes <= {TestOutcome.FAILED, TestOutcome.ERROR}:
        return TestOutcome.FAILED
    return min(outcomes, default=None)


def _add(
    results: Results,
    uncollected: dict[str, str],
    found: Sequence[tuple[str, JUnitCase]],
    proof: TestOutcome | None,
) -> None:
    for prefix, case in found:
        test_id = storable_text(f"{prefix}{case.classname}::{case.name}")
        if case.name in ("", case.classname):
            # What befalls a class before its tests, such as a failure in @BeforeAll; or all of it is skipped.
            if case.outcome in (TestOutcome.FAILED, TestOutcome.ERROR):
                uncollected[storable_text(f"{prefix}{case.classname}")] = case.message
        elif case.outcome is TestOutcome.PASSED and proof is not TestOutcome.FAILED:
            uncollected[prefix.removesuffix("::") or "."] = UNPROVEN
        else:
            results.add(TestResult(test_id, case.outcome, case.seconds, case.message))


def _place(path: str) -> tuple[str, str]:
    """The module of a report, and what its ids begin with: module, and task of Gradle where it is not `test`."""
    parts = _FOLDERS.split(path.removeprefix("./"), maxsplit=1)
    module = parts[0] if len(parts) == 2 else ""
    task = _TASK.search(path)
    prefix = f"{module}::" if module else ""
    if task and task["task"] != "test":
        prefix += f"{task['task']}::"
    return module, prefix


def _modules(joined: JoinedFiles) -> frozenset[str]:
    """The modules that have a canary, as the runner listed them."""
    listed = next((content for path, content in joined.files if path == "modules"), b"")
    lines = listed.decode("utf-8", "backslashreplace").split("\n")
    return frozenset("" if line == "." else line for line in lines if line)


def _log(joined: JoinedFiles) -> str:
    content = next((content for path, content in joined.files if path == "log"), b"")
    return content.decode("utf-8", "backslashreplace").strip()


def _errors(module: str, modules: frozenset[str], joined: JoinedFiles) -> str:
    """The lines of the log that name a file of a module, or all of it where none does."""
    inner = [other for other in modules if other != module and (not module or other.startswith(f"{module}/"))]
    lines = [
        line
        for line in _log(joined).split("\n")
        if f"/{module}/src/".replace("//", "/") in line and not any(f"/{other}/src/" in line for other in inner)
    ]
    return shortened("\n".join(lines) or _log(joined) or "no test of this module ran")
