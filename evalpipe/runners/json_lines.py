"""Reads the JSON lines that evalpipe's own programs and reporters leave, one record a line.

    {"kind": "test", "id": ID, "outcome": TestOutcome, "seconds": s, "message": text}   one run of one test
    {"kind": "fault", "id": ID, "outcome": TestOutcome, "message": text}                what else counts against it
    {"kind": "uncollected", "file": path, "message": text}                              a file whose tests are not known
    {"kind": "end"}                                                                     the run came to its end

An ID is a text, or the list of a file and the titles that lead to the test. A second `test` with the same id is a
duplicate, a fault is none: a failed hook, an attempt that was repeated. The tested code can write into the report too:
the seal tells its lines, and nothing else is trusted either.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult, storable_text
from evalpipe.runners.results import Results
from evalpipe.runners.seal import open_sealed

SEPARATOR = "::"
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
    results: Results = field(default_factory=Results)
    canaries: Results = field(default_factory=Results)
    uncollected: dict[str, str] = field(default_factory=dict)
    ended: bool = False

    def add(self, record: dict[str, Any]) -> None:
        if self.ended:
            raise ValueError("the report goes on after its end")
        match record["kind"]:
            case "test":
                results, result = self._result(record, _seconds(record["seconds"]))
                results.add(result)
            case "fault":
                results, result = self._result(record, 0.0)
                results.blame(result)
            case "uncollected":
                file, message = _text(record["file"]), _text(record["message"])
                self.uncollected[file] = "\n".join(filter(None, (self.uncollected.get(file), message)))
            case "end":
                self.ended = True
            case other:
                raise ValueError(f"unknown record {other!r}")

    def _result(self, record: dict[str, Any], seconds: float) -> tuple[Results, TestResult]:
        named = _typed(record["id"], str, list)
        parts = [named] if isinstance(named, str) else [str(_typed(part, str)) for part in named]
        test_id = storable_text(named if isinstance(named, str) else joined_id(parts))
        result = TestResult(test_id, TestOutcome(_text(record["outcome"])), seconds, _text(record["message"]))
        return self.canaries if parts[-1] == self.canary else self.results, result


def read_json_lines(report: bytes | None, canary: str, key: str) -> SuiteReport:
    """What a run says by its report (None: it left none), sealed with `key`. Never raises on content.

    The worst of what is said of a test decides. A report without its last record, or in which the canary, a test
    whose id or last title is `canary`, did not run, is none. There may be several canaries; each must have failed.
    Where no test ran, and not even the file of the canary loads, nothing builds.
    """
    if not report:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
    records = _Records(canary)
    try:
        for line in open_sealed(report, key):
            records.add(_typed(json.loads(line), dict))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        reason = storable_text(repr(error)[:500])
        return SuiteReport(RunStatus.DAMAGED_REPORT, detail=f"the report cannot be read: {reason}")
    if not records.ended:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run ended before its report was complete")
    uncollected = {file: message for file, message in records.uncollected.items() if canary not in file}
    canaries = list(records.canaries.tests.values())
    if not canaries or any(found.outcome is TestOutcome.ERROR for found in canaries):
        nothing_loads = len(uncollected) < len(records.uncollected) and not records.results.tests and not canaries
        return SuiteReport(
            RunStatus.BUILD_FAILED if nothing_loads else RunStatus.NO_REPORT,
            uncollected=uncollected,
            detail=_canary_fault(canary, canaries, records.uncollected),
        )
    return SuiteReport(
        RunStatus.COMPLETED,
        tests=dict(records.results.tests),
        uncollected=uncollected,
        duplicates=records.results.duplicates,
        canary_failed=all(found.outcome is TestOutcome.FAILED for found in canaries),
    )


def _canary_fault(canary: str, canaries: Sequence[TestResult], uncollected: Mapping[str, str]) -> str:
    messages = [found.message for found in canaries if found.outcome is TestOutcome.ERROR]
    messages += [message for file, message in uncollected.items() if canary in file]
    reason = messages[0].strip()[:500] if messages else "the runner did not find it, or its arguments leave it out"
    return f"the test that must fail did not run: {reason}"


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
