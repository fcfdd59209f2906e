from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evalpipe.history.candidates import MiningRules
from evalpipe.history.errors import (
    CommitMissing,
    EmptyRepository,
    HistoryError,
    MainlineMissing,
    NotARepository,
    ObjectMissing,
    ShallowRepository,
    SourceUnreachable,
)
from evalpipe.history.git_command import missing_object
from evalpipe.history.mining import Mining
from evalpipe.history.repository import Repository, source_tip, update_mirror
from evalpipe.history.scratch import ScratchObjects
from evalpipe_tests.history.builder import Builder, git


def test_mirror_has_the_branches_and_the_default_branch_of_its_source(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    first = source.commit({b"a": b"1"})
    source.commit({b"a": b"2"}, branch="topic/x", parents=[first])
    mirror = update_mirror(str(source.path), tmp_path / "lake" / "mirror.git")
    assert mirror.branches() == ["main", "topic/x"]
    assert mirror.mainline_tip(None) == ("main", first)
    assert mirror.mainline_tip("topic/x") == ("topic/x", source.branches["topic/x"])


def test_the_tip_of_a_source_is_asked_without_a_mirror(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    first = source.commit({b"a": b"1"})
    topic = source.commit({b"a": b"2"}, branch="topic/x", parents=[first])
    assert source_tip(str(source.path), None) == first
    assert source_tip(str(source.path), "topic/x") == topic
    assert source_tip(str(source.path), "gone") is None
    moved = source.commit({b"a": b"3"})
    assert source_tip(str(source.path), None) == moved
    with pytest.raises(NotARepository):
        source_tip(str(tmp_path / "nowhere"), None)


def test_update_follows_new_rewritten_and_deleted_branches(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    first = source.commit({b"a": b"1"})
    source.commit({b"a": b"2"}, branch="gone", parents=[first])
    source.commit({b"a": b"3"}, branch="rewritten", parents=[first])
    update_mirror(str(source.path), tmp_path / "mirror.git")
    git(source.path, "branch", "-D", "gone")
    source.commit({b"a": b"4"}, branch="gone/now-a-folder", parents=[first])
    rewritten = source.commit({b"a": b"5"}, branch="rewritten", parents=[first])
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    assert mirror.branches() == ["gone/now-a-folder", "main", "rewritten"]
    assert mirror.mainline_tip("rewritten") == ("rewritten", rewritten)


def test_kept_commit_outlives_its_branch_and_a_garbage_collection(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    first = source.commit({b"a": b"1"})
    mined = source.commit({b"a": b"2"}, branch="main")
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    mirror.keep([mined, mined])
    mirror.keep([mined])
    source.point("main", first)
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    git(mirror.path, "gc", "--quiet", "--prune=now")
    assert mirror.mainline_tip("main") == ("main", first)
    assert set(mirror.read_tree(mined)) == {b"a"}


def test_missing_mainline_lists_the_branches_that_exist(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    source.commit({b"a": b"1"}, branch="trunk")
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    with pytest.raises(MainlineMissing, match=r"no branch 'main'.*trunk"):
        mirror.mainline_tip("main")


def test_source_with_detached_head_asks_for_a_mainline(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    commit = source.commit({b"a": b"1"})
    git(source.path, "update-ref", "--no-deref", "HEAD", commit)
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    with pytest.raises(MainlineMissing, match="names no default branch"):
        mirror.mainline_tip(None)


def test_folder_that_is_no_repository(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    with pytest.raises(NotARepository, match="plain is not a git repository"):
        update_mirror(str(folder), tmp_path / "mirror.git")


def test_folder_inside_another_repository_is_no_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "outer")
    inner = tmp_path / "outer" / "inner"
    inner.mkdir()
    with pytest.raises(NotARepository):
        update_mirror(str(inner), tmp_path / "mirror.git")


def test_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="does not exist"):
        update_mirror(str(tmp_path / "nowhere"), tmp_path / "mirror.git")


def test_empty_repository(tmp_path: Path) -> None:
    Builder(tmp_path / "source.git")
    with pytest.raises(EmptyRepository, match="no branch with a commit"):
        update_mirror(str(tmp_path / "source.git"), tmp_path / "mirror.git")


@pytest.mark.parametrize("as_source", [str, lambda path: f"file://{path}"], ids=["path", "url"])
def test_shallow_source_is_refused_with_the_way_out(tmp_path: Path, as_source: Callable[[Path], str]) -> None:
    source = Builder(tmp_path / "source.git")
    source.commit({b"a": b"1"})
    source.commit({b"a": b"2"})
    git(tmp_path, "clone", "--quiet", "--bare", "--depth=1", f"file://{source.path}", "shallow.git")
    with pytest.raises(ShallowRepository, match="git fetch --unshallow"):
        update_mirror(as_source(tmp_path / "shallow.git"), tmp_path / "mirror.git")
    assert not (tmp_path / "mirror.git").exists()


def test_partial_source_is_refused_with_the_way_out(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    source.commit({b"a": b"1"})
    git(source.path, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--bare", "--filter=blob:none", f"file://{source.path}", "partial.git")
    blob = git(source.path, "rev-parse", "main:a").decode().strip()
    source.path.rename(tmp_path / "gone.git")
    with pytest.raises(ObjectMissing, match=f"partial.git lacks the object {blob}.*git fetch --refetch --no-filter"):
        update_mirror(str(tmp_path / "partial.git"), tmp_path / "mirror.git")
    assert not (tmp_path / "mirror.git").exists()


@pytest.mark.parametrize(
    "complaint",
    [
        "fatal: unable to read {}",
        "fatal: unable to read tree ({})",
        "error: unable to read sha1 file of src/a.py ({})",
        "error: Could not read {}\nfatal: Failed to traverse parents of commit 1",
        "fatal: missing blob object '{}'",
        "fatal: bad object {}",
        "fatal: bad tree object {}",
        "remote: fatal: could not fetch {} from promisor remote",
        "fatal: loose object {} (stored in objects/aa/bb) is corrupt",
    ],
)
def test_every_complaint_of_git_about_a_missing_object_is_understood(complaint: str) -> None:
    for oid in ("a1" * 20, "b2" * 32):
        assert missing_object(complaint.format(oid)) == oid
    assert missing_object("fatal: bad pack header") is None
    assert missing_object(f"fatal: remote error: upload-pack: not our ref {'a1' * 20}") is None


def test_unreachable_source_hides_the_password(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable) as caught:
        update_mirror("http://user:hunter2@localhost:1/team/x.git", tmp_path / "mirror.git")
    assert "hunter2" not in str(caught.value)
    assert "localhost:1/team/x.git" in str(caught.value)


def test_transports_that_run_programs_are_refused(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    with pytest.raises(HistoryError):
        update_mirror(f"ext::sh -c 'touch {marker}'", tmp_path / "mirror.git")
    assert not marker.exists()


def test_call_that_was_killed_half_way_is_repaired(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    source.commit({b"a": b"1"})
    (tmp_path / "mirror.git.partial" / "objects").mkdir(parents=True)
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    newest = source.commit({b"a": b"2"})
    (mirror.path / "refs" / "heads" / "main.lock").touch()
    (mirror.path / "packed-refs.lock").touch()
    (mirror.path / "objects" / "pack").mkdir(exist_ok=True)
    (mirror.path / "objects" / "pack" / "tmp_pack_abc").touch()
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    assert mirror.mainline_tip(None) == ("main", newest)
    assert not list(mirror.path.rglob("tmp_pack_*"))


def test_calls_for_one_mirror_wait_for_each_other(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    commit = source.commit({b"a": b"1"})
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=update_mirror, args=(str(source.path), tmp_path / "mirror.git")) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert Repository(tmp_path / "mirror.git").mainline_tip(None) == ("main", commit)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_repository_of_another_user_is_read(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    commit = source.commit({b"a": b"1"})
    for path in [source.path, *source.path.rglob("*")]:
        os.chown(path, 12345, 12345)
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    assert mirror.mainline_tip(None) == ("main", commit)
    assert set(Repository(source.path).read_tree(commit)) == {b"a"}


def test_checkout_and_linked_worktree_are_read(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    commit = source.commit({b"a": b"1"})
    git(tmp_path, "clone", "--quiet", str(source.path), "checkout")
    git(tmp_path / "checkout", "worktree", "add", "--quiet", str(tmp_path / "linked"), "-b", "linked")
    for folder in ("checkout", "linked"):
        assert set(Repository(tmp_path / folder).read_tree(commit)) == {b"a"}
        assert update_mirror(str(tmp_path / folder), tmp_path / f"{folder}.git").mainline_tip("main")[1] == commit


def test_environment_and_settings_of_the_user_have_no_influence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Builder(tmp_path / "source.git")
    old = source.commit({b"a": b"1\n", b".gitattributes": b"* diff=evil\n"})
    new = source.commit({b"a": b"2\n"})
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    expected = mirror.diff(old, new)
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "attributes").write_text("* -diff\n")
    (home / ".gitconfig").write_text(
        "[diff]\n noprefix = true\n external = false\n context = 0\n[color]\n ui = always\n"
        '[diff "evil"]\n command = false\n textconv = false\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "elsewhere" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "elsewhere" / "objects"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert mirror.diff(old, new) == expected
    assert b"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n" in expected


def test_replace_refs_are_not_followed(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    old = source.commit({b"a": b"1"})
    new = source.commit({b"b": b"2"})
    git(source.path, "replace", old, new)
    assert set(Repository(source.path).read_tree(old)) == {b"a"}


def test_blobs_come_in_the_order_asked_for(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    commit = source.commit({b"a": b"one\n", b"b": b"", b"c": b"\x00\xff\nmissing\n"})
    repository = Repository(source.path)
    tree = repository.read_tree(commit)
    oids = [tree[path].oid for path in (b"c", b"a", b"b", b"a")]
    assert [data for _oid, data in repository.read_blobs(oids)] == [
        b"\x00\xff\nmissing\n",
        b"one\n",
        b"",
        b"one\n",
    ]
    assert repository.read_files(tree, [b"b", b"a"]) == {b"a": b"one\n", b"b": b""}


def test_missing_objects_are_named(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    commit = source.commit({b"a": b"1"})
    repository = Repository(source.path)
    with pytest.raises(CommitMissing, match="1" * 40):
        repository.read_tree("1" * 40)
    with pytest.raises(CommitMissing, match="not a full object id"):
        repository.read_tree("--output=/tmp/x")
    with pytest.raises(ObjectMissing, match="2" * 40):
        list(repository.read_blobs(["2" * 40]))
    with pytest.raises(ObjectMissing, match="is a commit"):
        list(repository.read_blobs([commit]))


def test_reader_that_stops_early_leaves_no_process(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    commit = source.commit({b"%d" % n: b"x" * 100_000 + b"%d" % n for n in range(30)})
    repository = Repository(source.path)
    blobs = repository.read_blobs(entry.oid for entry in repository.read_tree(commit).values())
    assert len(next(blobs)[1]) >= 100_000
    blobs.close()  # type: ignore[attr-defined]
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert not [child for child in children if "cat-file" in Path(f"/proc/{child}/cmdline").read_text()]


def test_diff_of_named_files_holds_exactly_these(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    old = source.commit({b"a": b"file", b"b": b"1\n", b"*": b"1\n", b"link": (0o120000, b"b")})
    new = source.commit({b"a": None, b"a/b": b"inside", b"b": b"2\n", b"*": b"2\n", b"link": b"no link"})
    repository = Repository(source.path)
    only_a = repository.diff(old, new, [b"a"])
    assert b"deleted file mode" in only_a
    assert b"a/a/b" not in only_a
    star = repository.diff(old, new, [b"*"])
    assert star.count(b"diff --git ") == 1
    assert repository.diff(old, new, [b"link"]).count(b"diff --git ") == 2
    everything = repository.diff(old, new, [b"a", b"a/b", b"b", b"*", b"link", b"never-there"])
    assert everything == repository.diff(old, new)
    assert repository.diff(old, new, []) == b""


def test_diff_takes_more_paths_than_a_command_line_holds(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    paths = [b"folder/" + b"%05d" % n + b"x" * 200 for n in range(3000)]
    old = source.commit(dict.fromkeys(paths, b"1\n") | {b"other": b"1\n"})
    new = source.commit(dict.fromkeys(paths, b"2\n") | {b"other": b"2\n"})
    patch = Repository(source.path).diff(old, new, paths)
    assert patch.count(b"diff --git ") == 3000
    assert b"other" not in patch


def test_sha256_repository_is_mirrored(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git", object_format="sha256")
    old = source.commit({b"a": b"1\n"})
    new = source.commit({b"a": b"2\n"})
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    assert len(old) == 64
    assert mirror.mainline_tip(None) == ("main", new)
    assert b"-1\n+2\n" in mirror.diff(old, new)


def test_mirror_does_not_need_its_source_afterwards(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git")
    commit = source.commit({b"a": b"1"})
    mirror = update_mirror(str(source.path), tmp_path / "mirror.git")
    shutil.rmtree(source.path)
    assert next(iter(mirror.read_blobs([mirror.read_tree(commit)[b"a"].oid])))[1] == b"1"


def test_nothing_that_a_source_configures_is_executed(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git")
    old = builder.commit({b"a": b"1\n", b".gitattributes": b"* diff=evil filter=evil\n"})
    new = builder.commit({b"a": b"2\n"})
    git(tmp_path, "clone", "--quiet", str(builder.path), "checkout")
    marker = tmp_path / "executed"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    checkout = tmp_path / "checkout"
    for setting in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "gpg.program",
        "uploadpack.packObjectsHook",
        "credential.helper",
    ):
        git(checkout, "config", setting, str(script))
    git(checkout, "config", "log.showSignature", "true")
    git(checkout, "config", "core.hooksPath", str(tmp_path / "hooks"))
    (tmp_path / "hooks").mkdir()
    for hook in ("reference-transaction", "post-index-change", "post-checkout", "pre-auto-gc"):
        shutil.copy(script, tmp_path / "hooks" / hook)
    mirror = update_mirror(str(checkout), tmp_path / "mirror.git")
    mirror.keep([new])
    for repository in (mirror, Repository(checkout)):
        assert b"-1\n+2\n" in repository.diff(old, new)
        list(Mining(repository, new, MiningRules("x"), None))
        with ScratchObjects(repository) as scratch:
            scratch.apply_patch(old, scratch.diff(old, new))
            scratch.repository_files(scratch.single_commit(new, "m"))
    assert not marker.exists()
    # The traps are real: a plain git walks into one.
    git(checkout, "diff", old, new)
    assert marker.exists()
