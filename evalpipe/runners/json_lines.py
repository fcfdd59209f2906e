"""Reads the JSON lines that evalpipe's own programs and reporters leave, one record a line.

    {"kind": "test", "id": ID, "outcome": TestOutcome, "seconds": s, "message": text}   one run of one test
    {"kind": "fault", "id": ID, "outcome": TestOutcome, "message": text}                what else counts against it
    {"kind": "uncollected", "file": path, "message": text}                              a file whose tests are not known
    {"kind": "end"}                                                                     the run came to its end

An ID is a text, or the list of a file and the titles that lead to the test. A second `test` with the same id is a
duplicate, a fault is none: a failed hook, an attempt that was repeated. The tested code can write there too, so nothing
is trusted.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult, storable_text

SEPARATOR = "::"
_WORST_FIRST = (
    TestOutcome.FAILED,
    TestOutcome.ERROR,
    TestOutcome.SKIPPED,
    TestOutcome.XFAILED,
    TestOutcome.XPASSED,
    TestOutcome.PASSED,
)
_AMBIGUOUS = re.compile(r"\A:|::|:\Z|\\:")


def joined_id(parts: Sequence[str]) -> str:
    r"""One id of a file and the titles that lead to a test, joined by `::`; different parts never give the same id.

    A title that `::` could be read into has its backslashes and colons escaped (`a::b` becomes `a\:\:b`); every other
    title stands as it is, blanks and line feeds included.
    """
    return SEPARATOR.join(_unambiguous(part) for part in parts)


def _unambiguous(title: str) -> str:
    return re.sub(r"[\\:]", r"\\\g<0>", title) if _AMBIGUOUS.search(title) else title


@dataclass(slots=True)
class _Records:
    canary: str
    found: dict[str, list[TestResult]] = field(default_factory=dict)
    canaries: dict[str, list[TestResult]] = field(default_factory=dict)
    runs: Counter[str] = field(default_factory=Counter)
    uncollected: dict[str, str] = field(default_factory=dict)
    ended: bool = False

    def add(self, record: dict[str, Any]) -> None:
        if self.ended:
            raise ValueError("the report goes on after its end")
        match record["kind"]:
            case "test":
                self.runs[self._add_result(record, _seconds(record["seconds"]))] += 1
            case "fault":
                self._add_result(record, 0.0)
            case "uncollected":
                file, message = _text(record["file"]), _text(record["message"])
                self.uncollected[file] = "\n".join(filter(None, (self.uncollected.get(file), message)))
            case "end":
                self.ended = True
            case other:
                raise ValueError(f"unknown record {other!r}")

    def _add_result(self, record: dict[str, Any], seconds: float) -> str:
        named = _typed(record["id"], str, list)
        parts = [named] if isinstance(named, str) else [str(_typed(part, str)) for part in named]
        test_id = storable_text(parts[0] if len(parts) == 1 else joined_id(parts))
        result = TestResult(test_id, TestOutcome(_text(record["outcome"])), seconds, _text(record["message"]))
        found = self.canaries if parts[-1] == self.canary else self.found
        found.setdefault(test_id, []).append(result)
        return test_id


def read_json_lines(report: bytes | None, canary: str) -> SuiteReport:
    """What a run says by its report (None: it left none). Never raises on content.

    The worst of what is said of a test decides. A report without its last record, or in which the canary, a test
    whose id or last title is `canary`, did not run, is none. There may be several canaries; each must have failed.
    """
    if not report:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
    records = _Records(canary)
    try:
        for line in report.split(b"\n"):
            if line:
                records.add(_typed(json.loads(line), dict))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        reason = storable_text(repr(error)[:500])
        return SuiteReport(RunStatus.DAMAGED_REPORT, detail=f"the report cannot be read: {reason}")
    if not records.ended:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run ended before its report was complete")
    uncollected = {file: message for file, message in records.uncollected.items() if canary not in file}
    canaries = [_worst(test_id, results) for test_id, results in records.canaries.items()]
    if not canaries or any(found.outcome is TestOutcome.ERROR for found in canaries):
        return SuiteReport(
            RunStatus.NO_REPORT, uncollected=uncollected, detail=_canary_fault(canary, canaries, records.uncollected)
        )
    return SuiteReport(
        RunStatus.COMPLETED,
        tests={test_id: _worst(test_id, results) for test_id, results in records.found.items()},
        uncollected=uncollected,
        duplicates=frozenset(test_id for test_id, count in records.runs.items() if count > 1) & records.found.keys(),
        canary_failed=all(found.outcome is TestOutcome.FAILED for found in canaries),
    )


def _canary_fault(canary: str, canaries: Sequence[TestResult], uncollected: Mapping[str, str]) -> str:
    messages = [found.message for found in canaries if found.outcome is TestOutcome.ERROR]
    messages += [message for file, message in uncollected.items() if canary in file]
    reason = messages[0].strip()[:500] if messages else "the runner did not find it, or its arguments leave it out"
    return f"the test that must fail did not run: {reason}"


def _worst(test_id: str, results: Sequence[TestResult]) -> TestResult:
    worst = min(results, key=lambda result: _WORST_FIRST.index(result.outcome))
    return TestResult(test_id, worst.outcome, sum(result.seconds for result in results), worst.message)


def _seconds(value: object) -> float:
    seconds = float(_typed(value, int, float))
    if not math.isfinite(seconds):
        raise ValueError("a duration is not a number")
    # A test that sets the clock back makes its runner measure less than nothing.
    return max(0.0, seconds)


def _text(value: object) -> str:
    return storable_text(str(_typed(value, str)))


def _typed(value: object, *kinds: type) -> Any:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(f"found {type(value).__name__} in the place of {kinds[0].__name__}")
    return value
