"""Grades a patch by execution: a fresh box, the trusted overlay, the whole suite, the verdict."""

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from evalpipe.grading.verdict import Judgement, Verdict, judge_report
from evalpipe.history import PathRules, Repository, ScratchObjects
from evalpipe.runners import Runner, SuiteRequest
from evalpipe.runners.plan import REPOSITORY_FOLDER
from evalpipe.runners.suite import lay_tree, run_suite
from evalpipe.sandbox import Box, FileEntry, Limits, Sandbox
from evalpipe.tasks import PatchRefusal, PatchRefused, Task, graded_tree, hidden_paths, instance_tree, read_files

GRADER_VERSION = "3"
"""Part of the key of every cached verdict: raise it when the same patch may get another verdict."""

STYLE_OUTPUT_CHARACTERS = 2_000

_REFUSALS = {
    PatchRefusal.TOO_LARGE: Verdict.PATCH_REJECTED,
    PatchRefusal.UNSAFE: Verdict.PATCH_REJECTED,
    PatchRefusal.DOES_NOT_APPLY: Verdict.PATCH_DOES_NOT_APPLY,
}


@dataclass(frozen=True, slots=True)
class StyleCheck:
    """Whether a task's style command was content with the graded tree, and the end of what it said."""

    clean: bool
    output: str


@dataclass(frozen=True, slots=True)
class Grading:
    """A judgement with what a reader needs to trust it: ignored paths and the seconds it took.

    `style` is no part of the judgement; None where the task asks for none, or the patch could not be tested.
    """

    judgement: Judgement
    ignored_paths: tuple[bytes, ...]
    seconds: float
    style: StyleCheck | None = None


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
        entries = [FileEntry(file.path, file.mode, file.data) for file in files]
        with sandbox.open(environment, limits_of(task), labels) as box:
            run = run_suite(box, runner, entries, suite_of(task), preparation=task.runner.prepare)
    judgement = judge_report(task.fail_to_pass, task.pass_to_pass, run.report)
    style = None
    if task.style is not None:
        # A box of its own: what the tests leave in theirs is nobody's style.
        with sandbox.open(environment, limits_of(task), labels) as box:
            style = _check_style(box, task.style, entries)
    return Grading(judgement, graded.ignored_paths, time.monotonic() - started, style)


def _check_style(box: Box, command: str, tree: Iterable[FileEntry]) -> StyleCheck:
    lay_tree(box, tree)
    outcome = box.run(("/bin/sh", "-c", command), env={}, cwd=f"{box.root}/{REPOSITORY_FOLDER}")
    said = (outcome.stdout + outcome.stderr).decode(errors="replace")[-STYLE_OUTPUT_CHARACTERS:]
    return StyleCheck(outcome.exit_code == 0 and not outcome.timed_out, said)
