"""Grades a patch by execution: a fresh box, the trusted overlay, the whole suite, the verdict."""

import hashlib
import json
import time
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from evalpipe.grading.verdict import Judgement, Verdict, judge_report
from evalpipe.history import PathRules, Repository, ScratchObjects
from evalpipe.runners import Runner, SuiteRequest
from evalpipe.runners.suite import run_suite
from evalpipe.sandbox import FileEntry, Limits, Sandbox
from evalpipe.tasks import PatchRefusal, PatchRefused, Task, graded_tree, hidden_paths, instance_tree, read_files

GRADER_VERSION = "3"
"""Part of the key of every cached verdict: raise it when the same patch may get another verdict."""

_REFUSALS = {
    PatchRefusal.TOO_LARGE: Verdict.PATCH_REJECTED,
    PatchRefusal.UNSAFE: Verdict.PATCH_REJECTED,
    PatchRefusal.DOES_NOT_APPLY: Verdict.PATCH_DOES_NOT_APPLY,
}


@dataclass(frozen=True, slots=True)
class Grading:
    """A judgement with what a reader needs to trust it: ignored paths and the seconds it took."""

    judgement: Judgement
    ignored_paths: tuple[bytes, ...]
    seconds: float


def limits_of(task: Task) -> Limits:
    """The limits of a test run of `task`, as frozen."""
    environment = task.environment
    return Limits(
        timeout_s=environment.test_timeout_s,
        memory_bytes=environment.memory_bytes,
        cpus=environment.cpus,
        pids=environment.pids,
    )


def suite_of(task: Task) -> SuiteRequest:
    """The tests that validation ran for `task`: others have not been seen to pass."""
    chosen = task.suite_files
    return SuiteRequest(None if chosen is None else tuple(unquote_to_bytes(path) for path in chosen))


def verdict_key(task_sha256: str, patch_sha256: str, image_digest: str, sandbox: str) -> str:
    """SHA-256 (hex) of all that decides a verdict: the frozen task with its limits, patch, image, sandbox, grader."""
    content = [GRADER_VERSION, task_sha256, patch_sha256, image_digest, sandbox]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _files_of_tests(task: Task) -> set[bytes]:
    """The files in which expected tests stand, where a runner's ids begin with them."""
    return {test.partition("::")[0].encode(errors="replace") for test in (*task.fail_to_pass, *task.pass_to_pass)}


def grade(
    sandbox: Sandbox,
    environment: str,
    runner: Runner,
    repository: Repository,
    task: Task,
    patch: bytes,
    labels: dict[str, str],
) -> Grading:
    """Grade `patch`, a diff against the tree that agents get: the parent's, without what is hidden of it.

    Raises SandboxError when the engine fails: that says nothing about the patch and is run again.
    """
    started = time.monotonic()
    with ScratchObjects(repository) as scratch:
        globs = task.path_globs
        rules = PathRules(globs.tests, globs.source, globs.generated)
        try:
            base = instance_tree(scratch, task.parent, hidden_paths(task))
            graded = graded_tree(
                scratch,
                base,
                task.commit,
                patch,
                rules,
                arguments=task.runner.arguments,
                files_of_tests=_files_of_tests(task),
            )
        except PatchRefused as refused:
            judgement = Judgement(_REFUSALS[refused.refusal], str(refused))
            return Grading(judgement, (), time.monotonic() - started)
        files = read_files(scratch, scratch.read_tree(graded.tree))
        with sandbox.open(environment, limits_of(task), labels) as box:
            entries = (FileEntry(file.path, file.mode, file.data) for file in files)
            run = run_suite(box, runner, entries, suite_of(task), preparation=task.runner.prepare)
    judgement = judge_report(task.fail_to_pass, task.pass_to_pass, run.report)
    return Grading(judgement, graded.ignored_paths, time.monotonic() - started)
