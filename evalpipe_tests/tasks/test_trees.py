"""The tree that is graded: product files of the patch under the trusted overlay of the reference change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from evalpipe.history import PathRules, Repository, ScratchObjects
from evalpipe.tasks import PatchRefusal, PatchRefused, before_tree, graded_tree, read_files
from evalpipe.tasks.trees import PATCH_BYTES, is_trusted
from evalpipe_tests.history.builder import LINK, SUBMODULE, Builder, File

RULES = PathRules()
PARENT: dict[bytes, File] = {
    b"src/clock.py": b"def noon():\n    return 11\n",
    b"src/zone.py": b"UTC = 0\n",
    b"tests/test_clock.py": b"old test\n",
    b"tests/test_gone.py": b"goes\n",
    b"tests/data/sample.txt": b"1\n",
    b"conftest.py": b"# root\n",
    b"pyproject.toml": b"[project]\n",
}
CHANGE: dict[bytes, File] = {
    b"src/clock.py": b"def noon():\n    return 12\n",
    b"tests/test_clock.py": b"new test\n",
    b"tests/test_new.py": b"added test\n",
    b"tests/test_gone.py": None,
}
EXPECTED_TESTS = {
    b"tests/test_clock.py": b"new test\n",
    b"tests/test_new.py": b"added test\n",
    b"tests/data/sample.txt": b"1\n",
    b"conftest.py": b"# root\n",
    b"pyproject.toml": b"[project]\n",
}


class Change:
    """A reference change on its parent, in a repository where further trees can be made."""

    def __init__(self, folder: Path) -> None:
        self.builder = Builder(folder / "source.git")
        self.parent = self.builder.commit(PARENT)
        self.commit = self.builder.commit(CHANGE)
        self.scratch = ScratchObjects(Repository(self.builder.path))

    def patch(self, files: Mapping[bytes, File]) -> bytes:
        """A patch against the parent that makes these changes."""
        other = self.builder.commit(files, parents=[self.parent], branch=None)
        return self.scratch.diff(self.parent, other)

    def graded(self, patch: bytes) -> tuple[dict[bytes, bytes], tuple[bytes, ...]]:
        graded = graded_tree(self.scratch, self.parent, self.commit, patch, RULES)
        return self.contents(graded.tree), graded.ignored_paths

    def contents(self, tree: str) -> dict[bytes, bytes]:
        return {file.path: file.data for file in read_files(self.scratch, self.scratch.read_tree(tree))}


@pytest.fixture(scope="module")
def change(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Change]:
    made = Change(tmp_path_factory.mktemp("trees"))
    with made.scratch:
        yield made


def test_empty_patch_is_graded_as_the_parent_with_the_reference_tests(change: Change) -> None:
    contents, ignored = change.graded(b"")
    assert contents == {b"src/clock.py": PARENT[b"src/clock.py"], b"src/zone.py": b"UTC = 0\n"} | EXPECTED_TESTS
    assert ignored == ()


def test_reference_patch_gives_the_reference_tree(change: Change) -> None:
    tests = [path for path in CHANGE if path.startswith(b"tests/")]
    gold = change.scratch.diff(change.parent, change.commit, [b"src/clock.py"])
    whole = change.scratch.diff(change.parent, change.commit)
    assert (
        graded_tree(change.scratch, change.parent, change.commit, gold, RULES).tree
        == graded_tree(change.scratch, change.parent, change.commit, whole, RULES).tree
        == change.builder.tree(change.commit)
    )
    assert change.graded(whole)[1] == tuple(sorted(tests))


@pytest.mark.parametrize(
    "touched",
    [
        {b"tests/test_clock.py": b"assert True\n"},
        {b"tests/test_clock.py": None},
        {b"tests/test_extra.py": b"assert True\n"},
        {b"tests/data/sample.txt": b"2\n"},
        {b"conftest.py": b"evil\n"},
        {b"conftest.py": None},
        {b"src/conftest.py": b"evil\n"},
        {b"src/deep/conftest.py": b"evil\n"},
        {b"pytest.ini": b"[pytest]\naddopts = -p evil\n"},
        {b".pytest.ini": b"[pytest]\n"},
        {b"tox.ini": b"[pytest]\n"},
        {b"setup.cfg": b"[tool:pytest]\n"},
        {b"pyproject.toml": b"[tool.pytest.ini_options]\n"},
        {b"sitecustomize.py": b"evil\n"},
        {b"src/usercustomize.py": b"evil\n"},
        {b"evil.pth": b"import evil\n"},
        {b"evil.dist-info/entry_points.txt": b"[pytest11]\nevil = evil\n"},
        {b"evil.egg-info/PKG-INFO": b"evil\n"},
        {b"pytest.py": b"evil\n"},
        {b"fractions.py": b"evil\n"},
    ],
    ids=lambda touched: next(iter(touched)).decode(),
)
def test_what_steers_tests_comes_from_the_reference_and_is_named(change: Change, touched: dict[bytes, File]) -> None:
    contents, ignored = change.graded(change.patch({**touched, b"src/zone.py": b"UTC = 1\n"}))
    product = {b"src/clock.py": PARENT[b"src/clock.py"], b"src/zone.py": b"UTC = 1\n"}
    assert contents == product | EXPECTED_TESTS
    assert ignored == tuple(touched)


def _moved(kind: bytes, old: bytes, new: bytes) -> bytes:
    header = b"diff --git a/%s b/%s\nsimilarity index 100%%\n" % (old, new)
    return header + b"%s from %s\n%s to %s\n" % (kind, old, kind, new)


@pytest.mark.parametrize(
    ("patch", "ignored", "product"),
    [
        (_moved(b"rename", b"src/zone.py", b"tests/test_new.py"), {b"tests/test_new.py"}, {b"src/zone.py": None}),
        (_moved(b"copy", b"src/zone.py", b"conftest.pth"), {b"conftest.pth"}, {}),
        (
            _moved(b"rename", b"tests/test_clock.py", b"src/a.py"),
            {b"tests/test_clock.py"},
            {b"src/a.py": b"old test\n"},
        ),
        (
            b"diff --git a/tests/test_clock.py b/tests/test_clock.py\nold mode 100644\nnew mode 100755\n",
            {b"tests/test_clock.py"},
            {},
        ),
    ],
    ids=["rename_into_tests", "copy_into_settings", "rename_out_of_tests", "mode"],
)
def test_tests_are_neither_moved_nor_replaced_by_headers(
    change: Change, patch: bytes, ignored: set[bytes], product: Mapping[bytes, bytes | None]
) -> None:
    contents, found = change.graded(patch)
    before = {path: PARENT[path] for path in (b"src/clock.py", b"src/zone.py")}
    assert contents == {path: data for path, data in {**before, **product}.items() if data is not None} | EXPECTED_TESTS
    assert set(found) == ignored


def test_documents_and_examples_that_have_tests_come_from_the_reference(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git")
    files: dict[bytes, File] = {b"examples/test_a.py": b"old\n", b"docs/a.rst": b"old\n", b"src/a.py": b"old\n"}
    parent = builder.commit(files)
    commit = builder.commit({b"docs/a.rst": b"new\n"})
    other = builder.commit(dict.fromkeys(files, b"agent\n"), parents=[parent], branch=None)
    with ScratchObjects(Repository(builder.path)) as scratch:
        patch = scratch.diff(parent, other)
        graded = graded_tree(scratch, parent, commit, patch, RULES, files_of_tests={*files, b"gone.py"})
        found = {file.path: file.data for file in read_files(scratch, scratch.read_tree(graded.tree))}
    assert found == {b"examples/test_a.py": b"old\n", b"docs/a.rst": b"new\n", b"src/a.py": b"agent\n"}
    assert graded.ignored_paths == (b"docs/a.rst", b"examples/test_a.py")


def test_every_kind_of_product_change_counts(change: Change) -> None:
    patch = change.patch({b"src/clock.py": None, b"src/new.py": b"1\n", b"data.bin": bytes(range(256))})
    contents, ignored = change.graded(patch)
    product = {b"src/zone.py": b"UTC = 0\n", b"src/new.py": b"1\n", b"data.bin": bytes(range(256))}
    assert contents == product | EXPECTED_TESTS
    assert ignored == ()


@pytest.mark.parametrize("replacement", [b"a file\n", (LINK, b"src")], ids=["file", "symlink"])
def test_tests_replaced_by_something_else_come_back(change: Change, replacement: File) -> None:
    gone: dict[bytes, File] = {path: None for path in PARENT if path.startswith(b"tests/")}
    contents, ignored = change.graded(change.patch(gone | {b"tests": replacement, b"src/zone.py": b"UTC = 1\n"}))
    product = {b"src/clock.py": PARENT[b"src/clock.py"], b"src/zone.py": b"UTC = 1\n"}
    assert contents == product | EXPECTED_TESTS
    assert ignored == tuple(sorted([b"tests", *gone]))


def test_folder_in_the_place_of_a_trusted_file_does_not_take_it_away(change: Change) -> None:
    contents, ignored = change.graded(change.patch({b"pyproject.toml": None, b"pyproject.toml/x.py": b"1\n"}))
    assert contents == {b"src/clock.py": PARENT[b"src/clock.py"], b"src/zone.py": b"UTC = 0\n"} | EXPECTED_TESTS
    assert ignored == (b"pyproject.toml", b"pyproject.toml/x.py")


def _new_file(path: bytes, mode: bytes = b"100644", content: bytes = b"x") -> bytes:
    return b"diff --git a/%s b/%s\nnew file mode %s\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+%s\n" % (
        path,
        path,
        mode,
        path,
        content,
    )


_NO_NEWLINE = b"\\ No newline at end of file\n"
_GITLINK = (
    b"diff --git a/sub b/sub\nnew file mode 160000\nindex " + b"0" * 40 + b".." + b"c" * 40 + b"\n"
    b"--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit " + b"c" * 40 + b"\n"
)


@pytest.mark.parametrize(
    ("patch", "refusal"),
    [
        (_new_file(b"../outside.py"), PatchRefusal.DOES_NOT_APPLY),
        (_new_file(b"/etc/cron.d/x"), PatchRefusal.DOES_NOT_APPLY),
        (_new_file(b".git/hooks/post-checkout"), PatchRefusal.DOES_NOT_APPLY),
        (_new_file(b".GIT/config"), PatchRefusal.DOES_NOT_APPLY),
        (_new_file(b"sub/.git/config"), PatchRefusal.DOES_NOT_APPLY),
        (_new_file(b"git~1/config"), PatchRefusal.DOES_NOT_APPLY),
        (_new_file("sub/.g\u200cit/x".encode()), PatchRefusal.UNSAFE),
        (_new_file(b"C:/x.py"), PatchRefusal.UNSAFE),
        (_new_file(b"back\\slash.py"), PatchRefusal.UNSAFE),
        (_new_file(b"link", b"120000", b"/etc/passwd") + _NO_NEWLINE, PatchRefusal.UNSAFE),
        (_new_file(b"link", b"120000", b"../../outside") + _NO_NEWLINE, PatchRefusal.UNSAFE),
        (_new_file(b"link", b"120000", b".git/config") + _NO_NEWLINE, PatchRefusal.UNSAFE),
        (_GITLINK, PatchRefusal.UNSAFE),
        (
            _new_file(b"x").replace(b"b/x", b'"b/\\056\\056/x"').replace(b"a/x", b'"a/\\056\\056/x"'),
            PatchRefusal.DOES_NOT_APPLY,
        ),
        (
            _new_file(b"x").replace(b"b/x", b'"b/\\056git/x"').replace(b"a/x", b'"a/\\056git/x"'),
            PatchRefusal.DOES_NOT_APPLY,
        ),
        (b"x" * (PATCH_BYTES + 1), PatchRefusal.TOO_LARGE),
        (b"no patch at all\n", PatchRefusal.DOES_NOT_APPLY),
        (b"\x00\xff\xfe\n", PatchRefusal.DOES_NOT_APPLY),
        (_new_file(b"src/new.py")[:-3], PatchRefusal.DOES_NOT_APPLY),
        (_new_file(b"src/clock.py"), PatchRefusal.DOES_NOT_APPLY),
        (
            _new_file(b"src/new.py") + b"diff --git a/src/zone.py b/src/zone.py\n--- a/src/zone.py\n"
            b"+++ b/src/zone.py\n@@ -1 +1 @@\n-UTC = 99\n+UTC = 1\n",
            PatchRefusal.DOES_NOT_APPLY,
        ),
    ],
    ids=[
        *("parent", "absolute", "git", "git_upper", "git_nested", "git_short", "git_hfs", "drive", "backslash"),
        *("link_absolute", "link_outside", "link_into_git", "gitlink"),
        *("quoted_parent", "quoted_git", "too_large", "no_patch", "corrupt", "cut"),
        *("exists", "half_applying"),
    ],
)
def test_patch_that_cannot_be_graded_is_refused_with_its_reason(
    change: Change, patch: bytes, refusal: PatchRefusal
) -> None:
    with pytest.raises(PatchRefused) as refused:
        change.graded(patch)
    assert refused.value.refusal is refusal
    assert str(refused.value) != ""


def test_submodule_folder_of_the_parent_may_stay_and_not_change(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git")
    parent = builder.commit({b"a.py": b"1\n", b"lib": (SUBMODULE, b"1" * 40)})
    commit = builder.commit({b"a.py": b"2\n"})
    moved = builder.commit({b"lib": (SUBMODULE, b"2" * 40)}, parents=[parent], branch=None)
    with ScratchObjects(Repository(builder.path)) as scratch:
        whole = graded_tree(scratch, parent, commit, scratch.diff(parent, commit), RULES)
        assert scratch.read_tree(whole.tree)[b"lib"].oid == "1" * 40
        with pytest.raises(PatchRefused, match="lib"):
            graded_tree(scratch, parent, commit, scratch.diff(parent, moved), RULES)


def test_before_is_the_parent_with_the_tests_of_the_change(change: Change) -> None:
    tests = [path for path in CHANGE if path.startswith(b"tests/")]
    contents = change.contents(before_tree(change.scratch, change.parent, change.commit, tests))
    assert contents == {b"src/clock.py": PARENT[b"src/clock.py"], b"src/zone.py": b"UTC = 0\n"} | EXPECTED_TESTS


def test_before_with_only_new_test_files_keeps_everything_else(change: Change) -> None:
    contents = change.contents(before_tree(change.scratch, change.parent, change.commit, [b"tests/test_new.py"]))
    assert contents == {**PARENT, b"tests/test_new.py": b"added test\n"}


def test_before_without_any_test_file_is_the_parent(change: Change) -> None:
    assert before_tree(change.scratch, change.parent, change.commit, []) == change.builder.tree(change.parent)


@pytest.mark.parametrize(
    ("path", "trusted"),
    [
        (b"tests/test_x.py", True),
        (b"src/pkg/tests/helper.py", True),
        (b"src/test_x.py", True),
        (b"deep/conftest.py", True),
        (b"Makefile", True),
        (b"setup.py", True),
        (b"src/latest.py", False),
        (b"contest/x.py", False),
        (b"docs/testing.md", False),
        (b"src/pytest_helpers.py", False),
    ],
)
def test_trust_is_told_by_the_path(path: bytes, trusted: bool) -> None:
    assert is_trusted(RULES, path) is trusted


def test_a_teams_own_globs_decide_what_is_a_test() -> None:
    rules = PathRules(test_globs=("checks/**",), source_globs=("src/tests/**",))
    assert is_trusted(rules, b"checks/clock.py")
    assert not is_trusted(rules, b"src/tests/clock.py")
    assert is_trusted(rules, b"src/tests/conftest.py")
