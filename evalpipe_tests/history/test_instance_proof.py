"""What an agent's repository may hold, and that the proof sees every way in which more has got in."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from evalpipe.history import Repository, ScratchObjects
from evalpipe.history.instance_proof import InstanceFault, distinctive_lines, prove_repository
from evalpipe_tests.history.builder import Builder, git

PRODUCT = b"def total(values):\n    return sum(values)\n"
MENDED = b"def total(values):\n    return sum(value for value in values if value is not None)\n"
OLD_TEST = b"def test_total():\n    assert total([1, 2]) == 3\n"
NEW_TEST = OLD_TEST + b"def test_total_without_values():\n    assert total([None, 2]) == 2\n"


@pytest.fixture(params=["sha1", "sha256"])
def history(tmp_path: Path, request: pytest.FixtureRequest) -> Builder:
    """A parent with a past, a change on top of it, and every ref that once let an answer through."""
    builder = Builder(tmp_path / "source.git", object_format=request.param)
    builder.commit({b"first.py": b"1\n"}, "root")
    builder.commit({b"product.py": PRODUCT, b"tests/test_product.py": OLD_TEST}, "parent")
    parent = builder.branches["main"]
    fix = builder.commit({b"product.py": MENDED, b"tests/test_product.py": NEW_TEST}, "fix", author_date=1)
    builder.branches["parent"] = parent
    git(builder.path, "tag", "released", fix)
    blob = git(builder.path, "rev-parse", f"{fix}:product.py").decode().strip()
    git(builder.path, "tag", "answer", blob)
    git(builder.path, "update-ref", "refs/notes/commits", fix)
    return builder


def faults(builder: Builder, files: dict[bytes, bytes], start: str | None = None) -> set[InstanceFault]:
    parent, fix = builder.branches["parent"], builder.branches["main"]
    findings = prove_repository(Repository(builder.path), files, start or parent, parent, fix)
    assert all(finding.evidence for finding in findings)
    return {finding.fault for finding in findings}


def test_the_ancestors_of_the_parent_are_proven_and_are_the_whole_honest_history(
    history: Builder, tmp_path: Path
) -> None:
    parent = history.branches["parent"]
    with ScratchObjects(Repository(history.path)) as scratch:
        files = scratch.repository_files(parent)
    assert faults(history, files) == set()
    checkout = tmp_path / "checkout"
    for path, data in files.items():
        target = checkout / ".git" / path.decode()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    assert git(checkout, "log", "--all", "--format=%s") == b"parent\nroot\n"
    assert git(checkout, "fsck", "--strict", "--full") == b""
    fix = history.branches["main"]
    assert b"fatal" not in git(checkout, "rev-parse", "HEAD")
    assert git(checkout, "cat-file", "-t", fix, check=False) == b""


def test_temporary_files_may_lie_on_another_disk_than_the_workspace(
    history: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second disk in memory")
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    with ScratchObjects(Repository(history.path, tmp_path / "scratch")) as scratch:
        files = scratch.repository_files(history.branches["parent"])
    assert faults(history, files) == set()


def test_a_start_without_its_hidden_tests_is_proven_and_keeps_who_and_when(history: Builder) -> None:
    parent = history.branches["parent"]
    with ScratchObjects(Repository(history.path)) as scratch:
        tree = scratch.write_tree(parent, {b"tests/test_product.py": None})
        start = scratch.commit_with_tree(parent, tree)
        files = scratch.repository_files(start)
        told = prove_repository(scratch, files, start, parent, history.branches["main"])
        kept = scratch.command.run("show", "-s", "--format=%P %an %at %cn %ct %s", start)
        wanted = scratch.command.run("show", "-s", "--format=%P %an %at %cn %ct %s", parent)
        assert scratch.commit_with_tree(parent, parent) == parent
        hidden = scratch.read_tree(parent)[b"tests/test_product.py"].oid
        reached = scratch.command.run("rev-list", "--objects", "--no-object-names", start).decode().split()
    assert told == []
    assert start != parent
    assert kept == wanted
    assert hidden not in reached


def test_a_signature_does_not_outlive_the_tree_that_it_signed(history: Builder) -> None:
    parent = history.branches["parent"]
    with ScratchObjects(Repository(history.path)) as scratch:
        raw = scratch.command.run("cat-file", "commit", parent)
        signed = raw.replace(b"\n\n", b"\ngpgsig -----BEGIN\n line\n -----END\nencoding latin1\n\nbreakfast \xe9: ", 1)
        commit = scratch.command.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed).decode().strip()
        made = scratch.commit_with_tree(commit, scratch.write_tree(parent, {b"first.py": None}))
        content = scratch.command.run("cat-file", "commit", made)
    assert b"gpgsig" not in content
    assert b"BEGIN" not in content
    assert b"\nencoding latin1\n\nbreakfast \xe9: parent" in content


def test_the_tree_alone_is_proven_too(history: Builder) -> None:
    parent = history.branches["parent"]
    with ScratchObjects(Repository(history.path)) as scratch:
        start = scratch.single_commit(parent, "as it is")
        findings = prove_repository(scratch, scratch.repository_files(start), start, parent, history.branches["main"])
    assert findings == []


def test_objects_of_the_change_are_seen_even_where_no_ref_reaches_them(history: Builder) -> None:
    parent, fix = history.branches["parent"], history.branches["main"]
    with ScratchObjects(Repository(history.path)) as scratch:
        files = scratch.repository_files(fix)
    hidden = {**files, b"refs/heads/main": parent.encode() + b"\n"}
    assert faults(history, hidden) == {InstanceFault.foreign_object, InstanceFault.object_of_the_change}
    assert InstanceFault.unexpected_ref in faults(history, files)


def test_objects_of_nobody_are_seen(history: Builder) -> None:
    parent = history.branches["parent"]
    with ScratchObjects(Repository(history.path)) as scratch:
        stray = scratch.commit_with_tree(
            parent, scratch.write_tree(parent, {b"x": scratch.read_tree(parent)[b"first.py"]})
        )
        files = scratch.repository_files(stray)
    assert faults(history, {**files, b"refs/heads/main": parent.encode() + b"\n"}) == {InstanceFault.foreign_object}


@pytest.mark.parametrize(
    "path",
    [
        b"logs/HEAD",
        b"ORIG_HEAD",
        b"FETCH_HEAD",
        b"packed-refs",
        b"objects/info/alternates",
        b"refs/tags/v1",
        b"shallow",
        b"hooks/post-checkout",
        b"worktrees/w/HEAD",
        b"modules/sub/HEAD",
        b"refs/stash",
        b"objects/ab/cdef",
        b"info/grafts",
    ],
)
def test_a_file_that_a_fresh_repository_does_not_have_is_a_fault(history: Builder, path: bytes) -> None:
    with ScratchObjects(Repository(history.path)) as scratch:
        files = scratch.repository_files(history.branches["parent"])
    assert faults(history, {**files, path: b"0" * 40 + b"\n"}) == {InstanceFault.unexpected_file}


@pytest.mark.parametrize(
    "setting",
    [
        b'[remote "origin"]\n\turl = there\n',
        b"[include]\n\tpath = ../x\n",
        b"[core]\n\tfsmonitor = ./x\n",
        b"[core]\n\thooksPath = x\n",
    ],
)
def test_a_setting_that_a_fresh_repository_does_not_have_is_a_fault(history: Builder, setting: bytes) -> None:
    with ScratchObjects(Repository(history.path)) as scratch:
        files = scratch.repository_files(history.branches["parent"])
    assert faults(history, {**files, b"config": files[b"config"] + setting}) == {InstanceFault.unexpected_setting}


def test_an_answer_in_the_past_is_a_fault_of_the_history_and_not_of_the_tree(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git")
    builder.commit({b"product.py": PRODUCT}, "root")
    builder.commit({b"product.py": MENDED}, "first try")
    builder.commit({b"product.py": PRODUCT}, "revert it")
    builder.branches["parent"] = builder.branches["main"]
    builder.commit({b"product.py": MENDED, b"tests/test_product.py": NEW_TEST}, "again, with a test")
    parent = builder.branches["parent"]
    repository = Repository(builder.path)
    assert distinctive_lines(repository, parent, builder.branches["main"]) >= {
        b"return sum(value for value in values if value is not None)"
    }
    with ScratchObjects(repository) as scratch:
        whole = scratch.repository_files(parent)
        start = scratch.single_commit(parent, "as it is")
        alone = scratch.repository_files(start)
        assert prove_repository(scratch, alone, start, parent, builder.branches["main"]) == []
    # One of five distinctive lines: the tests are new.
    assert faults(builder, whole) == set()
    builder.branches["main"] = builder.commit({b"product.py": MENDED}, "again", parents=[parent], branch="other")
    assert faults(builder, whole) == {InstanceFault.lines_of_the_change}


def test_lines_that_the_parent_has_anywhere_or_that_are_short_tell_nothing(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git")
    builder.commit({b"a.py": b"shared_between_files = 1\n", b"b.py": b"x\n"}, "root")
    parent = builder.branches["main"]
    builder.commit({b"b.py": b"  shared_between_files = 1\nshort\n\n    only_in_the_change = 2  \n"}, "change")
    found = distinctive_lines(Repository(builder.path), parent, builder.branches["main"])
    assert found == {b"only_in_the_change = 2"}


def test_faults_are_told_together(history: Builder) -> None:
    with ScratchObjects(Repository(history.path)) as scratch:
        files = scratch.repository_files(history.branches["main"])
    setting = {b"config": files[b"config"] + b"[user]\n\tname = x\n"}
    assert faults(history, {**files, **setting}) == {
        InstanceFault.unexpected_setting,
        InstanceFault.unexpected_ref,
        InstanceFault.foreign_object,
        InstanceFault.object_of_the_change,
    }
