"""Runs of a suite as rows of `validation_runs`, and back.

One row stands for the run itself, one for each test, one for each file that could not be collected.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalpipe.lake import Row
from evalpipe.runners import RunStatus, SuiteReport, TestOutcome, TestResult
from evalpipe.runners.suite import SuiteRun
from evalpipe.validation import RunConditions, RunName, TwoSides

_SUMMARY = "summary"
_TEST = "test"
_UNCOLLECTED = "uncollected"
_DUPLICATE = "duplicate"
_OUTPUT_BYTES = 4000

StoredRows = Sequence[Mapping[str, Any]]


def rows_of_run(
    common: Row,
    conditions: RunConditions,
    run: SuiteRun,
    started: dt.datetime,
    test_files: tuple[bytes, ...] | None,
) -> list[Row]:
    """The rows of one run of the whole suite or of `test_files`; `common` are the columns that its pass shares."""
    shared: Row = {
        **common,
        "suite_run": conditions.name.value,
        "side": conditions.side.value,
        "run_status": run.report.status.value,
        "started_at": started,
        "run_seconds": run.outcome.duration_s,
    }
    canary = "canary failed" if run.report.canary_failed else "canary did not fail"
    output = (run.outcome.stdout + run.outcome.stderr)[-_OUTPUT_BYTES:].decode(errors="replace")
    detail = run.report.detail if run.report.status is RunStatus.COMPLETED else f"{run.report.detail}\n{output}"
    summary: Row = {
        "kind": _SUMMARY,
        "outcome": canary,
        "message": detail,
        "conditions": list(conditions.changed),
        "not_changed": list(conditions.not_changed),
        "suite_files": None if test_files is None else list(test_files),
    }
    rows: list[Row] = [{**shared, **summary}]
    for result in run.report.tests.values():
        rows.append(
            {
                **shared,
                "kind": _DUPLICATE if result.test_id in run.report.duplicates else _TEST,
                "test_id": result.test_id,
                "outcome": result.outcome.value,
                "seconds": result.seconds,
                "message": result.message,
            }
        )
    for file, message in run.report.uncollected.items():
        rows.append({**shared, "kind": _UNCOLLECTED, "test_id": file, "message": message})
    return rows


def reports_in(rows: StoredRows) -> dict[RunName, SuiteReport]:
    """The report of each run that `rows` hold."""
    return {RunName(summary["suite_run"]): _report(rows, summary) for summary in summaries(rows)}


def two_sides(rows: StoredRows) -> TwoSides:
    """A first or second pass, whose runs are all in `rows`."""
    reports = reports_in(rows)
    return TwoSides(reports[RunName.BEFORE], reports[RunName.AFTER], last_day(rows), reports.get(RunName.WITH_NETWORK))


def summaries(rows: StoredRows) -> Iterator[Mapping[str, Any]]:
    """The row of each run itself."""
    return (row for row in rows if row["kind"] == _SUMMARY)


def after_seconds(rows: StoredRows) -> float:
    """How long the after side took in a plain run; 0 where there is none in `rows`."""
    return max((row["run_seconds"] for row in summaries(rows) if row["suite_run"] == RunName.AFTER), default=0.0)


def is_test(row: Mapping[str, Any]) -> bool:
    """Whether a row is that of a test."""
    return row["kind"] in (_TEST, _DUPLICATE)


def last_day(rows: StoredRows) -> str:
    """The last day (UTC, ISO) on which one of the runs in `rows` began: a pass that was broken off may have several."""
    return day_of(max(row["started_at"] for row in summaries(rows)))


def day_of(moment: dt.datetime) -> str:
    """The day of a moment in UTC, in ISO form."""
    return moment.astimezone(dt.UTC).date().isoformat()


def _report(rows: StoredRows, summary: Mapping[str, Any]) -> SuiteReport:
    mine = [row for row in rows if row["suite_run"] == summary["suite_run"]]
    return SuiteReport(
        status=RunStatus(summary["run_status"]),
        tests={
            row["test_id"]: TestResult(row["test_id"], TestOutcome(row["outcome"]), row["seconds"], row["message"])
            for row in mine
            if is_test(row)
        },
        uncollected={row["test_id"]: row["message"] for row in mine if row["kind"] == _UNCOLLECTED},
        duplicates=frozenset(row["test_id"] for row in mine if row["kind"] == _DUPLICATE),
        canary_failed=summary["outcome"] == "canary failed",
        detail=summary["message"],
    )
