"""Reads the JSON lines of `inside/evalpipe_report.py`.

The tested code can write there too: the seal tells its lines, and nothing else is trusted either.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult, storable_text
from evalpipe.runners.seal import open_sealed

_INTERNAL_ERROR, _USAGE_ERROR = 3, 4  # pytest.ExitCode
_WORST_FIRST = (
    TestOutcome.FAILED,
    TestOutcome.ERROR,
    TestOutcome.SKIPPED,
    TestOutcome.XFAILED,
    TestOutcome.XPASSED,
    TestOutcome.PASSED,
)


@dataclass(frozen=True, slots=True)
class _Phase:
    """What pytest logged of one phase of a test (setup, call, teardown), or of one sub-test within its call."""

    when: str
    outcome: str
    xfail: bool
    subtest: bool
    seconds: float
    message: str

    def says(self) -> TestOutcome | None:
        """The outcome that this phase alone gives its test; None when it leaves it to the others."""
        if self.outcome == "passed":
            if self.xfail:
                return TestOutcome.XPASSED
            return TestOutcome.PASSED if self.when == "call" and not self.subtest else None
        if self.outcome == "skipped":
            if self.xfail:
                return TestOutcome.XFAILED
            return None if self.subtest else TestOutcome.SKIPPED
        # Also what plugins add, such as the `rerun` of pytest-rerunfailures: a failure that was tried again.
        return TestOutcome.FAILED if self.when == "call" else TestOutcome.ERROR


@dataclass(slots=True)
class _Records:
    phases: dict[str, list[_Phase]] = field(default_factory=dict)
    uncollected: dict[str, str] = field(default_factory=dict)
    collected: Counter[str] = field(default_factory=Counter)
    exit_status: int | None = None
    nothing_imports: bool = False

    def add(self, record: dict[str, Any]) -> None:
        if self.exit_status is not None:
            raise ValueError("the report goes on after its end")
        match record["kind"]:
            case "phase":
                self.phases.setdefault(_text(record["id"]), []).append(_phase(record))
            case "uncollected":
                self.uncollected[_text(record["id"])] = _text(record["message"])
            case "conftest":
                self.uncollected[_text(record["id"])] = _text(record["message"])
                self.nothing_imports = _typed(record["missing"], bool)
            case "collected":
                self.collected.update(map(_text, record["ids"]))
            case "end":
                self.exit_status = _typed(record["exit_status"], int)
            case other:
                raise ValueError(f"unknown record {other!r}")

    def duplicates(self) -> frozenset[str]:
        """Ids that stand for more than one test, or whose test ran more than once."""
        ran_again = {
            test_id
            for test_id, phases in self.phases.items()
            if max(Counter(phase.when for phase in phases if not phase.subtest).values(), default=0) > 1
        }
        return frozenset(ran_again | {test_id for test_id, count in self.collected.items() if count > 1})


def read_report(report: bytes | None, canary_name: str, key: str) -> SuiteReport:
    """What a run says by its report (None: it left none). Never raises on content.

    The worst phase of a test decides, and a pass needs a call that passed. A report without its last record, or
    in which the canary, always the last test, could not run, is none: the run stopped or broke before its end.
    """
    if not report:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
    records = _Records()
    try:
        for line in open_sealed(report, key):
            records.add(_typed(json.loads(line), dict))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        reason = storable_text(repr(error)[:500])
        return SuiteReport(RunStatus.DAMAGED_REPORT, detail=f"the report cannot be read: {reason}")
    if records.exit_status is None:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run ended before its report was complete")
    if records.exit_status == _USAGE_ERROR and records.nothing_imports:
        (conftest,) = records.uncollected
        return SuiteReport(
            RunStatus.BUILD_FAILED,
            uncollected=records.uncollected,
            detail=f"{conftest} cannot be imported, so that no test is collected",
        )
    if records.exit_status in (_INTERNAL_ERROR, _USAGE_ERROR):
        return SuiteReport(
            RunStatus.NO_REPORT,
            uncollected=records.uncollected,
            detail=f"pytest ended with an internal or usage error (exit status {records.exit_status})",
        )
    canary_id = next((test_id for test_id in records.phases if test_id.endswith(f"::{canary_name}")), "")
    canary = _result(canary_id, records.phases.pop(canary_id, []))
    if canary.outcome is TestOutcome.ERROR:
        reason = canary.message.strip().rpartition("\n")[2]
        return SuiteReport(
            RunStatus.NO_REPORT,
            uncollected=records.uncollected,
            detail=f"the last test, which must fail, could not run (exit status {records.exit_status}): {reason}",
        )
    return SuiteReport(
        RunStatus.COMPLETED,
        tests={test_id: _result(test_id, phases) for test_id, phases in records.phases.items()},
        uncollected=records.uncollected,
        duplicates=records.duplicates(),
        canary_failed=canary.outcome is TestOutcome.FAILED,
    )


def _result(test_id: str, phases: Sequence[_Phase]) -> TestResult:
    # A test that sets the clock back makes pytest measure less than nothing.
    seconds = max(0.0, sum(phase.seconds for phase in phases))
    for outcome in _WORST_FIRST:
        for phase in phases:
            if phase.says() is outcome:
                return TestResult(test_id, outcome, seconds, phase.message)
    return TestResult(test_id, TestOutcome.ERROR, seconds, "the test was never called")


def _phase(record: dict[str, Any]) -> _Phase:
    seconds = _typed(record["seconds"], int, float)
    if not math.isfinite(seconds):
        raise ValueError("a duration is not a number")
    return _Phase(
        when=_text(record["when"]),
        outcome=_text(record["outcome"]),
        xfail=_typed(record["xfail"], bool),
        subtest=_typed(record["subtest"], bool),
        seconds=float(seconds),
        message=_text(record["message"]),
    )


def _text(value: object) -> str:
    return storable_text(str(_typed(value, str)))


def _typed(value: object, *kinds: type) -> Any:
    if not isinstance(value, kinds):
        raise TypeError(f"found {type(value).__name__} in the place of {kinds[0].__name__}")
    return value
