"""Reads CTRF, the Common Test Report Format: one JSON document (ctrf.io, schema of versions 0.0.x and 0.x)."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalpipe.runners.report import TestOutcome, storable_text
from evalpipe.runners.results import shortened

_OUTCOMES: Mapping[str, TestOutcome] = {
    "passed": TestOutcome.PASSED,
    "failed": TestOutcome.FAILED,
    "skipped": TestOutcome.SKIPPED,
    "pending": TestOutcome.SKIPPED,
    # Whatever the tool had no word for.
    "other": TestOutcome.ERROR,
}


class DamagedCtrf(ValueError):
    """This is not CTRF; the text says why."""


@dataclass(frozen=True, slots=True)
class CtrfTest:
    """One test. `suites` are the groups around it, the outermost first; `file` is empty where the report names none.

    A test that passed only when it was run again, or in which a step failed, counts as failed, with the message that
    says so.
    """

    file: str
    suites: tuple[str, ...]
    name: str
    outcome: TestOutcome
    seconds: float = 0.0
    message: str = ""


def read_ctrf(content: bytes) -> list[CtrfTest]:
    """The tests of one document in its order. Raises DamagedCtrf."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedCtrf(f"not JSON: {error}") from error
    results = _typed(_typed(document, dict, "the document").get("results"), dict, "results")
    return [_test(_typed(test, dict, "a test")) for test in _typed(results.get("tests"), list, "results.tests")]


def _test(test: dict[str, Any]) -> CtrfTest:
    status = _typed(test.get("status"), str, "the status of a test")
    if status not in _OUTCOMES:
        raise DamagedCtrf(f"{storable_text(status[:50])!r} is not the status of a test")
    outcome = _OUTCOMES[status]
    message = "\n".join(filter(None, (_text(test, "message"), _text(test, "trace"))))
    if outcome is TestOutcome.PASSED and _was_retried(test):
        outcome, message = TestOutcome.FAILED, "it passed only when it was tried again"
    elif outcome is TestOutcome.PASSED and (failed := _failed_step(test)) is not None:
        outcome, message = TestOutcome.FAILED, f"a step of it failed: {failed}"
    return CtrfTest(
        file=_text(test, "filePath"),
        suites=_suites(test.get("suite")),
        name=storable_text(_typed(test.get("name"), str, "the name of a test")),
        outcome=outcome,
        seconds=_seconds(test.get("duration")),
        message=shortened(message),
    )


def _was_retried(test: Mapping[str, Any]) -> bool:
    """By any of the three ways in which the versions of the schema say so."""
    retries, attempts = test.get("retries"), test.get("retryAttempts")
    counted = isinstance(retries, int | float) and retries > 0
    return test.get("flaky") is True or counted or (isinstance(attempts, list) and bool(attempts))


def _failed_step(test: Mapping[str, Any]) -> str | None:
    """The name of the first step that failed."""
    steps = test.get("steps")
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and _OUTCOMES.get(str(step.get("status"))) in (TestOutcome.FAILED, TestOutcome.ERROR):
            return storable_text(str(step.get("name")))
    return None


def _suites(value: object) -> tuple[str, ...]:
    """A list in newer reports, one text in older ones."""
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else _typed(value, list, "the suite of a test")
    return tuple(storable_text(_typed(name, str, "the suite of a test")) for name in names)


def _text(test: Mapping[str, Any], name: str) -> str:
    value = test.get(name)
    return "" if value is None else storable_text(_typed(value, str, f"the {name} of a test"))


def _seconds(value: object) -> float:
    """Of milliseconds; a duration that is none is no reason to refuse a report."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        seconds = float(value) / 1000
    except OverflowError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _typed(value: object, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise DamagedCtrf(f"{what} is {type(value).__name__}, and not {kind.__name__}")
    return value
