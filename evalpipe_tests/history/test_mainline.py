from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path

import pytest

from evalpipe.history.errors import CommitMissing, GitFailed
from evalpipe.history.mainline import MainlineCommit, mainline_authors, parsed_files, plain_paths, walk_mainline
from evalpipe.history.repository import Repository
from evalpipe_tests.history.builder import EXECUTABLE, LINK, SUBMODULE, Builder, git


@pytest.fixture
def source(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "source.git")


def walked(source: Builder) -> list[MainlineCommit]:
    return list(walk_mainline(Repository(source.path), source.branches["main"]))


def changed(commit: MainlineCommit) -> dict[bytes, tuple[int, int]]:
    return {file.path: (file.old_mode, file.new_mode) for file in parsed_files(commit.raw_files)}


def test_oldest_first_with_trees_dates_and_messages(source: Builder) -> None:
    first = source.commit({b"a": b"1"}, "first\n\nbody\n", author_date=1_600_000_000)
    second = source.commit({b"a": b"2"}, "second", author="Grace Hopper <g@example.org>")
    one, two = walked(source)
    assert (one.commit, one.tree, one.parents) == (first, source.tree(first), ())
    assert (two.commit, two.tree, two.parents) == (second, source.tree(second), (first,))
    assert (one.author_time, one.commit_time, one.message.strip()) == (1_600_000_000, 1_700_003_600, "first\n\nbody")
    assert two.author == "Grace Hopper"


def test_every_path_and_mode_is_exact(source: Builder) -> None:
    source.commit({b"run": b"#!", b"gone": b"1", b"sub": (SUBMODULE, b"1" * 40)})
    files = {
        b"run": (EXECUTABLE, b"#!"),
        b"gone": None,
        b"sub": (SUBMODULE, b"2" * 40),
        b"my file": b"1",
        b'q"uote': b"1",
        b"tab\there": b"1",
        b"new\nline": b"1",
        b":colon": b"1",
        b"\n:newline first": b"1",
        b"\xff\xfe": b"1",
        "é".encode(): (LINK, b"run"),
    }
    source.commit(files)
    source.commit({}, "nothing")
    source.commit({b"last": b"1"}, "")
    _root, change, nothing, last = walked(source)
    assert changed(change) == {
        b"run": (0o100644, 0o100755),
        b"gone": (0o100644, 0),
        b"sub": (0o160000, 0o160000),
        b"my file": (0, 0o100644),
        b'q"uote': (0, 0o100644),
        b"tab\there": (0, 0o100644),
        b"new\nline": (0, 0o100644),
        b":colon": (0, 0o100644),
        b"\n:newline first": (0, 0o100644),
        b"\xff\xfe": (0, 0o100644),
        "é".encode(): (0, 0o120000),
    }
    assert nothing.raw_files == b""
    assert changed(last) == {b"last": (0, 0o100644)}


def test_message_in_latin1_or_with_stray_bytes_is_read(source: Builder) -> None:
    source.commit({b"a": b"1"}, b"caf\xe9\n")
    assert walked(source)[0].message.strip() == "caf\ufffd"


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        (b" 1700000000 +9999", 1_700_000_000),
        (b"", 0),
        (b" Mon Jan 1 2020", 0),
        (b" -3600 +0000", 0),
        (b" 99999999999 +0000", 99_999_999_999),
        (b" 999999999999999 +0000", 253_402_300_799),
        (b" " + b"9" * 30 + b" +0000", 253_402_300_799),
    ],
)
def test_odd_date_costs_no_commit(source: Builder, date: bytes, seconds: int) -> None:
    def odd(commit: str) -> str:
        raw = git(source.path, "cat-file", "commit", commit)
        raw = re.sub(rb"(?m)^((?:author|committer) .*>) .*$", lambda found: found[1] + date, raw)
        made = git(source.path, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw)
        return made.decode().strip()

    base = odd(source.commit({b"a": b"1"}))
    side = odd(source.commit({b"b": b"1"}, branch="topic", parents=[base]))
    source.commit({b"b": b"1"}, "merge", parents=[base, side])
    source.commit({b"c": b"1"}, "after")
    first, merge, after = walked(source)
    assert (first.commit, first.author_time, first.commit_time) == (base, seconds, seconds)
    assert [(one.commit, one.author_time) for one in merge.brought] == [(side, seconds)]
    assert after.message.strip() == "after"


def test_what_is_no_commit_is_said_and_not_passed_over(source: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    source.commit({b"a": b"1"})
    source.commit({b"a": b"2"})
    monkeypatch.setattr("evalpipe.history.mainline._MAINLINE_FIELDS", ("%H", "%T", "%P", "%an", "%at", "%an", "%B"))
    with pytest.raises(GitFailed, match="is no commit"):
        walked(source)


def test_line_ends_of_other_systems_are_read_as_gits(source: Builder) -> None:
    base = source.commit({b"a": b"1"}, "first\r\n\r\nSee merge request a/b!1\r\n")
    side = source.commit({b"b": b"1"}, "side\r\n\r\nbody", branch="topic", parents=[base])
    source.commit({b"b": b"1"}, "merge", parents=[base, side])
    first, merge = walked(source)
    assert first.message == "first\n\nSee merge request a/b!1\n"
    assert merge.brought[0].message.strip() == "side\n\nbody"


def test_merge_shows_its_difference_to_the_first_parent_and_what_it_brought(source: Builder) -> None:
    base = source.commit({b"a": b"1"})
    work = source.commit({b"b": b"1"}, "work", branch="topic", parents=[base])
    main = source.commit({b"c": b"1"})
    back = source.commit({b"c": b"1"}, "Merge branch 'main' into topic", branch="topic", parents=[work, main])
    more = source.commit({b"d": b"1"}, "more", branch="topic", parents=[back])
    merge = source.commit({b"b": b"1", b"d": b"1"}, "merge", parents=[main, more])
    after = source.commit({b"e": b"1"}, "after")
    commits = walked(source)
    assert [commit.commit for commit in commits] == [base, main, merge, after]
    assert changed(commits[2]).keys() == {b"b", b"d"}
    assert [commit.commit for commit in commits[2].brought] == [work, back, more]
    assert [commit.brought for commit in commits if commit.commit != merge] == [(), (), ()]


def test_each_merge_brings_only_what_is_new(source: Builder) -> None:
    base = source.commit({b"a": b"1"})
    one = source.commit({b"b": b"1"}, branch="one", parents=[base])
    two = source.commit({b"c": b"1"}, branch="two", parents=[one])
    three = source.commit({b"d": b"1"}, branch="three", parents=[base])
    first = source.commit({b"d": b"1"}, parents=[base, three])
    second = source.commit({b"b": b"1"}, parents=[first, one])
    third = source.commit({b"c": b"1"}, parents=[second, two, one])
    fourth = source.commit({}, parents=[third, one])
    brought = {commit.commit: [branch.commit for branch in commit.brought] for commit in walked(source)}
    assert brought == {base: [], first: [three], second: [one], third: [two], fourth: []}


def test_octopus_brings_all_its_branches(source: Builder) -> None:
    base = source.commit({b"a": b"1"})
    tips = [source.commit({b"%d" % n: b"1"}, branch=f"t{n}", parents=[base]) for n in range(3)]
    source.commit({b"%d" % n: b"1" for n in range(3)}, parents=[base, *tips])
    assert {commit.commit for commit in walked(source)[-1].brought} == set(tips)


def test_unrelated_history_is_brought_too(source: Builder) -> None:
    base = source.commit({b"a": b"1"})
    other = source.commit({b"b": b"1"}, branch="other", parents=[])
    source.commit({b"b": b"1"}, parents=[base, other])
    assert [commit.commit for commit in walked(source)[-1].brought] == [other]


def test_walk_can_begin_behind_a_commit(source: Builder) -> None:
    base = source.commit({b"a": b"1"})
    early = source.commit({b"b": b"1"}, "early", branch="early", parents=[base])
    middle = source.commit({b"c": b"1"}, author="Grace <g@example.org>")
    late = source.commit({b"d": b"1"}, "late", branch="late", parents=[middle])
    first = source.commit({b"b": b"1"}, "first", parents=[middle, early])
    second = source.commit({b"d": b"1"}, "second", parents=[first, late])
    repository = Repository(source.path)
    whole = walked(source)
    for place, after in enumerate((base, middle, first, second), start=1):
        assert list(walk_mainline(repository, second, after)) == whole[place:]
    assert mainline_authors(repository, first, 2) == [(middle, "Grace"), (first, "Ada")]


def test_commits_larger_than_a_block_are_whole(source: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    source.commit({b"a%d" % number: b"1" for number in range(40)})
    topic = source.commit({b"b": b"1"}, "word " * 50, branch="topic")
    source.commit({b"c": b"1"})
    source.commit({b"b": b"1"}, "merge", parents=[source.branches["main"], topic])
    whole = walked(source)
    for block in (1, 7, 64, 500):
        monkeypatch.setattr("evalpipe.history.mainline._CHUNK", block)
        assert walked(source) == whole


def test_paths_are_plain_when_nothing_but_contents_changed(source: Builder) -> None:
    source.commit({b"a": b"1", b"b 000000 c": b"1", b"sub": (SUBMODULE, b"1" * 40)})
    source.commit({b"a": b"2", b"d": b"1"})
    source.commit({b"a": None})
    source.commit({b"sub": (SUBMODULE, b"2" * 40)})
    source.commit({b"b 000000 c": b"2"})
    paths = [plain_paths(commit.raw_files) for commit in walked(source)]
    assert paths == [None, [b"a", b"d"], None, None, None]


def test_tip_that_is_not_there(source: Builder) -> None:
    source.commit({b"a": b"1"})
    with pytest.raises(CommitMissing):
        next(walk_mainline(Repository(source.path), "1" * 40))


def test_reader_may_stop_early(source: Builder) -> None:
    base = source.commit({b"a": b"1"})
    topic = source.commit({b"b": b"1"}, branch="topic", parents=[base])
    source.commit({b"b": b"1"}, parents=[base, topic])
    source.commit({b"c": b"1"})
    walk = walk_mainline(Repository(source.path), source.branches["main"])
    assert len(list(islice(walk, 2))) == 2
    walk.close()  # type: ignore[attr-defined]
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert not [child for child in children if b"log" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")]


def test_stretches_do_not_show(source: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    tip = source.commit({b"a": b"0"}, "root")
    for number in range(7):
        side = source.commit({b"b": b"%d" % number}, f"side {number}", branch=None, parents=[tip])
        tip = source.commit({b"b": b"%d" % number}, f"merge {number}", parents=[tip, side])
        tip = source.commit({b"a": b"%d" % number}, f"work {number}")
    whole = walked(source)
    assert [len(commit.brought) for commit in whole] == [0, *([1, 0] * 7)]
    for stretch in (1, 2, 4, 15):
        monkeypatch.setattr("evalpipe.history.mainline._STRETCH", stretch)
        assert walked(source) == whole
