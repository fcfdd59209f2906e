"""Reads the streams of `go test -json` that the go runner joins: https://pkg.go.dev/cmd/test2json.

The stream is made from what the test binaries print, so a result counts only with its own line. A binary that exits
with 0 in the middle of a test, for example, makes go write a `pass` for the test that was running. Before Go 1.20 a
result line that follows output without a line feed is no result for go; it is found again here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalpipe.runners.joined_files import NotJoined, read_joined
from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult, storable_text
from evalpipe.runners.results import UNPROVEN, shortened

_RESULT = re.compile(r"(?:.*)--- (PASS|FAIL|SKIP): (.*) \(\d+\.\d+s\)\n?\Z", re.DOTALL)
_PLAIN_FAILURE = re.compile(rb"FAIL\t(\S+) \[(?:build|setup) failed\]")
_WORST_STATUS = 2  # of go itself: 1 for failures, 2 for faults of the command; a signal makes it larger

_Event = Mapping[str, Any]


@dataclass(slots=True)
class _Test:
    starts: int = 0
    ends: list[str] = field(default_factory=list)
    seconds: float = 0.0
    output: list[str] = field(default_factory=list)

    def outcome(self, lines: frozenset[str]) -> TestOutcome:
        """The outcome by its ends; `lines` are the words of the result lines for it."""
        # Without an end that go saw, a result line that it did not see.
        words = {end.upper() for end in self.ends} or lines
        if "FAIL" in words:
            return TestOutcome.FAILED
        if self.starts and "PASS" in words and "PASS" in lines:
            return TestOutcome.PASSED
        return TestOutcome.SKIPPED if "SKIP" in words and "SKIP" in lines else TestOutcome.ERROR


@dataclass(slots=True)
class _Package:
    tests: dict[str, _Test] = field(default_factory=dict)
    lines: dict[str, set[str]] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)
    failed: bool = False
    not_built: str | None = None

    def test(self, name: str) -> _Test:
        return self.tests.setdefault(name, _Test())

    def outcome(self, name: str) -> TestOutcome | None:
        test = self.tests.get(name)
        return None if test is None else test.outcome(frozenset(self.lines.get(name, ())))


@dataclass(slots=True)
class _Run:
    """All that the streams of a run say."""

    packages: dict[str, _Package] = field(default_factory=dict)
    builds: dict[str, list[str]] = field(default_factory=dict)
    silent_modules: dict[str, str] = field(default_factory=dict)

    def package(self, path: str) -> _Package:
        return self.packages.setdefault(path, _Package())

    def add(self, event: _Event) -> None:
        action = _text(event, "Action")
        if action == "build-output":
            self.builds.setdefault(_text(event, "ImportPath"), []).append(_text(event, "Output"))
        if "Package" not in event:
            return
        package = self.package(_text(event, "Package"))
        name = _text(event, "Test")
        if action == "output":
            self._output(package, name, _text(event, "Output"))
        elif not name:
            package.failed |= action == "fail"
            if "FailedBuild" in event:
                package.not_built = _text(event, "FailedBuild")
        elif action == "run":
            package.test(name).starts += 1
        elif action in ("pass", "fail", "skip"):
            test = package.test(name)
            test.ends.append(action)
            test.seconds = _seconds(event)

    def _output(self, package: _Package, name: str, text: str) -> None:
        found = _RESULT.match(text)
        if found:
            package.lines.setdefault(found[2], set()).add(found[1])
        (package.test(name).output if name else package.output).append(text)


def read_report(report: bytes | None, canary: str, token: str) -> SuiteReport:
    """What a run says by its report (None: it left none). Never raises on content."""
    if report is None:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
    run = _Run()
    try:
        for folder, stream, errors, status in _sections(read_joined(report, token).files):
            if status > _WORST_STATUS:
                detail = f"go ended with exit status {status} in {folder}: {shortened(errors)}"
                return SuiteReport(RunStatus.NO_REPORT, detail=detail)
            _read_stream(run, folder, stream, errors, status)
    except NotJoined as error:
        return SuiteReport(RunStatus.NO_REPORT, detail=str(error))
    except (ValueError, TypeError, RecursionError) as error:
        detail = f"the report cannot be read: {storable_text(repr(error)[:500])}"
        return SuiteReport(RunStatus.DAMAGED_REPORT, detail=detail)
    return _suite_report(run, canary)


def _sections(files: Any) -> Iterator[tuple[str, bytes, str, int]]:
    """For each module its folder, the stream, what go wrote to its error output, and its exit status."""
    for number in range(0, len(files), 3):
        part = files[number : number + 3]
        if [name for name, _ in part[1:]] != ["errors", "status"] or not part[2][1].strip().isdigit():
            raise NotJoined("the test run ended before its report was complete")
        errors = part[1][1].decode("utf-8", "backslashreplace").strip()
        yield part[0][0], part[0][1], errors, int(part[2][1].strip()[:9])


def _read_stream(run: _Run, folder: str, stream: bytes, errors: str, status: int) -> None:
    silent = True
    for line in stream.split(b"\n"):
        if line.startswith(b"{"):
            silent = False
            event = json.loads(line)
            if not isinstance(event, dict):
                raise TypeError("an event is no object")
            run.add(event)
        elif found := _PLAIN_FAILURE.match(line):
            # Before Go 1.24: a line of its own, and the reason among the errors, below the package's name.
            silent = False
            path = found[1].decode("utf-8", "backslashreplace")
            run.package(path).not_built = path
            run.builds[path] = [_of_package(path, errors)]
    if silent and status:
        run.silent_modules[folder] = shortened(errors)


def _of_package(path: str, errors: str) -> str:
    parts = re.split(r"^# ", errors, flags=re.MULTILINE)
    mine = [part for part in parts if part.split(maxsplit=1)[:1] == [path]]
    return "".join(mine) or errors


def _suite_report(run: _Run, canary: str) -> SuiteReport:
    tests: dict[str, TestResult] = {}
    duplicates = set()
    uncollected = dict(run.silent_modules)
    canaries = []
    for path, package in run.packages.items():
        proof = package.outcome(canary)
        canaries.append(proof)
        if package.not_built is not None:
            uncollected[path] = shortened("".join(run.builds.get(package.not_built, package.output)))
        elif not package.tests and package.failed:
            uncollected[path] = shortened("".join(package.output))
        for name, test in package.tests.items():
            if name == canary:
                continue
            test_id = f"{path}::{name}"
            result = _result(test_id, package, name)
            if result.outcome is TestOutcome.PASSED and proof is not TestOutcome.FAILED:
                uncollected[path] = UNPROVEN
                continue
            tests[test_id] = result
            if test.starts > 1 or len(test.ends) > 1:
                duplicates.add(test_id)
    if uncollected and not tests and TestOutcome.FAILED not in canaries:
        return SuiteReport(RunStatus.BUILD_FAILED, uncollected=uncollected, detail="no package with tests builds")
    return SuiteReport(
        RunStatus.COMPLETED,
        tests=tests,
        uncollected=uncollected,
        duplicates=frozenset(duplicates),
        canary_failed={None, TestOutcome.FAILED} >= set(canaries) and TestOutcome.FAILED in canaries,
    )


def _result(test_id: str, package: _Package, name: str) -> TestResult:
    test = package.tests[name]
    outcome = package.outcome(name) or TestOutcome.ERROR
    message = "" if outcome is TestOutcome.PASSED else shortened("".join(test.output))
    if outcome is TestOutcome.ERROR:
        message = f"{message}\nthe test did not end".lstrip("\n")
    return TestResult(test_id, outcome, test.seconds, message)


def _text(event: _Event, key: str) -> str:
    value = event.get(key, "")
    if not isinstance(value, str):
        raise TypeError(f"{key} is no text")
    return storable_text(value)


def _seconds(event: _Event) -> float:
    value = event.get("Elapsed", 0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("Elapsed is no number")
    return float(value) if 0 <= value < 1e9 else 0.0
