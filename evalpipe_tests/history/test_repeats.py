"""Reverts, what lands again, and what comes twice: each is linked to the change before, and nothing is a task twice."""

from __future__ import annotations

import pytest

from evalpipe.history.candidates import Candidate, MiningRules
from evalpipe.history.decision import MiningReason
from evalpipe.history.mining import Mining
from evalpipe.history.repository import Repository
from evalpipe_tests.history.builder import Builder, File
from evalpipe_tests.history.mining import WORK, merge_of, mined

BACK: dict[bytes, File] = {b"src/clock.py": b"0\n", b"tests/test_clock.py": b"0\n"}
KEPT, REVERT, REPEAT = MiningReason.kept, MiningReason.revert, MiningReason.repeat


def relations(rows: list[Candidate]) -> list[tuple[MiningReason, str | None, str | None]]:
    return [(row.reason, row.reverts, row.repeats) for row in rows]


def reverted_by(clock: Builder) -> dict[str, str]:
    mining = Mining(Repository(clock.path), clock.branches["main"], MiningRules("clock"), None)
    assert list(mining)
    return mining.reverted_by


def test_revert_by_commit_is_linked_both_ways_and_what_it_reverts_stays(clock: Builder) -> None:
    work = clock.commit(WORK, "Repair (#12)")
    revert = clock.commit(BACK, f'Revert "Repair (#12)"\n\nThis reverts commit {work}.')
    assert relations(mined(clock)) == [(KEPT, None, None), (REVERT, work, None)]
    assert reverted_by(clock) == {work: revert}


def test_revert_of_a_commit_that_a_merge_brought_is_linked_to_the_merge(clock: Builder) -> None:
    merge = merge_of(clock, WORK, "Merge pull request #12 from a/b", "One", "Two")
    brought = clock.branches["topic"]
    clock.commit(BACK, f"Take it back\n\nThis reverts commit {brought[:9]}.")
    assert relations(mined(clock))[-1] == (REVERT, merge, None)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Repair (#12)", 'Revert "Repair" (#14)\n\nReverts team/clock#12'),
        ("Repair\n\nSee merge request team/clock!12", 'Revert "Repair"\n\nThis reverts merge request !12'),
        ("Repair (#12)", 'Revert "Repair (#12)" (#14)'),
        ("Merged PR 12: Repair", 'Merged PR 14: Revert "Repair"\n\nReverts !12'),
        (
            "Repair\n\nDifferential Revision: D12",
            'Back out "Repair"\n\nOriginal Phabricator Diff: D12\n\nDifferential Revision: D13',
        ),
    ],
)
def test_revert_by_number_is_linked(clock: Builder, first: str, second: str) -> None:
    work = clock.commit(WORK, first)
    clock.commit(BACK, second)
    assert relations(mined(clock)) == [(KEPT, None, None), (REVERT, work, None)]


def test_merged_revert_of_every_commit_is_linked(clock: Builder) -> None:
    work = clock.commit(WORK, "Repair (#12)")
    merge_of(clock, BACK, "Merge pull request #15 from a/revert", f"Take it back\n\nThis reverts commit {work}.")
    assert relations(mined(clock))[-1] == (REVERT, work, None)


def test_revert_of_something_unknown_is_a_revert(clock: Builder) -> None:
    clock.commit(WORK, f'Revert "Elsewhere"\n\nThis reverts commit {"a" * 40}.')
    assert relations(mined(clock)) == [(REVERT, None, None)]


def test_what_lands_again_repeats_what_was_reverted(clock: Builder) -> None:
    work = clock.commit(WORK, "Repair (#12)")
    revert = clock.commit(BACK, f'Revert "Repair (#12)"\n\nThis reverts commit {work}.')
    again = clock.commit(WORK, f'Reapply "Repair (#12)"\n\nThis reverts commit {revert}.')
    second = clock.commit(BACK, f'Revert "Reapply "Repair (#12)""\n\nThis reverts commit {again}.')
    rows = mined(clock)
    assert relations(rows)[2:] == [(REPEAT, revert, work), (REVERT, again, None)]
    assert rows[2].reason_detail == work
    assert reverted_by(clock) == {work: revert, again: second}


def test_change_that_lands_again_with_a_fix_repeats_the_first(clock: Builder) -> None:
    work = clock.commit(WORK, "Repair (#12)")
    revert = clock.commit(BACK, f'Revert "Repair" (#13)\n\nThis reverts commit {work}.')
    clock.commit({**WORK, b"src/more.py": b"1\n"}, f'Reland "Repair" (#14)\n\nThis is a reland of commit {work}')
    assert relations(mined(clock)) == [(KEPT, None, None), (REVERT, work, None), (REPEAT, None, work)]
    assert reverted_by(clock) == {work: revert}


def test_what_lands_again_is_kept_when_the_first_was_no_candidate(clock: Builder) -> None:
    work = clock.commit({b"src/clock.py": b"1\n2\n"}, "Repair (#12)")
    revert = clock.commit({b"src/clock.py": b"0\n"}, f'Revert "Repair"\n\nThis reverts commit {work}.')
    clock.commit(WORK, f'Reapply "Repair" with a test\n\nThis reverts commit {revert}.')
    assert relations(mined(clock)) == [
        (MiningReason.no_tests, None, None),
        (REVERT, work, None),
        (KEPT, revert, work),
    ]


def test_same_patch_is_a_repeat_wherever_it_stands_in_the_file(clock: Builder) -> None:
    clock.commit({b"src/a.py": b"1\n2\n3\n", b"tests/test_a.py": b"1\n"}, "Files")
    work = clock.commit({b"src/a.py": b"1\n2\nnew\n3\n", b"tests/test_a.py": b"1\nnew test\n"}, "Repair")
    clock.commit({b"src/a.py": b"0\n1\n2\n3\n", b"tests/test_a.py": b"1\n"}, "Other")
    clock.commit({b"src/a.py": b"0\n1\n2\nnew\n3\n", b"tests/test_a.py": b"1\nnew test\n"}, "Repair it again")
    assert relations(mined(clock))[-1] == (REPEAT, None, work)


def test_pick_is_a_repeat_of_a_mainline_change_only(clock: Builder) -> None:
    work = clock.commit(WORK, "Repair (#12)")
    clock.commit({b"src/clock.py": b"3\n", b"tests/test_clock.py": b"3\n"}, f"P\n\n(cherry picked from commit {work})")
    elsewhere = "d" * 40
    clock.commit(
        {b"src/clock.py": b"4\n", b"tests/test_clock.py": b"4\n"}, f"Q\n\n(cherry picked from commit {elsewhere})"
    )
    assert relations(mined(clock))[1:] == [(REPEAT, None, work), (KEPT, None, None)]


def test_merge_is_a_pick_when_all_its_commits_are(clock: Builder) -> None:
    work = clock.commit(WORK, "Repair (#12)")
    files: dict[bytes, File] = {b"src/clock.py": b"3\n", b"tests/test_clock.py": b"3\n"}
    picked = f"P\n\n(cherry picked from commit {work})"
    merge_of(clock, files, "Merge pull request #13 from a/b", "Something new", picked)
    merge_of(clock, WORK, "Merge pull request #14 from a/c", picked)
    assert relations(mined(clock))[1:] == [(KEPT, None, None), (REPEAT, None, work)]


def test_change_id_comes_twice(clock: Builder) -> None:
    work = clock.commit(WORK, f"Repair\n\nChange-Id: I{'a' * 40}\nReviewed-on: https://review.example.org/12")
    files: dict[bytes, File] = {b"src/clock.py": b"3\n", b"tests/test_clock.py": b"3\n"}
    clock.commit(files, f"Repair\n\nChange-Id: I{'a' * 40}\nReviewed-on: https://review.example.org/13")
    assert relations(mined(clock)) == [(KEPT, None, None), (REPEAT, None, work)]


def test_pull_request_is_merged_twice(clock: Builder) -> None:
    work = clock.commit(WORK, "Repair (#12)")
    clock.commit({b"x": b"1"}, "Other")
    clock.commit({b"src/clock.py": b"3\n", b"tests/test_clock.py": b"3\n"}, "Repair (#12)")
    clock.commit({b"x": b"2"}, "Other")
    clock.commit({b"src/other.py": b"3\n", b"tests/test_other.py": b"3\n"}, "A second part (#12)")
    clock.commit({b"x": b"3"}, "Other")
    clock.commit({b"src/clock.py": b"4\n", b"tests/test_clock.py": b"4\n"}, "Merged PR 12: of another forge")
    rows = mined(clock)
    assert relations([rows[2], rows[4], rows[6]]) == [(REPEAT, None, work), (KEPT, None, None), (KEPT, None, None)]


def test_third_copy_is_a_repeat_too(clock: Builder) -> None:
    clock.commit(BACK, "Begin")
    copies = []
    for number in range(3):
        copies.append(clock.commit({**WORK, b"docs/n": b"%d" % number}, f"Repair, try {number}"))
        clock.commit(BACK, "Clean")
    found = mined(clock)
    assert [found[place].reason for place in (1, 3, 5)] == [KEPT, REPEAT, REPEAT]
    assert [found[place].repeats for place in (1, 3, 5)] == [None, copies[0], copies[0]]


def test_two_changes_of_one_test_are_two(clock: Builder) -> None:
    clock.commit({b"src/a.py": b"1\n", b"tests/test_a.py": b"def test():\n    one\n"}, "Repair (#471)")
    clock.commit({b"src/a.py": b"2\n", b"tests/test_a.py": b"def test():\n    one\n    two\n"}, "Repair (#481)")
    assert relations(mined(clock)) == [(KEPT, None, None), (KEPT, None, None)]
