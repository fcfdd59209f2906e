"""Stage `validated_tasks`: what the passes of each candidate show together, as one row for each."""

from dataclasses import dataclass

from evalpipe.config import RepositoryConfig
from evalpipe.lake import Row
from evalpipe.stages.bench import Workbench
from evalpipe.stages.images import images_of
from evalpipe.stages.validating import SIDES, ValidationPass, content_key
from evalpipe.stages.validation_rows import StoredRows, after_seconds, reports_in, summaries, two_sides
from evalpipe.validation import (
    RunName,
    StressFinding,
    TwoSides,
    ValidationClass,
    ValidationFinding,
    judge,
    stress_finding,
)


@dataclass(frozen=True, slots=True)
class _Passes:
    """The passes of a candidate that count: those that ran as it would be run now."""

    rows: dict[ValidationPass, StoredRows]

    @property
    def sides(self) -> dict[str, TwoSides]:
        return {one.value: two_sides(self.rows[one]) for one in SIDES if one in self.rows}

    @property
    def after_seconds(self) -> float:
        """The longest that the after side took in a plain run."""
        return max(after_seconds(self.rows.get(one, [])) for one in SIDES)

    @property
    def suite_files(self) -> list[bytes] | None:
        """The test files that were run; None for the whole suite."""
        for rows in self.rows.values():
            for row in summaries(rows):
                return list(row["suite_files"]) if row["suite_files"] is not None else None
        return None

    def stress(self) -> StressFinding | None:
        rows = self.rows.get(ValidationPass.STRESS)
        first = self.rows.get(ValidationPass.FIRST)
        if rows is None or first is None:
            return None
        not_changed = [text for row in summaries(rows) for text in row["not_changed"]]
        return stress_finding(reports_in(first)[RunName.AFTER], reports_in(rows), not_changed)


def judge_candidates(bench: Workbench, config: RepositoryConfig) -> list[Row]:
    """Classify every kept candidate of a repository, and write one row for each.

    Passes count when they ran as the candidate would be run now: in the present environment and configuration.
    """
    images = images_of(bench, config.name)
    kept = [row for row in bench.lake.rows("candidate_commits", config.name) if row["reason"] == "kept"]
    rows = [_judge(bench, config, candidate, images.get(candidate["candidate_id"])) for candidate in kept]
    bench.lake.write("validated_tasks", rows, config.name)
    return rows


def _judge(bench: Workbench, config: RepositoryConfig, candidate: Row, image: Row | None) -> Row:
    image_digest = str((image["image_digest"] if image else None) or "")
    passes = _Passes(_present(bench, candidate, content_key(config, candidate, image_digest)))
    sides = passes.sides
    if image and not image_digest:
        finding = ValidationFinding(ValidationClass.ENVIRONMENT_FAILED, image["log_tail"] or image["status"])
    else:
        stress = passes.stress() if config.validation.stress else None
        finding = judge(sides, candidate["test_files"], stress=stress, stress_wanted=config.validation.stress)
    return {
        "candidate_id": candidate["candidate_id"],
        "repository": config.name,
        "validation_class": finding.validation_class.value,
        "evidence": finding.evidence,
        "fail_to_pass": finding.fail_to_pass,
        "pass_to_pass": finding.pass_to_pass,
        "quarantined": sorted(finding.quarantined),
        "quarantine_causes": [
            {"test_id": test, "cause": cause.value}
            for test, causes in sorted(finding.quarantined.items())
            for cause in causes
        ],
        "need_network": finding.need_network,
        "missing_names": finding.missing_names,
        "provisional": finding.provisional,
        "validated_on": sorted({one.day for one in sides.values()}),
        "image_digest": image_digest,
        "after_seconds": passes.after_seconds,
        "suite_files": passes.suite_files,
    }


def _present(bench: Workbench, candidate: Row, key: str) -> dict[ValidationPass, StoredRows]:
    found: dict[ValidationPass, StoredRows] = {}
    for one in ValidationPass:
        rows = bench.lake.rows("validation_runs", candidate["candidate_id"], one)
        if rows and rows[0]["content_key"] == key:
            found[one] = rows
    return found
