"""What assets tell the Dagster UI of each partition: what a person asks first."""

from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from evalpipe.lake import Lake, Row

Metadata = Mapping[str, dg.MetadataValue]

_SHOWN = 5
"""Unmet tests of a verdict that are named: an event is kept for ever, and the report has them all."""
_TEXT = 300
_NUMBERS = {
    "seconds": "attempt_seconds",
    "patch_bytes": "patch_bytes",
    "files_changed": "files_changed",
    "model_calls": "model_calls",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cost_usd": "cost_usd",
    "rate_limit_wait_s": "rate_limit_wait_s",
}


def attempt_metadata(lake: Lake, row: Row) -> Metadata:
    """Of a row of agent_runs: how the attempt ended, what it cost, and where its patch and transcript lie."""
    found: dict[str, dg.MetadataValue] = {"outcome": dg.MetadataValue.text(row["outcome"])}
    found |= {name: _number(row[column]) for name, column in _NUMBERS.items() if row.get(column) is not None}
    for name in ("patch", "transcript"):
        if digest := row.get(f"{name}_sha256"):
            found[name] = dg.MetadataValue.path(str(lake.blobs.path(digest)))
    return found


def verdict_metadata(report: Path, row: Row) -> Metadata:
    """Of a row of graded_results: the verdict, what it rests on, and where the report shows the attempt.

    `report` is the sweep's HTML file; it has the attempt once it is written after this.
    """
    found: dict[str, dg.MetadataValue] = {
        "verdict": dg.MetadataValue.text(row["verdict"]),
        "resolved": dg.MetadataValue.bool(row["resolved"]),
        "fail_to_pass": dg.MetadataValue.text(f"{row['fail_to_pass_passed']}/{row['fail_to_pass_total']}"),
        "pass_to_pass": dg.MetadataValue.text(f"{row['pass_to_pass_passed']}/{row['pass_to_pass_total']}"),
        "integrity": dg.MetadataValue.text(", ".join([row["integrity"], *row["integrity_reasons"]])),
        "report": dg.MetadataValue.path(f"{report}#{row['attempt_id']}"),
    }
    if row["detail"]:
        found["detail"] = dg.MetadataValue.text(row["detail"][:_TEXT])
    if unmet := row["unmet_tests"]:
        shown = {test["test_id"][:_TEXT]: test["outcome"] for test in unmet[:_SHOWN]}
        found["unmet_tests"] = dg.MetadataValue.json({"number": len(unmet), "first": shown})
    return found


def series(prefix: str, counts: Mapping[str, float]) -> dict[str, float]:
    """Numbers under names that the UI plots over time, one for each key of `counts`."""
    return {f"{prefix}_{key}".replace("-", "_").replace(".", "_").replace(" ", "_"): n for key, n in counts.items()}


def _number(value: float) -> dg.MetadataValue:
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(value)
