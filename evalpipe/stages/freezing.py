"""Freezing: the valid candidates of the workspace's repositories become a task set, all of them or a sample.

Every candidate that does not is told with its reason: a set that leaves out what is inconvenient says nothing.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote_from_bytes

from evalpipe.config import RepositoryConfig
from evalpipe.history import ScratchObjects
from evalpipe.lake import Row, write_atomically
from evalpipe.stages.bench import Workbench
from evalpipe.stages.task_texts import ReferenceChange, SetTexts, admits, problem_of
from evalpipe.tasks import (
    EnvironmentSpec,
    PathGlobs,
    Problem,
    PromptMode,
    RunnerSpec,
    Sampling,
    SetProblemKind,
    Task,
    TaskSet,
    TaskSetError,
    TaskWithPatches,
    freeze,
    names_not_in,
    task_problems,
    tree_problem,
)
from evalpipe.validation import ValidationClass

_MODE_NAMES = {PromptMode.ORIGINAL: "problem", PromptMode.TERSE: "terse"}
# Ids of tests of a package's library or programs; `shop::test/prices::a` and `shop::prices a` have files of their own.
_INSIDE_SOURCES = {
    "cargo": re.compile(r"[^:]+::(?:lib|bin/[^:]+)::"),
    "nextest": re.compile(r"[^: ]+(?:::bin/[^ ]+)? "),
}
TIMEOUT_FACTOR = 10
TIMEOUT_STEP_S = 60


class FreezeReason(StrEnum):
    """Why a candidate is not in a set although its validation class would admit it."""

    INTERFACE_NOT_NAMED = "interface_not_named"
    """It is `compile_only`, and its problem text does not have every name that its tests miss."""
    INLINE_TESTS = "inline_tests"
    """All that shows its change stands inside source files, which agents write: no grading could take it from there."""
    PATCHES_NOT_EXACT = "patches_not_exact"
    """Its patches do not make exactly the tree of its change, or cannot be graded."""
    NOT_SAMPLED = "not_sampled"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A candidate that is not in the set: its class where that is not valid, else the reason of the freeze."""

    candidate_id: str
    reason: ValidationClass | FreezeReason
    detail: str


@dataclass(frozen=True, slots=True)
class FreezeOutcome:
    """A frozen set, and every other candidate of its repositories."""

    record: TaskSet
    left_out: tuple[LeftOut, ...]

    def counts(self) -> dict[str, int]:
        """How many were left out for each reason, in the order of the classes and then of the reasons."""
        found = Counter(one.reason.value for one in self.left_out)
        return {reason: found[reason] for reason in (*ValidationClass, *FreezeReason) if found[reason]}

    def named(self) -> list[LeftOut]:
        """Those that a person can do something about: all but the classes of validation and what was not drawn."""
        return [
            one
            for one in self.left_out
            if isinstance(one.reason, FreezeReason) and one.reason is not FreezeReason.NOT_SAMPLED
        ]


def freeze_task_set(
    bench: Workbench,
    name: str,
    configs: Sequence[RepositoryConfig],
    sampling: Sampling | None = None,
    *,
    provisional: bool,
) -> FreezeOutcome:
    """Freeze the valid candidates of `configs`, or a sample of them, as the task set `name`.

    Raises TaskSetError and SampleTooLarge.
    """
    folder = bench.workspace.task_sets_dir / name
    texts = SetTexts.read(folder)
    tasks: list[TaskWithPatches] = []
    left_out: list[LeftOut] = []
    for config in configs:
        for found in _of_repository(bench, config, texts):
            if isinstance(found, LeftOut):
                left_out.append(found)
            else:
                tasks.append(found)
    record = freeze(folder, tasks, sampling, provisional=provisional, write=write_atomically)
    frozen = {entry.task_id for entry in record.tasks}
    left_out += [
        LeftOut(item.task.task_id, FreezeReason.NOT_SAMPLED, "the sample did not draw it")
        for item in tasks
        if item.task.task_id not in frozen
    ]
    return FreezeOutcome(record, tuple(sorted(left_out, key=lambda one: one.candidate_id)))


def _of_repository(bench: Workbench, config: RepositoryConfig, texts: SetTexts) -> Iterator[TaskWithPatches | LeftOut]:
    candidates = {row["candidate_id"]: row for row in bench.lake.rows("candidate_commits", config.name)}
    images = {row["image_digest"]: row for row in bench.lake.rows("task_images", config.name)}
    mirror = bench.mirror(config.name)
    with ScratchObjects(mirror) as scratch:
        for validated in bench.lake.rows("validated_tasks", config.name):
            candidate_id = validated["candidate_id"]
            if not admits(config, validated):
                yield LeftOut(candidate_id, ValidationClass(validated["validation_class"]), validated["evidence"])
                continue
            image = images.get(validated["image_digest"])
            if image is None or candidate_id not in candidates:
                raise TaskSetError(
                    f"{candidate_id} was judged before {config.name} was mined or its environment was built the last "
                    f"time: run `evalpipe validate` first"
                )
            candidate = candidates[candidate_id]
            change = ReferenceChange.read(mirror, config, candidate, validated["fail_to_pass"])
            inline = inline_fail_to_pass(config.runner.name, candidate["inline_tests"], validated["fail_to_pass"])
            if (inline and inline == set(validated["fail_to_pass"])) or (change.gold and not change.tests):
                yield LeftOut(candidate_id, FreezeReason.INLINE_TESTS, "its tests stand inside its source files")
                continue
            problem = problem_of(mirror, candidate, validated, change, texts)
            if unnamed := _unnamed(validated, problem):
                yield LeftOut(candidate_id, FreezeReason.INTERFACE_NOT_NAMED, unnamed)
                continue
            item = _task(config, candidate, validated, image, change, problem, inline)
            yield _inexact(scratch, item) or item


def inline_fail_to_pass(
    runner: str, inline_tests: Sequence[bytes] | None, fail_to_pass: Sequence[str]
) -> frozenset[str]:
    """Those of `fail_to_pass` that stand inside the sources `inline_tests` of a change.

    An agent writes these sources, and cannot write the very tests of the reference change into them.
    """
    inside = _INSIDE_SOURCES.get(runner)
    if not inline_tests or inside is None:
        return frozenset()
    return frozenset(test for test in fail_to_pass if inside.match(test))


def _unnamed(validated: Row, problem: Problem) -> str:
    """What keeps a `compile_only` candidate from being a task, as text; empty when its prompts name the interface."""
    if validated["validation_class"] != ValidationClass.COMPILE_ONLY:
        return ""
    names = validated["missing_names"] or []
    if not names or not validated["fail_to_pass"]:
        return "which names its tests miss could not be read from their errors"
    for mode, text in problem.texts().items():
        missing = names_not_in("\n".join((text, *problem.criteria)), names)
        if missing:
            return f"its {_MODE_NAMES[mode]} text does not name {', '.join(missing)}"
    return ""


def _inexact(scratch: ScratchObjects, item: TaskWithPatches) -> LeftOut | None:
    """The candidate as left out, when its patches are not what they must be."""
    patches = (item.gold_patch, item.test_patch)
    problems = [one for one in task_problems(item.task, *patches) if one.kind is SetProblemKind.PATCHES]
    wrong = problems[0] if problems else tree_problem(scratch, item.task, *patches)
    return LeftOut(item.task.task_id, FreezeReason.PATCHES_NOT_EXACT, wrong.text) if wrong else None


def _task(
    config: RepositoryConfig,
    candidate: Row,
    validated: Row,
    image: Row,
    change: ReferenceChange,
    problem: Problem,
    inline: frozenset[str],
) -> TaskWithPatches:
    task = Task(
        task_id=candidate["candidate_id"],
        repository=config.name,
        number=candidate["number"],
        title=candidate["subject"],
        commit=candidate["commit"],
        parent=candidate["parent"],
        author_date=candidate["author_date"].isoformat(),
        merge_date=candidate["merge_date"].isoformat(),
        shape=candidate["shape"],
        category=candidate["category"],
        category_rule=candidate["category_rule"],
        coding_agent=candidate["coding_agent"],
        problem=problem,
        fail_to_pass=tuple(test for test in validated["fail_to_pass"] if test not in inline),
        pass_to_pass=tuple(validated["pass_to_pass"]),
        quarantined=tuple(sorted({*validated["quarantined"], *inline})),
        test_files=tuple(quote_from_bytes(path) for path in change.tests),
        path_globs=PathGlobs(**config.paths.model_dump()),
        runner=RunnerSpec(**config.runner.model_dump()),
        environment=EnvironmentSpec(
            build_key=image["build_key"],
            image_digest=validated["image_digest"],
            sandbox=image["sandbox"],
            memory_bytes=config.validation.memory,
            cpus=config.validation.cpus,
            pids=config.validation.pids,
            test_timeout_s=_test_timeout(validated["after_seconds"], config.validation.timeout_s),
        ),
        provisional=validated["provisional"],
        validated_on=tuple(validated["validated_on"]),
        gold_patch_sha256=hashlib.sha256(change.gold).hexdigest(),
        test_patch_sha256=hashlib.sha256(change.test).hexdigest(),
        interface_named=validated["validation_class"] == ValidationClass.COMPILE_ONLY,
        hidden_tests=tuple(map(quote_from_bytes, change.hidden.paths)),
        hidden_tests_before=change.hidden.earlier_versions,
        suite_files=_suite_files(validated),
        style=config.style,
    )
    return TaskWithPatches(task, change.gold, change.test)


def _suite_files(validated: Row) -> tuple[str, ...] | None:
    return None if validated["suite_files"] is None else tuple(map(quote_from_bytes, validated["suite_files"]))


def _test_timeout(measured_s: float, most_s: float) -> float:
    """Ten times what the reference took, in whole minutes, and never more than validation had."""
    return min(most_s, math.ceil(measured_s * TIMEOUT_FACTOR / TIMEOUT_STEP_S) * TIMEOUT_STEP_S)
