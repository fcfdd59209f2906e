from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from evalpipe.history.errors import CommitMissing, PatchDoesNotApply, TreeNotWritten
from evalpipe.history.objects import EXECUTABLE_FILE, REGULAR_FILE, SYMLINK, TreeEntry
from evalpipe.history.repository import Repository
from evalpipe.history.scratch import ScratchObjects, remove_abandoned_scratch
from evalpipe_tests.history.builder import EXECUTABLE, LINK, SUBMODULE, Builder, File, git

PNG = bytes(range(256))
OTHER_COMMIT = b"c0ffee" + b"0" * 34

PATCH_CLASSES: dict[str, tuple[dict[bytes, File], dict[bytes, File]]] = {
    "binary": ({b"x.png": PNG}, {b"x.png": PNG[::-1]}),
    "utf16": ({b"x": "eins\n".encode("utf-16")}, {b"x": "zwei\n".encode("utf-16")}),
    "attribute_minus_diff": ({b".gitattributes": b"*.lock -diff\n", b"x.lock": b"1\n"}, {b"x.lock": b"2\n"}),
    "attribute_crlf": ({b".gitattributes": b"* text eol=crlf\n", b"x": b"1\n2\n"}, {b"x": b"1\n3\n"}),
    "crlf": ({b"x": b"a\r\nb\r\nc\r\n"}, {b"x": b"a\r\nB\r\nc\r\n"}),
    "mixed_line_ends": ({b"x": b"a\r\nb\nc\r"}, {b"x": b"a\nb\r\nc\r\r\n"}),
    "latin1": ({b"x": b"caf\xe9\n"}, {b"x": b"caf\xe8\n"}),
    "no_final_newline": ({b"x": b"a\nb"}, {b"x": b"a\nb\nc"}),
    "final_newline_added": ({b"x": b"a\nb"}, {b"x": b"a\nb\n"}),
    "trailing_blanks": ({b"x": b"a\n"}, {b"x": b"a  \t\n \n\n\n"}),
    "empty_context_at_the_end": ({b"x": b"a\nb\n\n\n\n"}, {b"x": b"A\nb\n\n\n\n"}),
    "rename": ({b"old.py": b"same\n" * 20}, {b"old.py": None, b"new.py": b"same\n" * 20}),
    "mode_only": ({b"run": b"#!\n"}, {b"run": (EXECUTABLE, b"#!\n")}),
    "symlink": ({b"x": b"1"}, {b"link": (LINK, b"x")}),
    "file_to_symlink": ({b"x": b"1"}, {b"x": (LINK, b"y")}),
    "file_to_folder": ({b"x": b"1\n"}, {b"x": None, b"x/y": b"2\n"}),
    "folder_to_file": ({b"x/y": b"1\n"}, {b"x/y": None, b"x": b"2\n"}),
    "empty_file": ({b"x": b"1"}, {b"empty": b"", b"empty2": (EXECUTABLE, b"")}),
    "emptied_file": ({b"x": b"1\n"}, {b"x": b""}),
    "deleted": ({b"x": b"1\n", b"y": b""}, {b"x": None, b"y": None, b"z": b""}),
    "space": ({b"my file.py": b"1\n"}, {b"my file.py": b"2\n", b"a b/c d": b"3\n"}),
    "quote": ({b'q"uote': b"1\n"}, {b'q"uote': b"2\n", b"back\\slash'": b"3\n"}),
    "tab_and_newline": ({b"t\tab": b"1\n"}, {b"t\tab": b"2\n", b"new\nline": b"3\n"}),
    "non_ascii": ({"é/ü.py".encode(): b"1\n"}, {"é/ü.py".encode(): b"2\n"}),
    "non_utf8": ({b"\xff\xfe": b"1\n"}, {b"\xff\xfe": b"2\n", b"d\x80/x": b"3\n"}),
    "dash": ({b"--help": b"1\n"}, {b"--help": b"2\n", b"-": b"3\n"}),
    "looks_like_a_diff": ({b"x": b"-- a/x\n"}, {b"x": b"++ b/x\ndiff --git a/x b/x\n@@ -1 +1 @@\n"}),
    "submodule": ({b"sub": (SUBMODULE, b"1" * 40)}, {b"sub": (SUBMODULE, OTHER_COMMIT)}),
    "submodule_added": ({b"x": b"1\n"}, {b"x": b"2\n", b"sub": (SUBMODULE, OTHER_COMMIT)}),
}


@pytest.fixture
def source(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "source.git")


@pytest.mark.parametrize("name", PATCH_CLASSES)
def test_diff_applies_again_to_the_very_same_tree(source: Builder, name: str) -> None:
    before, change = PATCH_CLASSES[name]
    old = source.commit({**before, b"bystander": b"stays\n"})
    new = source.commit(change)
    repository = Repository(source.path)
    with ScratchObjects(repository) as scratch:
        patch = repository.diff(old, new)
        assert patch != b""
        assert scratch.apply_patch(old, patch) == source.tree(new)
        assert scratch.apply_patch(new, scratch.diff(new, old)) == source.tree(old)


def test_source_and_test_parts_of_a_patch_apply_one_after_the_other(source: Builder) -> None:
    old = source.commit({b"src.py": b"1\n", b"my test.py": b"1\n"})
    new = source.commit({b"src.py": b"2\n", b"my test.py": b"2\n", b"new test.py": b"3\n"})
    repository = Repository(source.path)
    with ScratchObjects(repository) as scratch:
        tests = repository.diff(old, new, [b"my test.py", b"new test.py"])
        product = repository.diff(old, new, [b"src.py"])
        assert scratch.apply_patch(scratch.apply_patch(old, tests), product) == source.tree(new)


def test_empty_patch_is_the_base_tree(source: Builder) -> None:
    commit = source.commit({b"a": b"1"})
    with ScratchObjects(Repository(source.path)) as scratch:
        assert scratch.apply_patch(commit, b"") == source.tree(commit)


def _new_file(path: bytes, mode: bytes = b"100644", content: bytes = b"x") -> bytes:
    header = b"diff --git a/%s b/%s\nnew file mode %s\n--- /dev/null\n+++ b/%s\n" % (path, path, mode, path)
    return header + b"@@ -0,0 +1 @@\n+%s\n\\ No newline at end of file\n" % content


REFUSED = {
    "context_differs": b"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-other\n+new\n",
    "second_file_does_not_apply": b"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n",
    "cut_off": b"--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-1\n+2\n",
    "no_patch": b"hello\n",
    "blank": b"\n",
    "binary_without_data": b"diff --git a/a b/a\nindex 1..2 100644\nBinary files a/a and b/a differ\n",
    "outside": _new_file(b"../out"),
    "git_directory": _new_file(b".git/hooks/post-checkout"),
    "git_directory_in_capitals": _new_file(b".GIT/config"),
    "nested_git_directory": _new_file(b"sub/.git/config"),
    "through_a_symlink": _new_file(b"link/x"),
    "through_a_symlink_of_the_same_patch": _new_file(b"l", b"120000", b"/tmp") + _new_file(b"l/x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_patch_says_why(source: Builder, name: str) -> None:
    commit = source.commit({b"a": b"1\n", b"b": b"1\n", b"link": (LINK, b"/tmp")})
    with ScratchObjects(Repository(source.path)) as scratch:
        with pytest.raises(PatchDoesNotApply) as caught:
            scratch.apply_patch(commit, REFUSED[name])
        assert str(caught.value)


def test_objects_of_the_scratch_never_reach_the_mirror(source: Builder) -> None:
    commit = source.commit({b"a": b"1\n"})
    repository = Repository(source.path)
    before = {path: path.stat().st_mtime_ns for path in source.path.rglob("*")}
    with ScratchObjects(repository) as scratch:
        blobs = scratch.write_blobs([b"new", b"", b"new"])
        tree = scratch.write_tree(commit, {b"b": TreeEntry(REGULAR_FILE, blobs[0])})
        assert blobs[0] == blobs[2]
        assert set(scratch.read_tree(tree)) == {b"a", b"b"}
        assert dict(scratch.read_blobs(blobs)) == {blobs[0]: b"new", blobs[1]: b""}
        with pytest.raises(CommitMissing):
            repository.read_tree(tree)
    assert {path: path.stat().st_mtime_ns for path in source.path.rglob("*")} == before


def test_scratch_is_gone_afterwards(source: Builder) -> None:
    source.commit({b"a": b"1\n"})
    with ScratchObjects(Repository(source.path)) as scratch:
        folder = scratch.command.git_dir
        assert folder is not None
        assert folder.exists()
    assert not folder.parent.exists()


def test_many_blobs_of_every_kind(source: Builder) -> None:
    source.commit({b"a": b"1\n"})
    datas = [b"%d" % number for number in range(500)] + [b"\n", b"data 3\nxx", b"done\n", bytes(2_000_000)]
    with ScratchObjects(Repository(source.path)) as scratch:
        assert dict(scratch.read_blobs(scratch.write_blobs(datas))) == dict(
            zip(scratch.write_blobs(datas), datas, strict=True)
        )
        assert scratch.write_blobs([]) == []


def test_written_tree_adds_changes_and_deletes(source: Builder) -> None:
    commit = source.commit({b"a": b"1", b"b": b"1", b"c/d": b"1"})
    with ScratchObjects(Repository(source.path)) as scratch:
        blob = scratch.write_blob(b"2")
        tree = scratch.write_tree(
            commit,
            {
                b"a": TreeEntry(EXECUTABLE_FILE, blob),
                b"b": None,
                b"never-there": None,
                b"\xff\t\n": TreeEntry(SYMLINK, blob),
            },
        )
        entries = scratch.read_tree(tree)
        assert set(entries) == {b"a", b"c/d", b"\xff\t\n"}
        assert entries[b"a"] == TreeEntry(EXECUTABLE_FILE, blob)
        assert scratch.write_tree(None, {}) == scratch.write_tree(tree, dict.fromkeys(entries))


def test_file_replaces_folder_and_folder_replaces_file(source: Builder) -> None:
    commit = source.commit({b"folder/x": b"1", b"folder/y/z": b"1", b"file": b"1"})
    with ScratchObjects(Repository(source.path)) as scratch:
        entry = TreeEntry(REGULAR_FILE, scratch.write_blob(b"2"))
        assert set(scratch.read_tree(scratch.write_tree(commit, {b"folder": entry, b"file/deep/x": entry}))) == {
            b"folder",
            b"file/deep/x",
        }
        explicit = {b"folder/x": None, b"folder/y/z": None, b"folder": entry, b"file": None, b"file/x": entry}
        assert set(scratch.read_tree(scratch.write_tree(commit, explicit))) == {b"folder", b"file/x"}


@pytest.mark.parametrize("path", [b".git/config", b"a/.GIT/x", b"../x", b"/x", b"a//b", b"a/./b", b""])
def test_unsafe_path_is_not_written(source: Builder, path: bytes) -> None:
    commit = source.commit({b"a": b"1"})
    with ScratchObjects(Repository(source.path)) as scratch:
        entry = TreeEntry(REGULAR_FILE, scratch.write_blob(b"2"))
        with pytest.raises(TreeNotWritten):
            scratch.write_tree(commit, {path: entry})


def test_new_files_that_exclude_each_other_are_not_written(source: Builder) -> None:
    commit = source.commit({b"a": b"1"})
    with ScratchObjects(Repository(source.path)) as scratch:
        entry = TreeEntry(REGULAR_FILE, scratch.write_blob(b"2"))
        with pytest.raises(TreeNotWritten, match="folder above"):
            scratch.write_tree(commit, {b"x": entry, b"x/y": entry})


@pytest.fixture(params=["sha1", "sha256"])
def any_format(tmp_path: Path, request: pytest.FixtureRequest) -> Builder:
    return Builder(tmp_path / "any.git", object_format=request.param)


def _lay_out(folder: Path, repository: Repository, tree: str, files: dict[bytes, bytes]) -> None:
    """Files of a tree and of its git directory, as an environment would lay them in a container."""
    for path, content in files.items():
        target = folder / ".git" / path.decode()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for path, entry in repository.read_tree(tree).items():
        target = folder / path.decode()
        target.parent.mkdir(parents=True, exist_ok=True)
        content = next(iter(repository.read_blobs([entry.oid])))[1]
        if entry.mode == SYMLINK:
            target.symlink_to(content.decode())
        else:
            target.write_bytes(content)
            target.chmod(0o755 if entry.mode == EXECUTABLE_FILE else 0o644)


def test_single_commit_repository_holds_its_tree_and_nothing_else(any_format: Builder, tmp_path: Path) -> None:
    any_format.commit({b"secret.py": b"the future fix"}, branch="future", parents=[])
    base = any_format.commit(
        {
            b"a.py": b"1\n",
            b"run": (EXECUTABLE, b"#!/bin/sh\n"),
            b"link": (LINK, b"a.py"),
            b"d/e/crlf": b"x\r\n",
            "d/é b".encode(): b"",
        },
        branch="main",
        parents=[],
    )
    any_format.commit({b"a.py": b"2\n"})
    repository = Repository(any_format.path)
    with ScratchObjects(repository) as scratch:
        files = scratch.repository_files(scratch.single_commit(base, "Base\n\nstate of the repository"))
    work = tmp_path / "work"
    work.mkdir()
    _lay_out(work, repository, base, files)
    assert git(work, "status", "--porcelain", "--ignored") == b""
    assert git(work, "fsck", "--strict", "--full", "--no-dangling") == b""
    assert git(work, "log", "--all", "--format=%an <%ae> %aI %cI %P|%s") == (
        b"evalpipe <evalpipe@example.invalid> 2000-01-01T00:00:00+00:00 2000-01-01T00:00:00+00:00 |Base\n"
    )
    assert git(work, "symbolic-ref", "HEAD") == b"refs/heads/main\n"
    stored = git(work, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    expected = git(any_format.path, "rev-list", "--objects", "--no-object-names", any_format.tree(base)).split()
    commit = git(work, "rev-parse", "HEAD").split()
    assert sorted(stored) == sorted(set(expected) | set(commit))
    assert git(work, "remote") == b""
    allowed = {b"HEAD", b"config", b"index", b"refs/heads/main"}
    assert {path for path in files if not path.startswith(b"objects/pack/pack-")} == allowed


def test_scratch_lies_where_the_repository_says_and_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    source = tmp_path / "source.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(source)], check=True)
    folder = tmp_path / "scratch"
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    abandoned = folder / f"evalpipe-scratch-{gone.pid}-x"
    abandoned.mkdir(parents=True)
    with ScratchObjects(Repository(source, folder)):
        (own,) = folder.glob(f"evalpipe-scratch-{os.getpid()}-*")
        remove_abandoned_scratch(folder)
        assert own.exists()
    assert list(folder.iterdir()) == []
