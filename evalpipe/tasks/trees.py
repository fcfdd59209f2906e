"""The trees of a task: the parent with the change's tests (*before*), and a patch under the trusted overlay."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.history import (
    FileKind,
    PatchDoesNotApply,
    PathRules,
    ScratchObjects,
    Tree,
    TreeNotWritten,
    check_patch_result,
    steers_tests,
)
from evalpipe.history.objects import folders_above
from evalpipe.tasks.steering import setup_files, shadowing_files

PATCH_BYTES = 10 * 1024 * 1024
"""The largest change of a human in the histories that evalpipe was tried on is under 3 MB."""


class PatchRefusal(StrEnum):
    """Why a patch is not run at all."""

    TOO_LARGE = "too_large"
    UNSAFE = "unsafe"
    DOES_NOT_APPLY = "does_not_apply"


class PatchRefused(Exception):
    """The patch of an attempt cannot be graded; `refusal` says why, the text gives the evidence."""

    def __init__(self, refusal: PatchRefusal, detail: str) -> None:
        super().__init__(detail)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class GradedTree:
    """A tree to grade, and the paths of the patch that do not count in it because they can steer the tests."""

    tree: str
    ignored_paths: tuple[bytes, ...]


def before_tree(scratch: ScratchObjects, parent: str, commit: str, test_files: Iterable[bytes]) -> str:
    """The id of the parent's tree with the change's `test_files` laid over it.

    A test file that the change deletes is deleted; a list without any file leaves the parent as it is.
    """
    changed = scratch.read_tree(commit)
    return scratch.write_tree(parent, {path: changed.get(path) for path in test_files})


def instance_tree(scratch: ScratchObjects, parent: str, hidden_tests: Collection[bytes]) -> str:
    """The id of the tree that an agent starts from: the parent's without `hidden_tests`."""
    return scratch.write_tree(parent, dict.fromkeys(hidden_tests)) if hidden_tests else scratch.tree_id(parent)


def graded_tree(
    scratch: ScratchObjects,
    base: str,
    commit: str,
    patch: bytes,
    rules: PathRules,
    *,
    arguments: Sequence[str] = (),
    files_of_tests: Collection[bytes] = (),
) -> GradedTree:
    """The tree in which an attempt is graded: product files from `patch`, the rest from the reference change.

    `patch` is a diff against `base`, the tree that the agent started from; `commit` is the reference change. Whatever
    can steer a test run (test files, their configuration, conftest modules, what these and the `arguments` of the test
    command name) comes from `commit`, and what the patch did to it is named in `ignored_paths`. So do `files_of_tests`,
    in which expected tests stand, unless they are sources. Raises PatchRefused, and then nothing of the patch was used.
    """
    if len(patch) > PATCH_BYTES:
        raise PatchRefused(PatchRefusal.TOO_LARGE, f"the patch has {len(patch)} bytes, the limit is {PATCH_BYTES}")
    try:
        applied = scratch.read_tree(scratch.apply_patch(base, patch))
    except PatchDoesNotApply as error:
        raise PatchRefused(PatchRefusal.DOES_NOT_APPLY, str(error)) from error
    except TreeNotWritten as error:
        raise PatchRefused(PatchRefusal.UNSAFE, str(error)) from error
    original, reference = scratch.read_tree(base), scratch.read_tree(commit)
    violations = check_patch_result(original, applied, lambda oid: _blob(scratch, oid))
    if violations:
        raise PatchRefused(PatchRefusal.UNSAFE, "; ".join(str(violation) for violation in violations[:5]))
    touched = {path for path in {*original, *applied} if applied.get(path) != original.get(path)}
    tests = {path for path in {*original, *applied, *reference} if is_trusted(rules, path)}
    # Examples and documents may be run as tests.
    tests |= {path for path in files_of_tests if rules.kind_of(path) is not FileKind.source}
    tests |= _steering(scratch, original, reference, touched - tests, tests & reference.keys(), arguments)
    trusted = {path: entry for path, entry in reference.items() if path in tests}
    folders = {folder for path in trusted for folder in folders_above(path)}
    # A file in the place of a folder of tests, or below a trusted file, would take what is trusted away.
    displacing = {
        path for path in applied if path in folders or any(folder in trusted for folder in folders_above(path))
    }
    not_product = displacing | tests
    wanted = {path: entry for path, entry in applied.items() if path not in not_product} | trusted
    changes = {path: wanted.get(path) for path in {*original, *wanted} if wanted.get(path) != original.get(path)}
    return GradedTree(scratch.write_tree(base, changes), tuple(sorted(touched & not_product)))


def _steering(
    scratch: ScratchObjects,
    base: Tree,
    reference: Tree,
    product: Collection[bytes],
    trusted: Collection[bytes],
    arguments: Sequence[str],
) -> frozenset[bytes]:
    """Those of `product`, the other paths of a patch, that steer tests though their names do not say so."""
    if not product:
        return frozenset()

    def read(paths: Iterable[bytes]) -> Mapping[bytes, bytes]:
        return scratch.read_files(reference, paths)

    added = [path for path in product if path not in base and path not in reference]
    setup = setup_files(base, reference, trusted, read, arguments).intersection(product)
    return setup | shadowing_files(added, {*base, *reference}, trusted, read)


def is_trusted(rules: PathRules, path: bytes) -> bool:
    """Whether grading takes `path` from the reference change: a test, or what can steer a test run."""
    return rules.kind_of(path) is FileKind.test or steers_tests(path)


def _blob(scratch: ScratchObjects, oid: str) -> bytes:
    ((_, data),) = scratch.read_blobs([oid])
    return data
