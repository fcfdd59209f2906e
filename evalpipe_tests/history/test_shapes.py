from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evalpipe.history.decision import Category, MiningReason
from evalpipe.history.shapes import Shape
from evalpipe_tests.history.builder import Builder
from evalpipe_tests.history.mining import START, WORK, merge_of, mined, only


def test_direct_commit(clock: Builder) -> None:
    parent = clock.branches["main"]
    commit = clock.commit(WORK, "Repair the hand", author_date=START)
    candidate = only(clock)
    assert (candidate.shape, candidate.number, candidate.reason) == (Shape.direct, None, MiningReason.kept)
    assert (candidate.commit, candidate.parent, candidate.tree) == (commit, parent, clock.tree(commit))
    assert candidate.candidate_id == f"clock-{commit[:10]}"
    assert candidate.author_date == datetime.fromtimestamp(START, UTC)
    assert candidate.merge_date == datetime.fromtimestamp(clock.clock, UTC)
    assert candidate.source_files == (b"src/clock.py",)
    assert candidate.test_files == (b"tests/test_clock.py",)
    assert (candidate.files_changed, candidate.lines_added, candidate.lines_removed) == (2, 3, 1)
    assert candidate.decision == "kept"


@pytest.mark.parametrize(
    "message",
    [
        "Repair (#12)",
        "Merged PR 12: Repair",
        "Repair\n\nSee merge request team/clock!12",
        "Merged in fix (pull request #12)\n\nRepair",
    ],
)
def test_squash_of_every_forge(clock: Builder, message: str) -> None:
    commit = clock.commit(WORK, message)
    candidate = only(clock)
    assert (candidate.shape, candidate.number) == (Shape.squash, 12)
    assert candidate.candidate_id == f"clock-12-{commit[:10]}"


def test_merge_is_one_change_by_its_branch_author(clock: Builder) -> None:
    merge_of(clock, WORK, "Merge pull request #12 from grace/fix\n\nRepair", "one", "two", "three")
    candidate = only(clock)
    assert (candidate.shape, candidate.number, candidate.author) == (Shape.merge, 12, "Grace")
    assert candidate.subject == "Merge pull request #12 from grace/fix"
    assert candidate.author_date == datetime.fromtimestamp(START + 2 * 3600, UTC)
    assert candidate.files_changed == 3


def test_rebase_merge_is_one_change(clock: Builder) -> None:
    parent = clock.branches["main"]
    clock.commit({b"src/clock.py": b"1\n", b"draft": b"1\n"}, "Repair, part 1 (#12)")
    clock.commit({b"src/clock.py": b"2\n", b"draft": None}, "Repair, part 2 (#12)")
    last = clock.commit({b"tests/test_clock.py": b"1\n"}, "Test it (#12)")
    clock.commit({b"src/clock.py": b"3\n"}, "Something else (#13)")
    change, other = mined(clock)
    assert (change.shape, change.commit, change.parent) == (Shape.rebase, last, parent)
    assert change.source_files == (b"src/clock.py",)
    assert (change.files_changed, change.lines_added, change.lines_removed) == (2, 2, 1)
    assert (change.reason, change.category) == (MiningReason.kept, Category.single_file_repair)
    assert (other.shape, other.number) == (Shape.squash, 13)


def test_same_number_later_on_is_another_change(clock: Builder) -> None:
    clock.commit(WORK, "Repair (#12)")
    clock.commit({b"x": b"1"}, "Other")
    clock.commit({b"src/clock.py": b"5\n"}, "Repair again (#12)")
    assert [candidate.shape for candidate in mined(clock)] == [Shape.squash, Shape.direct, Shape.squash]


def test_gitlab_squash_with_merge_commit_is_one_change(clock: Builder) -> None:
    base = clock.branches["main"]
    squash = clock.commit(WORK, "Repair", branch="topic", parents=[base])
    merge = clock.commit(
        WORK, "Merge branch 'fix' into 'main'\n\nRepair\n\nSee merge request team/clock!12", parents=[base, squash]
    )
    assert clock.tree(merge) == clock.tree(squash)
    candidate = only(clock)
    assert (candidate.commit, candidate.shape, candidate.number) == (merge, Shape.merge, 12)
    assert candidate.reason is MiningReason.kept


def test_branch_that_took_in_the_mainline_changes_only_its_own_files(clock: Builder) -> None:
    base = clock.branches["main"]
    work = clock.commit(WORK, "work", branch="topic", parents=[base])
    main = clock.commit({b"other.py": b"1"}, "Other")
    back = clock.commit({b"other.py": b"1"}, "Merge branch 'main' into topic", branch="topic", parents=[work, main])
    clock.commit(WORK, "Merge pull request #12 from a/topic", parents=[main, back])
    _other, merge = mined(clock)
    assert (merge.shape, merge.files_changed, merge.reason) == (Shape.merge, 2, MiningReason.kept)


@pytest.mark.parametrize(
    "subject",
    [
        "Merge branch 'main' into topic",
        "Merge branch 'main' of example.org:team/clock",
        "Merge remote-tracking branch 'origin/main'",
        "Merge branch 'master'",
    ],
)
def test_foxtrot_is_a_back_merge(clock: Builder, subject: str) -> None:
    base = clock.branches["main"]
    topic = clock.commit({b"src/clock.py": b"9\n"}, "work", branch="topic", parents=[base])
    others = clock.commit(WORK, "Other people's work (#3)")
    clock.commit(WORK, subject, parents=[topic, others])
    work, foxtrot = mined(clock)
    assert work.shape is Shape.direct
    assert (foxtrot.shape, foxtrot.reason) == (Shape.back_merge, MiningReason.back_merge)


def test_mainline_of_another_name_is_known_to_the_rules(clock: Builder) -> None:
    base = clock.branches["main"]
    topic = clock.commit({b"x": b"9\n"}, "work", branch="topic", parents=[base])
    others = clock.commit(WORK, "Other people's work (#3)")
    clock.commit(WORK, "Merge branch 'stable' into topic", parents=[topic, others])
    assert mined(clock)[-1].shape is Shape.merge
    assert mined(clock, mainline="stable")[-1].shape is Shape.back_merge


def test_merge_of_what_was_already_there_is_a_back_merge(clock: Builder) -> None:
    old = clock.branches["main"]
    tip = clock.commit({b"x": b"1"})
    clock.commit(WORK, "Merge pull request #12 from a/old", parents=[tip, old])
    assert mined(clock)[-1].reason is MiningReason.back_merge


def test_octopus(clock: Builder) -> None:
    base = clock.branches["main"]
    tips = [clock.commit({b"src/%d.py" % n: b"1"}, branch=f"t{n}", parents=[base]) for n in range(2)]
    clock.commit(WORK, "Merge branches 't0' and 't1'", parents=[base, *tips])
    candidate = only(clock)
    assert (candidate.shape, candidate.reason) == (Shape.octopus, MiningReason.kept)


def test_reverts_are_linked_and_what_they_revert_stays(clock: Builder) -> None:
    work = clock.commit(WORK, "Repair (#12)")
    back = {b"src/clock.py": b"0\n", b"tests/test_clock.py": b"0\n"}
    revert = clock.commit(back, f'Revert "Repair (#12)"\n\nThis reverts commit {work}.')
    clock.commit(WORK, f'Reapply "Repair (#12)"\n\nThis reverts commit {revert}.')
    clock.commit(back, 'Revert "Repair" (#14)\n\nReverts team/clock#12')
    merge_of(clock, WORK, "Merge pull request #15 from a/revert", f"Take it back\n\nThis reverts commit {work}.")
    candidates = mined(clock)
    assert [candidate.reason for candidate in candidates] == [MiningReason.kept] + [MiningReason.revert] * 4
    assert [candidate.reverts for candidate in candidates] == [None, work, revert, work, work]
