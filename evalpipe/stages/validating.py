"""Stages `validation_runs` and `validated_tasks`: both sides of a candidate, twice, and what they show."""

import datetime as dt
import hashlib
import json
from enum import StrEnum

from evalpipe.config import RepositoryConfig
from evalpipe.lake import Row
from evalpipe.runners import RunStatus, SuiteReport, TestOutcome, TestResult
from evalpipe.runners.suite import SuiteRun
from evalpipe.sandbox import Limits
from evalpipe.stages.bench import Workbench, runner_for
from evalpipe.stages.images import environment_of, images_of
from evalpipe.validation import (
    ChangeUnderTest,
    Side,
    TwoSides,
    ValidationClass,
    ValidationFinding,
    judge,
    run_side,
)

VALIDATION_VERSION = "1"
"""Part of every content key: raise it when the same run may be stored or judged otherwise."""


class ValidationPass(StrEnum):
    """The two passes, which are to lie on different days."""

    FIRST = "first"
    SECOND = "second"


class SecondPassTooEarly(Exception):
    """The second pass was asked for on the day of the first, or before it."""


def validate_candidate(
    bench: Workbench,
    config: RepositoryConfig,
    candidate: Row,
    validation_pass: ValidationPass,
    *,
    same_day: bool,
    labels: dict[str, str],
) -> bool:
    """Run both sides of `candidate` and write every test's outcome; False when this was done before.

    The second pass waits for another day (UTC) than the first, unless `same_day` allows it: its tasks are then
    provisional. Raises SecondPassTooEarly, EnvironmentNotReady and SandboxError.
    """
    place = (str(candidate["candidate_id"]), validation_pass.value)
    environment = environment_of(bench, config.name, place[0])
    key = _content_key(config, candidate, str(environment["image_digest"]))
    known = bench.lake.rows("validation_runs", *place)
    if known and known[0]["content_key"] == key:
        return False
    if validation_pass is ValidationPass.SECOND:
        _require_another_day(bench, place[0], key, same_day=same_day)
    started = bench.clock()
    change = _change(candidate)
    rows: list[Row] = []
    for side in Side:
        run = run_side(
            bench.sandbox,
            bench.builder.locate(str(environment["image_digest"])),
            runner_for(config.runner),
            bench.mirror(config.name),
            change,
            side,
            validation_limits(config),
            {**labels, "candidate": place[0], "pass": validation_pass.value},
            preparation=config.runner.prepare,
        )
        rows += _rows(candidate, validation_pass, side, run, started, str(environment["image_digest"]), key)
    bench.lake.write("validation_runs", rows, *place)
    return True


def validation_limits(config: RepositoryConfig) -> Limits:
    """The limits of one test run of a repository."""
    limits = config.validation
    return Limits(limits.timeout_s, memory_bytes=limits.memory, cpus=limits.cpus, pids=limits.pids)


def second_pass_due(bench: Workbench, candidate_id: str) -> bool:
    """Whether the first pass is done and lies on an earlier day (UTC) than now."""
    first = bench.lake.rows("validation_runs", candidate_id, ValidationPass.FIRST)
    return bool(first) and _day(first[0]["started_at"]) < _day(bench.clock())


def is_validated(bench: Workbench, config: RepositoryConfig, candidate: Row, validation_pass: ValidationPass) -> bool:
    """Whether a pass has run on the candidate, its environment and its settings as they are now."""
    known = bench.lake.rows("validation_runs", str(candidate["candidate_id"]), validation_pass)
    image = images_of(bench, config.name).get(str(candidate["candidate_id"]))
    if not known or image is None:
        return False
    return bool(known[0]["content_key"] == _content_key(config, candidate, str(image["image_digest"])))


def second_pass_done(bench: Workbench, candidate_id: str) -> bool:
    """Whether the second pass has run in the environment and on the content of the first."""
    passes = [bench.lake.rows("validation_runs", candidate_id, one) for one in ValidationPass]
    return all(passes) and len({rows[0]["content_key"] for rows in passes}) == 1


def judge_candidates(bench: Workbench, config: RepositoryConfig) -> list[Row]:
    """Classify every kept candidate of a repository, and write one row for each.

    Passes count when they ran as the candidate would be run now: in the present environment and configuration.
    """
    images = images_of(bench, config.name)
    rows: list[Row] = []
    for candidate in bench.lake.rows("candidate_commits", config.name):
        if candidate["reason"] != "kept":
            continue
        image = images.get(candidate["candidate_id"])
        image_digest = str((image["image_digest"] if image else None) or "")
        passes: dict[str, TwoSides] = {}
        after_seconds = 0.0
        for validation_pass in ValidationPass:
            runs = bench.lake.rows("validation_runs", candidate["candidate_id"], validation_pass)
            if runs and runs[0]["content_key"] == _content_key(config, candidate, image_digest):
                passes[validation_pass] = _two_sides(runs)
                after = [row["run_seconds"] for row in runs if row["side"] == Side.AFTER]
                after_seconds = max(after_seconds, *after)
        finding = judge(passes, candidate["test_files"])
        if image and not image_digest:
            finding = ValidationFinding(ValidationClass.ENVIRONMENT_FAILED, image["log_tail"] or image["status"])
        rows.append(
            {
                "candidate_id": candidate["candidate_id"],
                "repository": config.name,
                "validation_class": finding.validation_class.value,
                "evidence": finding.evidence,
                "fail_to_pass": finding.fail_to_pass,
                "pass_to_pass": finding.pass_to_pass,
                "quarantined": finding.quarantined,
                "provisional": finding.provisional,
                "validated_on": sorted({sides.day for sides in passes.values()}),
                "image_digest": image_digest,
                "after_seconds": after_seconds,
            }
        )
    bench.lake.write("validated_tasks", rows, config.name)
    return rows


def _require_another_day(bench: Workbench, candidate_id: str, key: str, *, same_day: bool) -> None:
    first = bench.lake.rows("validation_runs", candidate_id, ValidationPass.FIRST)
    if not first or first[0]["content_key"] != key:
        raise SecondPassTooEarly(
            f"{candidate_id}: the second pass comes after the first, which has not run on this environment yet"
        )
    if not same_day and _day(first[0]["started_at"]) >= _day(bench.clock()):
        raise SecondPassTooEarly(
            f"{candidate_id}: the first pass ran on this day ({_day(first[0]['started_at'])}, UTC), so the second is "
            f"due from tomorrow; `--same-day` runs it now and marks the task provisional"
        )


def _content_key(config: RepositoryConfig, candidate: Row, image_digest: str) -> str:
    content = [
        VALIDATION_VERSION,
        candidate["parent"],
        candidate["commit"],
        [path.hex() for path in candidate["test_files"]],
        image_digest,
        config.runner.model_dump(mode="json"),
        # What becomes of a candidate afterwards does not change how it ran.
        config.validation.model_dump(mode="json", exclude={"admit_compile_only"}),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _change(candidate: Row) -> ChangeUnderTest:
    return ChangeUnderTest(
        candidate["candidate_id"], candidate["parent"], candidate["commit"], tuple(candidate["test_files"])
    )


def _day(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).date().isoformat()


_SUMMARY = "summary"
_UNCOLLECTED = "uncollected"
_DUPLICATE = "duplicate"


def _rows(
    candidate: Row,
    validation_pass: ValidationPass,
    side: Side,
    run: SuiteRun,
    started: dt.datetime,
    image_digest: str,
    key: str,
) -> list[Row]:
    """One row for the run itself, one for each test, and one for each file that could not be collected."""
    common = {
        "candidate_id": candidate["candidate_id"],
        "repository": candidate["repository"],
        "validation_pass": validation_pass.value,
        "side": side.value,
        "run_status": run.report.status.value,
        "image_digest": image_digest,
        "started_at": started,
        "run_seconds": run.outcome.duration_s,
        "content_key": key,
    }
    canary = "canary failed" if run.report.canary_failed else "canary did not fail"
    output = (run.outcome.stdout + run.outcome.stderr)[-4000:].decode(errors="replace")
    detail = run.report.detail if run.report.status is RunStatus.COMPLETED else f"{run.report.detail}\n{output}"
    rows: list[Row] = [{**common, "kind": _SUMMARY, "outcome": canary, "message": detail}]
    for result in run.report.tests.values():
        rows.append(
            {
                **common,
                "kind": _DUPLICATE if result.test_id in run.report.duplicates else "test",
                "test_id": result.test_id,
                "outcome": result.outcome.value,
                "seconds": result.seconds,
                "message": result.message,
            }
        )
    for file, message in run.report.uncollected.items():
        rows.append({**common, "kind": _UNCOLLECTED, "test_id": file, "message": message})
    return rows


def _two_sides(rows: list[dict[str, object]]) -> TwoSides:
    started = rows[0]["started_at"]
    assert isinstance(started, dt.datetime)
    return TwoSides(_report(rows, Side.BEFORE), _report(rows, Side.AFTER), _day(started))


def _report(rows: list[dict[str, object]], side: Side) -> SuiteReport:
    mine = [row for row in rows if row["side"] == side]
    (summary,) = (row for row in mine if row["kind"] == _SUMMARY)
    tests = {
        str(row["test_id"]): TestResult(
            str(row["test_id"]), TestOutcome(str(row["outcome"])), float(str(row["seconds"])), str(row["message"])
        )
        for row in mine
        if row["kind"] in ("test", _DUPLICATE)
    }
    return SuiteReport(
        status=RunStatus(str(summary["run_status"])),
        tests=tests,
        uncollected={str(row["test_id"]): str(row["message"]) for row in mine if row["kind"] == _UNCOLLECTED},
        duplicates=frozenset(str(row["test_id"]) for row in mine if row["kind"] == _DUPLICATE),
        canary_failed=summary["outcome"] == "canary failed",
        detail=str(summary["message"]),
    )
