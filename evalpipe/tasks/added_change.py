"""Makes a change from the two patches that a team wrote for a task of its own, or says everything that is wrong.

What is let through here is what a mined change is by itself: tests apart from product, exact bytes, safe paths.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evalpipe.history import (
    FileKind,
    PatchDoesNotApply,
    PathRules,
    ScratchObjects,
    Tree,
    TreeNotWritten,
    check_patch_result,
)
from evalpipe.tasks.trees import PATCH_BYTES

_SHOWN_PATHS = 5
_BINARY_LEFT_OUT = re.compile(rb"^Binary files .* differ\r?$", re.MULTILINE)
# Lines of content begin with a sign or a space, so these are the patch's own.
_HEADER_WITH_CR = re.compile(rb"^(?:diff --git .*|@@ -[0-9,]+ \+[0-9,]+ @@)\r$", re.MULTILINE)
_HOW = "make it with `git diff --binary`"


@dataclass(frozen=True, slots=True)
class AddedChange:
    """A change that both patches make of the base: its tree, and its files in git's order, tests apart."""

    tree: str
    test_files: tuple[bytes, ...]
    product_files: tuple[bytes, ...]


class AddedChangeWrong(Exception):
    """The patches of an added task make no task. `faults` has everything that was found, one a line in the text."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def added_change(
    scratch: ScratchObjects, base: str, test_patch: bytes, reference_patch: bytes, rules: PathRules
) -> AddedChange:
    """The change that the patches make of the tree of `base`. Raises AddedChangeWrong, CommitMissing."""
    faults = [f"test_patch {fault}" for fault in _format_faults(test_patch)]
    faults += [f"reference_patch {fault}" for fault in _format_faults(reference_patch)]
    if faults:
        raise AddedChangeWrong(faults)
    trees = {}
    for name, patch in (("test_patch", test_patch), ("reference_patch", reference_patch)):
        try:
            trees[name] = scratch.apply_patch(base, patch)
        except (PatchDoesNotApply, TreeNotWritten) as error:
            faults.append(f"{name} does not apply to {base}: {error}; {_HOW} against that commit")
    if faults:
        raise AddedChangeWrong(faults)
    before = scratch.read_tree(base)
    tests, product = (_changed(before, scratch.read_tree(tree)) for tree in trees.values())
    faults = list(_file_faults(tests, product, scratch.read_tree(trees["test_patch"]), rules))
    if faults:
        raise AddedChangeWrong(faults)
    tree = scratch.apply_patch(trees["test_patch"], reference_patch)
    violations = check_patch_result(before, scratch.read_tree(tree), lambda oid: next(scratch.read_blobs([oid]))[1])
    if violations:
        raise AddedChangeWrong([f"a patch leaves {one.path!r}, which is not safe: {one.reason}" for one in violations])
    return AddedChange(tree, tuple(tests), tuple(product))


def _format_faults(patch: bytes) -> Iterator[str]:
    if not patch.strip():
        yield f"is empty; {_HOW}"
    elif len(patch) > PATCH_BYTES:
        yield f"has {len(patch)} bytes, and none above {PATCH_BYTES} is graded"
    elif _HEADER_WITH_CR.search(patch):
        yield (
            "was saved with CR LF at the ends of its lines, which changes what it says; save it as git wrote it "
            "(`*.patch -text` in .gitattributes keeps it so)"
        )
    elif _BINARY_LEFT_OUT.search(patch):
        yield f"only says that a binary file differs, and does not have it; {_HOW}"


def _file_faults(tests: list[bytes], product: list[bytes], with_tests: Tree, rules: PathRules) -> Iterator[str]:
    if not product:
        yield "reference_patch changes nothing"
    if not any(path in with_tests for path in tests):
        yield "test_patch adds or changes no file; a test that is only deleted cannot fail"
    others = [path for path in tests if rules.kind_of(path) is not FileKind.test]
    if others:
        yield (
            f"test_patch changes what is no test: {_shown(others)}; move it to reference_patch, or name it in "
            f"`paths.tests` of the repository"
        )
    hidden = [path for path in product if rules.kind_of(path) is FileKind.test]
    if hidden:
        yield f"reference_patch changes tests: {_shown(hidden)}; move them to test_patch"


def _changed(before: Tree, after: Tree) -> list[bytes]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _shown(paths: list[bytes]) -> str:
    more = f" and {len(paths) - _SHOWN_PATHS} more" if len(paths) > _SHOWN_PATHS else ""
    return ", ".join(path.decode(errors="backslashreplace") for path in paths[:_SHOWN_PATHS]) + more
