"""What must be true of a task, whoever made it: asked when a set is frozen, and when a frozen one is checked."""

from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from evalpipe.history import CommitMissing, PatchDoesNotApply, ScratchObjects, TreeNotWritten
from evalpipe.tasks.frozen_set import SetProblem, SetProblemKind
from evalpipe.tasks.leak_lint import NAMES, answer_of, leaks
from evalpipe.tasks.record import Task
from evalpipe.tasks.trees import PATCH_BYTES


def task_problems(task: Task, gold_patch: bytes, test_patch: bytes) -> Iterator[SetProblem]:
    """What is wrong with a task by its record and its patches alone."""
    for problem in (
        *_test_list_problems(task),
        *_patch_problems(task, gold_patch, test_patch),
        *_terse_problems(task, gold_patch, test_patch),
    ):
        yield SetProblem(problem.kind, f"task {task.task_id}: {problem.text}", task.task_id)


def tree_problem(scratch: ScratchObjects, task: Task, gold_patch: bytes, test_patch: bytes) -> SetProblem | None:
    """What keeps the two patches from making exactly the tree of the reference change out of its parent's.

    Trees are compared by their git ids, so that every byte, mode and name counts.
    """
    try:
        merged, parent = scratch.tree_id(task.commit), scratch.tree_id(task.parent)
        applied = scratch.apply_patch(scratch.apply_patch(parent, gold_patch), test_patch)
    except CommitMissing as error:
        return _of(task, f"its commits are not in the mirror: {error}")
    except (PatchDoesNotApply, TreeNotWritten) as error:
        return _of(task, f"its patches do not apply to its parent {task.parent}: {error}")
    if applied != merged:
        return _of(task, f"its patches make another tree ({applied}) than its change {task.commit} has ({merged})")
    files = scratch.read_tree(merged)
    if not any(unquote_to_bytes(path) in files for path in task.test_files):
        return _of(task, f"none of its test files is in its change {task.commit}")
    return None


def _of(task: Task, text: str) -> SetProblem:
    return SetProblem(SetProblemKind.TREE, f"task {task.task_id}: {text}", task.task_id)


def _test_list_problems(task: Task) -> Iterator[SetProblem]:
    both = set(task.fail_to_pass) & set(task.pass_to_pass)
    repeated = {
        test_id
        for tests in (task.fail_to_pass, task.pass_to_pass)
        for test_id, times in Counter(tests).items()
        if times > 1
    }
    listed_and_quarantined = set(task.quarantined) & {*task.fail_to_pass, *task.pass_to_pass}
    for tests, text in (
        (both, "in fail-to-pass and in pass-to-pass"),
        (repeated, "more than once in one list"),
        (listed_and_quarantined, "quarantined, and in a list too"),
    ):
        if tests:
            yield SetProblem(SetProblemKind.TEST_LISTS, f"{len(tests)} tests are {text}, for example {min(tests)}")


def _patch_problems(task: Task, gold_patch: bytes, test_patch: bytes) -> Iterator[SetProblem]:
    if not gold_patch:
        yield SetProblem(SetProblemKind.PATCHES, "its reference patch is empty")
    if len(gold_patch) > PATCH_BYTES:
        text = f"its reference patch has {len(gold_patch)} bytes, and none above {PATCH_BYTES} is graded"
        yield SetProblem(SetProblemKind.PATCHES, text)
    if not test_patch or not task.test_files:
        yield SetProblem(SetProblemKind.PATCHES, "it changes no test file")


def _terse_problems(task: Task, gold_patch: bytes, test_patch: bytes) -> Iterator[SetProblem]:
    terse = task.problem.terse
    if terse is None:
        return
    if not terse.strip():
        yield SetProblem(SetProblemKind.TERSE_TEXT, "its terse text is empty")
    # Such a task cannot be solved without the names of its interface.
    found = [
        leak
        for leak in leaks(terse, answer_of(task.commit, task.number, gold_patch, test_patch))
        if not (task.interface_named and leak.kind in NAMES)
    ]
    if found:
        named = ", ".join(f"{leak.kind.value} {leak.named!r}" for leak in found)
        yield SetProblem(SetProblemKind.TERSE_TEXT, f"its terse text names what the change is made of ({named})")
