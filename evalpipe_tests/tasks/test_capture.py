"""An agent's work as a patch: what is captured, applied to the parent again, is the very tree that was left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalpipe.history import Repository, ScratchObjects, TreeNotWritten
from evalpipe.tasks import CapturedPatch, TreeFile, capture_patch, read_files
from evalpipe_tests.history.builder import EXECUTABLE, LINK, REGULAR, SUBMODULE, Builder, File

PARENT: dict[bytes, File] = {
    b"README": b"clock\n",
    b"src/clock.py": b"def noon():\n    return 12\n",
    b"src/zone.py": b"UTC = 0\n" * 30,
    b"run": (EXECUTABLE, b"#!/bin/sh\n"),
    b"link": (LINK, b"README"),
    b"image.png": bytes(range(256)),
    b"caf\xe9/\xff.txt": b"caf\xe9\n",
    b"dos.txt": b"a\r\nb\r\n",
    b"no_newline": b"end",
    b"vendor/__pycache__/kept.pyc": b"\x00committed",
    b"lib": (SUBMODULE, b"1" * 40),
}


class Parent:
    """A parent commit, its working tree as an agent gets it, and the objects to capture with."""

    def __init__(self, folder: Path, files: Mapping[bytes, File]) -> None:
        builder = Builder(folder / "source.git")
        self.commit = builder.commit(files)
        self.scratch = ScratchObjects(Repository(builder.path))
        tree = self.scratch.read_tree(self.commit)
        self.files = {file.path: file for file in read_files(self.scratch, tree)}

    def capture(self, changes: Mapping[bytes, File]) -> CapturedPatch:
        return capture_patch(self.scratch, self.commit, self.left(changes).values())

    def left(self, changes: Mapping[bytes, File]) -> dict[bytes, TreeFile]:
        """The working tree after `changes`: None deletes."""
        left = dict(self.files)
        for path, file in changes.items():
            if file is None:
                left.pop(path)
            else:
                mode, data = (REGULAR, file) if isinstance(file, bytes) else file
                left[path] = TreeFile(path, mode, data)
        return left

    def applied(self, patch: bytes) -> dict[bytes, TreeFile]:
        tree = self.scratch.read_tree(self.scratch.apply_patch(self.commit, patch))
        return {file.path: file for file in read_files(self.scratch, tree)}


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    made = Parent(tmp_path_factory.mktemp("capture"), PARENT)
    with made.scratch:
        yield made


CHANGES: dict[str, dict[bytes, File]] = {
    "edit": {b"src/clock.py": b"def noon():\n    return '12'\n"},
    "new": {b"src/new/deep/file.py": b"x = 1\n"},
    "new_and_empty": {b"empty": b""},
    "deleted": {b"src/clock.py": None, b"README": None},
    "renamed": {b"src/zone.py": None, b"src/zones.py": b"UTC = 0\n" * 30},
    "mode": {b"README": (EXECUTABLE, b"clock\n"), b"run": (REGULAR, b"#!/bin/sh\n")},
    "symlink": {b"other": (LINK, b"src/clock.py"), b"link": (LINK, b"run")},
    "symlink_to_file": {b"link": b"now a file\n"},
    "file_to_symlink": {b"README": (LINK, b"src/zone.py")},
    "file_to_folder": {b"README": None, b"README/inner": b"1\n"},
    "folder_to_file": {b"src/clock.py": None, b"src/zone.py": None, b"src": b"flat\n"},
    "binary": {b"image.png": bytes(reversed(range(256))), b"new.bin": b"\x00\xff" * 100},
    "crlf": {b"dos.txt": b"a\r\nB\r\n", b"new.txt": b"1\r\n2\r"},
    "latin1": {b"caf\xe9/\xff.txt": b"caf\xe8\n"},
    "no_final_newline": {b"no_newline": b"end\nmore", b"README": b"clock"},
    "odd_paths": {b"\xfe\xff": b"1\n", b"tab\tand\nline": b"2\n", b'quote"s': b"3\n", b"--help": b"4\n", b" ": b"5\n"},
    "attributes": {b".gitattributes": b"* -diff -text filter=evil\n", b"src/clock.py": b"1\r\n"},
    "ignored": {b".gitignore": b"*\n", b"out.log": b"1\n"},
    "looks_like_a_diff": {b"src/clock.py": b"--- a/x\n+++ b/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n"},
    "git_modules": {b".gitmodules": b'[submodule "x"]\n', b".github/workflows/x.yml": b"on: push\n"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_captured_patch_gives_the_working_tree_again(parent: Parent, name: str) -> None:
    captured = parent.capture(CHANGES[name])
    assert captured.files_changed == len(CHANGES[name])
    assert parent.applied(captured.patch) == parent.left(CHANGES[name])


def test_untouched_tree_is_an_empty_patch(parent: Parent) -> None:
    assert parent.capture({}) == CapturedPatch(b"", 0)


def test_a_change_that_was_taken_back_is_an_empty_patch(parent: Parent) -> None:
    assert parent.capture({b"README": b"clock\n"}) == CapturedPatch(b"", 0)


def test_deleting_everything_deletes_all_but_submodules_and_caches(parent: Parent) -> None:
    captured = capture_patch(parent.scratch, parent.commit, [])
    tree = parent.scratch.read_tree(parent.scratch.apply_patch(parent.commit, captured.patch))
    assert set(tree) == {b"lib", b"vendor/__pycache__/kept.pyc"}


@pytest.mark.parametrize(
    "path",
    [
        b".git/config",
        b".git",
        b"nested/.git/HEAD",
        b"nested/.GIT",
        b"__pycache__/x.pyc",
        b"src/__pycache__/clock.cpython-311.pyc",
        b".pytest_cache/v/cache/lastfailed",
        b".mypy_cache/x",
        b".ruff_cache/x",
        b".hypothesis/x",
        b"lib/file_in_a_submodule",
    ],
)
def test_what_is_nobodys_work_is_left_out(parent: Parent, path: bytes) -> None:
    assert parent.capture({path: b"1\n"}) == CapturedPatch(b"", 0)


def test_files_beside_a_nested_git_directory_are_work(parent: Parent) -> None:
    captured = parent.capture({b"nested/.git/HEAD": b"ref: x\n", b"nested/file.py": b"1\n"})
    assert parent.applied(captured.patch)[b"nested/file.py"].data == b"1\n"
    assert b"Subproject" not in captured.patch
    assert captured.files_changed == 1


def test_cache_that_the_parent_has_committed_is_not_deleted_by_its_absence(parent: Parent) -> None:
    left = parent.left({b"vendor/__pycache__/kept.pyc": None, b"README": b"new\n"})
    captured = capture_patch(parent.scratch, parent.commit, left.values())
    assert captured.files_changed == 1
    assert b"vendor/__pycache__/kept.pyc" in parent.applied(captured.patch)


@pytest.mark.parametrize("path", [b"git~1", b".git /x", b"GIT~1/config"])
def test_name_that_git_holds_unsafe_is_refused(parent: Parent, path: bytes) -> None:
    with pytest.raises(TreeNotWritten):
        parent.capture({path: b"1\n"})


@pytest.mark.slow
def test_many_small_files_are_captured_in_time_that_grows_with_their_number(parent: Parent) -> None:
    changes: dict[bytes, File] = {b"many/%d/%d.txt" % (n % 50, n): b"%d\n" % n for n in range(20_000)}
    started = time.monotonic()
    captured = parent.capture(changes)
    assert captured.files_changed == 20_000
    assert time.monotonic() - started < 30
    assert len(parent.scratch.read_tree(parent.scratch.apply_patch(parent.commit, captured.patch))) == 20_000 + len(
        PARENT
    )


_NAMES = st.binary(min_size=1, max_size=6).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..") and b"git" not in name.lower()
)
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map(b"/".join)
_CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from([b"a", b"b\r", b"-- x", b"++ y", b"\\", b"", b"@@ -1 +1 @@"]), max_size=8).map(b"\n".join),
)
_FILES: st.SearchStrategy[File] = st.one_of(
    _CONTENTS.map(lambda data: (REGULAR, data)),
    _CONTENTS.map(lambda data: (EXECUTABLE, data)),
    st.binary(min_size=1, max_size=20).filter(lambda data: b"\0" not in data).map(lambda data: (LINK, data)),
)
_TREES = st.dictionaries(_PATHS, _FILES, max_size=8).filter(
    lambda tree: not any(other.startswith(path + b"/") for path in tree for other in tree)
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=_TREES, after=_TREES)
def test_any_working_tree_comes_back(
    tmp_path_factory: pytest.TempPathFactory, before: dict[bytes, File], after: dict[bytes, File]
) -> None:
    parent = Parent(tmp_path_factory.mktemp("any"), before or {b"x": b"1"})
    with parent.scratch:
        changes: dict[bytes, File] = {path: None for path in parent.files if path not in after}
        captured = parent.capture(changes | after)
        assert parent.applied(captured.patch) == parent.left(changes | after)
