"""The instance as git and an agent see it: the tree, the honest past, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.agents import HistoryKind, Instance, Instances, InstanceUnproven, make_instance
from evalpipe.history import Repository, ScratchObjects
from evalpipe_tests.history.builder import EXECUTABLE, LINK, Builder, File, git

OLD_TEST = b"def test_noon(): assert noon() == 11\n"


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    made = Builder(tmp_path / "source.git")
    made.commit({b"first": b"1\n", b"tests/test_old.py": b"def test_older(): pass\n"}, "first")
    files: dict[bytes, File] = {
        b"clock.py": b"def noon():\n    return 11\n",
        b"run": (EXECUTABLE, b"#!/bin/sh\n"),
        b"link": (LINK, b"run"),
    }
    made.branches["parent"] = made.commit({**files, b"caf\xe9 x": b"\r\n", b"tests/test_clock.py": OLD_TEST}, "parent")
    made.commit(
        {b"clock.py": b"def noon():\n    return 12\n", b"tests/test_clock.py": b"def test_noon(): ...\n"}, "fix"
    )
    return made


def make(builder: Builder, history: HistoryKind, *hidden: bytes) -> Instance:
    with ScratchObjects(Repository(builder.path)) as scratch:
        return make_instance(scratch, builder.branches["parent"], builder.branches["main"], hidden, history)


def lay(builder: Builder, instance: Instance, folder: Path) -> Path:
    with ScratchObjects(Repository(builder.path)) as scratch:
        for entry in instance.entries(scratch):
            path = folder / entry.path.decode("utf-8", "surrogateescape")
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.mode == LINK:
                path.symlink_to(entry.data.decode())
            else:
                path.write_bytes(entry.data)
                path.chmod(entry.mode & 0o777)
    return folder


@pytest.mark.parametrize("history", HistoryKind)
def test_git_finds_a_clean_repository_that_ends_at_the_parent(
    builder: Builder, history: HistoryKind, tmp_path: Path
) -> None:
    folder = lay(builder, make(builder, history), tmp_path / "instance")
    parent, fix = builder.branches["parent"], builder.branches["main"]
    assert git(folder, "status", "--porcelain=v1", "--ignored") == b""
    assert git(folder, "fsck", "--strict", "--full") == b""
    assert git(folder, "rev-parse", "HEAD^{tree}").decode().strip() == builder.tree(parent)
    assert git(folder, "remote") == git(folder, "tag") == git(folder, "stash", "list") == b""
    assert git(folder, "for-each-ref", "--format=%(refname)") == b"refs/heads/main\n"
    stored = git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    if history is HistoryKind.ANCESTORS:
        assert git(folder, "log", "--all", "--format=%H %s").decode().splitlines()[0] == f"{parent} parent"
        assert set(stored) == set(git(builder.path, "rev-list", "--objects", "--no-object-names", parent).split())
    else:
        assert git(folder, "log", "--all", "--format=%P") == b"\n"
        assert parent.encode() not in stored
    assert fix.encode() not in stored
    names = {str(path.relative_to(folder / ".git")).split("/")[0] for path in (folder / ".git").rglob("*")}
    assert names == {"HEAD", "config", "index", "objects", "refs"}


@pytest.mark.parametrize("history", HistoryKind)
def test_hidden_tests_are_neither_in_the_tree_nor_in_the_commit_to_start_from(
    builder: Builder, history: HistoryKind, tmp_path: Path
) -> None:
    folder = lay(builder, make(builder, history, b"tests/test_clock.py"), tmp_path / "instance")
    assert git(folder, "status", "--porcelain=v1", "--ignored") == b""
    assert not (folder / "tests" / "test_clock.py").exists()
    assert (folder / "tests" / "test_old.py").exists()
    hidden = git(builder.path, "rev-parse", f"{builder.branches['parent']}:tests/test_clock.py").decode().strip()
    assert git(folder, "cat-file", "-e", hidden, check=False) == b""
    assert hidden.encode() not in git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    subjects = git(folder, "log", "--all", "--format=%s").decode().splitlines()
    assert subjects == (["parent", "first"] if history is HistoryKind.ANCESTORS else ["The repository as it is"])


def test_an_answer_in_the_past_is_not_handed_out_and_the_error_says_what_to_do(tmp_path: Path) -> None:
    made = Builder(tmp_path / "source.git")
    made.commit({b"clock.py": b"def noon():\n    return 11\n"}, "first")
    mended = {b"clock.py": b"def noon():\n    return hours_of_the_morning()\n"}
    made.commit(mended, "the answer")
    made.branches["parent"] = made.commit({b"clock.py": b"def noon():\n    return 11\n"}, "revert")
    made.commit(mended, "the answer again")
    with pytest.raises(InstanceUnproven, match=r"lines_of_the_change.*set `history: none` in the sweep"):
        make(made, HistoryKind.ANCESTORS)
    assert make(made, HistoryKind.NONE).git_files


def test_the_latest_instances_are_kept_within_their_room(builder: Builder) -> None:
    repository = Repository(builder.path)
    parent, fix = builder.branches["parent"], builder.branches["main"]
    wanted = [(parent, fix, (), HistoryKind.ANCESTORS), (parent, fix, (), HistoryKind.NONE)]
    roomy, narrow = Instances(), Instances(kept_bytes=1)
    for instances, kept in ((roomy, True), (narrow, False)):
        first = [instances.get(repository, *one) for one in wanted]
        again = [instances.get(repository, *one) for one in wanted]
        assert first == again
        assert (first[0] is again[0]) is kept
        assert instances.get(repository, *wanted[1]) is again[1]
