"""Stage `validation_runs`: a candidate's passes, each done once: two on different days, and one under stress."""

import hashlib
import json
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from evalpipe.config import RepositoryConfig
from evalpipe.lake import Row
from evalpipe.runners import SuiteReport
from evalpipe.sandbox import FileEntry, Limits
from evalpipe.stages.bench import Workbench, runner_for
from evalpipe.stages.images import environment_of, images_of
from evalpipe.stages.pass_runs import PassPlace, PassRuns
from evalpipe.stages.suite_scope import scope_of, wants_affected
from evalpipe.stages.validation_rows import after_seconds, day_of, last_day, two_sides
from evalpipe.validation import (
    AFTER,
    BEFORE,
    WITH_NETWORK,
    ChangeUnderTest,
    RunName,
    Side,
    Suite,
    TwoSides,
    ValidationClass,
    judge_pass,
    needs_separate_runs,
    separate_runs,
    side_files,
    stress_plan,
    worth_a_comparison,
)

VALIDATION_VERSION = "2"
"""Part of every content key: raise it when the same run may be stored or judged otherwise."""


class ValidationPass(StrEnum):
    """Two passes over both sides, which are to lie on different days, and one over the after side under stress."""

    FIRST = "first"
    SECOND = "second"
    STRESS = "stress"


STRESS_TIMEOUT_FACTOR = 10
STRESS_TIMEOUT_S = 60.0
"""What a run under stress may take at least, and then so many times what the plain run took."""

SIDES = (ValidationPass.FIRST, ValidationPass.SECOND)
"""The passes that run both sides."""


class FirstPassMissing(Exception):
    """Another pass was asked for before the first, or the first ran on what is not there any more."""


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
    """Run a pass over `candidate` and write every test's outcome; False when this was done before, or is not wanted.

    The second pass waits for another day (UTC) than the first, unless `same_day` allows it: its tasks are then
    provisional. A stress pass is wanted of what looks valid in the first. Raises FirstPassMissing,
    SecondPassTooEarly, EnvironmentNotReady and SandboxError.
    """
    candidate_id = str(candidate["candidate_id"])
    environment = environment_of(bench, config.name, candidate_id)
    image_digest = str(environment["image_digest"])
    key = content_key(config, candidate, image_digest)
    if _stored(bench, candidate_id, validation_pass).content_key == key:
        return False
    labels = {**labels, "candidate": candidate_id, "pass": validation_pass.value}
    runs = _pass_runs(
        bench, config, candidate, image_digest, PassPlace(candidate_id, validation_pass.value, key), labels
    )
    if validation_pass is not ValidationPass.STRESS:
        if validation_pass is ValidationPass.SECOND:
            _require_first(bench, candidate_id, key)
            if not same_day:
                _require_another_day(bench, candidate_id)
        runs.finish(_run_sides(runs))
        return True
    if not _is_stressed(config, _require_first(bench, candidate_id, key)):
        return False
    first = bench.lake.rows("validation_runs", candidate_id, ValidationPass.FIRST)
    _run_stress(runs, two_sides(first).after, after_seconds(first))
    runs.finish(None)
    return True


def _pass_runs(
    bench: Workbench,
    config: RepositoryConfig,
    candidate: Row,
    image_digest: str,
    place: PassPlace,
    labels: dict[str, str],
) -> PassRuns:
    change = ChangeUnderTest(
        place.candidate_id, candidate["parent"], candidate["commit"], tuple(candidate["test_files"])
    )
    files: dict[Side, list[FileEntry]] = {}
    test_files: tuple[bytes, ...] | None = None
    if wants_affected(config, place.candidate_id):
        files[Side.AFTER] = side_files(bench.mirror(config.name), change, Side.AFTER)
        test_files = scope_of(bench, config, candidate, files[Side.AFTER])
    suite = Suite(
        bench.builder.locate(image_digest),
        validation_limits(config),
        runner_for(config.runner),
        config.runner.prepare,
        test_files,
    )
    return PassRuns(bench, config, change, suite, place, image_digest, labels, files)


def validation_limits(config: RepositoryConfig) -> Limits:
    """The limits of one test run of a repository."""
    limits = config.validation
    return Limits(limits.timeout_s, memory_bytes=limits.memory, cpus=limits.cpus, pids=limits.pids)


def content_key(config: RepositoryConfig, candidate: Row, image_digest: str) -> str:
    """SHA-256 (hex) of all that decides how a candidate runs: its trees, environment, runner and limits."""
    content = [
        VALIDATION_VERSION,
        candidate["parent"],
        candidate["commit"],
        [path.hex() for path in candidate["test_files"]],
        image_digest,
        config.runner.model_dump(mode="json"),
        # What becomes of a candidate afterwards does not change how it ran.
        config.validation.model_dump(mode="json", exclude={"admit_compile_only", "stress"}),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def second_pass_due(bench: Workbench, candidate_id: str) -> bool:
    """Whether the first pass is done and lies on an earlier day (UTC) than now."""
    first = bench.lake.rows("validation_runs", candidate_id, ValidationPass.FIRST)
    return bool(first) and last_day(first) < day_of(bench.clock())


def is_validated(
    bench: Workbench,
    config: RepositoryConfig,
    candidate: Row,
    validation_pass: ValidationPass,
    *,
    image: Row | None = None,
) -> bool:
    """Whether a pass has run on the candidate, its image and its settings as they are now, or is not wanted.

    `image` is the row of the candidate's environment, for callers that ask of many candidates.
    """
    candidate_id = str(candidate["candidate_id"])
    image = image or images_of(bench, config.name).get(candidate_id)
    if image is None:
        return False
    key = content_key(config, candidate, str(image["image_digest"]))
    if _stored(bench, candidate_id, validation_pass).content_key == key:
        return True
    if validation_pass is not ValidationPass.STRESS:
        return False
    first = _stored(bench, candidate_id, ValidationPass.FIRST)
    return first.content_key == key and not _is_stressed(config, first)


def second_pass_done(bench: Workbench, candidate_id: str) -> bool:
    """Whether the second pass has run in the environment and on the content of the first."""
    keys = {_stored(bench, candidate_id, one).content_key for one in SIDES}
    return len(keys) == 1 and None not in keys


def stress_pass_due(bench: Workbench, config: RepositoryConfig, candidate_id: str) -> bool:
    """Whether a stress pass is wanted of a candidate, and has not run on the content of its first pass."""
    first = _stored(bench, candidate_id, ValidationPass.FIRST)
    stress = _stored(bench, candidate_id, ValidationPass.STRESS)
    return _is_stressed(config, first) and stress.content_key != first.content_key


def _run_sides(runs: PassRuns) -> ValidationClass:
    """Both sides, and the after side once more with the network when the change's own tests fail after it.

    Returns what the pass alone says.
    """
    reports = runs.run([BEFORE, AFTER])
    sides = TwoSides(reports[RunName.BEFORE], reports[RunName.AFTER], day="")
    if worth_a_comparison(sides, runs.change.test_files):
        sides = replace(sides, with_network=runs.run([WITH_NETWORK])[RunName.WITH_NETWORK])
    return judge_pass(sides, runs.change.test_files).validation_class


def _run_stress(runs: PassRuns, normal: SuiteReport, seconds: float) -> None:
    """All stress at once and a year alone; each part alone when a test ended otherwise than in the plain run.

    The plain run took `seconds`: one that takes far longer hangs, as programs may when their clock is moved.
    """
    limits = runs.suite.limits
    most = min(limits.timeout_s, max(STRESS_TIMEOUT_S, STRESS_TIMEOUT_FACTOR * seconds))
    runs.suite = replace(runs.suite, limits=replace(limits, timeout_s=most))
    runner = runs.suite.runner
    plan = stress_plan(runs.look_into_box(), runner.name, can_shuffle=runner.can_shuffle)
    reports = runs.run(plan.first)
    if needs_separate_runs(normal, reports):
        runs.run(separate_runs(plan, reports))


class _Stored(NamedTuple):
    """What tells a stored pass: the content key under which it ran, and what it says alone."""

    content_key: str | None = None
    pass_class: str | None = None


def _stored(bench: Workbench, candidate_id: str, validation_pass: ValidationPass) -> _Stored:
    columns = ("content_key", "pass_class")
    for chunk in bench.lake.chunks("validation_runs", candidate_id, validation_pass, columns=columns):
        return _Stored(**chunk.slice(0, 1).to_pylist()[0])
    return _Stored()


def _is_stressed(config: RepositoryConfig, first: _Stored) -> bool:
    return config.validation.stress and first.pass_class == ValidationClass.VALID


def _require_first(bench: Workbench, candidate_id: str, key: str) -> _Stored:
    first = _stored(bench, candidate_id, ValidationPass.FIRST)
    if first.content_key != key:
        raise FirstPassMissing(
            f"{candidate_id}: this pass comes after the first, which has not run as it would run now"
        )
    return first


def _require_another_day(bench: Workbench, candidate_id: str) -> None:
    day = last_day(bench.lake.rows("validation_runs", candidate_id, ValidationPass.FIRST))
    if day >= day_of(bench.clock()):
        raise SecondPassTooEarly(
            f"{candidate_id}: the first pass ran on this day ({day}, UTC), so the second is due from tomorrow; "
            f"`--same-day` runs it now and marks the task provisional"
        )
