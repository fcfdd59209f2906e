"""Freezing: the valid candidates of the workspace's repositories become a task set."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from urllib.parse import quote_from_bytes

from evalpipe.config import RepositoryConfig
from evalpipe.history import FileKind, Repository
from evalpipe.lake import Row, write_atomically
from evalpipe.stages.bench import Workbench
from evalpipe.stages.mining import path_rules
from evalpipe.tasks import (
    EnvironmentSpec,
    PathGlobs,
    Problem,
    RunnerSpec,
    Task,
    TaskSet,
    TaskSetError,
    TaskWithPatches,
    freeze,
    problem_text,
    terse_texts,
)
from evalpipe.validation import ValidationClass

SELECTION_RULE = "all"
TIMEOUT_FACTOR = 10
TIMEOUT_STEP_S = 60


def freeze_task_set(bench: Workbench, name: str, configs: Sequence[RepositoryConfig], *, provisional: bool) -> TaskSet:
    """Freeze every valid candidate of `configs` as the task set `name`. Raises TaskSetError."""
    folder = bench.workspace.task_sets_dir / name
    terse = terse_texts(folder)
    tasks = [task for config in configs for task in _tasks(bench, config, terse)]
    return freeze(folder, tasks, SELECTION_RULE, provisional=provisional, write=write_atomically)


def _tasks(bench: Workbench, config: RepositoryConfig, terse: dict[str, str]) -> Iterable[TaskWithPatches]:
    candidates = {row["candidate_id"]: row for row in bench.lake.rows("candidate_commits", config.name)}
    images = {row["image_digest"]: row for row in bench.lake.rows("task_images", config.name)}
    for validated in bench.lake.rows("validated_tasks", config.name):
        if validated["validation_class"] != ValidationClass.VALID:
            continue
        candidate_id, image = validated["candidate_id"], images.get(validated["image_digest"])
        if image is None or candidate_id not in candidates:
            raise TaskSetError(
                f"{candidate_id} was judged before {config.name} was mined or its environment was built the last "
                f"time: run `evalpipe validate` first"
            )
        yield _task(config, bench.mirror(config.name), candidates[candidate_id], validated, image, terse)


def _task(
    config: RepositoryConfig,
    mirror: Repository,
    candidate: Row,
    validated: Row,
    image: Row,
    terse: dict[str, str],
) -> TaskWithPatches:
    rules = path_rules(config)
    parent, commit = candidate["parent"], candidate["commit"]
    before, after = mirror.read_tree(parent), mirror.read_tree(commit)
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    tests = [path for path in changed if rules.kind_of(path) is FileKind.test]
    gold = mirror.diff(parent, commit, [path for path in changed if path not in set(tests)])
    test = mirror.diff(parent, commit, tests)
    task_id = candidate["candidate_id"]
    task = Task(
        task_id=task_id,
        repository=config.name,
        number=candidate["number"],
        title=candidate["subject"],
        commit=commit,
        parent=parent,
        author_date=candidate["author_date"].isoformat(),
        merge_date=candidate["merge_date"].isoformat(),
        shape=candidate["shape"],
        category=candidate["category"],
        category_rule=candidate["category_rule"],
        coding_agent=candidate["coding_agent"],
        problem=Problem(
            source=candidate["problem_source"],
            original=problem_text(candidate["problem_text"], commit),
            terse=terse.get(task_id),
        ),
        fail_to_pass=tuple(validated["fail_to_pass"]),
        pass_to_pass=tuple(validated["pass_to_pass"]),
        quarantined=tuple(validated["quarantined"]),
        test_files=tuple(quote_from_bytes(path) for path in tests),
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
        gold_patch_sha256=hashlib.sha256(gold).hexdigest(),
        test_patch_sha256=hashlib.sha256(test).hexdigest(),
    )
    return TaskWithPatches(task, gold, test)


def _test_timeout(measured_s: float, most_s: float) -> float:
    """Ten times what the reference took, in whole minutes, and never more than validation had."""
    return min(most_s, math.ceil(measured_s * TIMEOUT_FACTOR / TIMEOUT_STEP_S) * TIMEOUT_STEP_S)
