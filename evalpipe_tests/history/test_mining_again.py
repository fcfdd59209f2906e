"""A second look that goes on where an earlier one ended says the same as one look at everything."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evalpipe.history.candidates import Candidate, MiningRules
from evalpipe.history.errors import MainlineRewritten
from evalpipe.history.mining import Earlier, Mining
from evalpipe.history.repository import Repository
from evalpipe_tests.history.builder import Builder, File
from evalpipe_tests.history.mining import WORK, merge_of

RULES = MiningRules(repository="clock")


def look(source: Builder, tip: str, rows: Sequence[Candidate] = ()) -> tuple[list[Candidate], dict[str, str]]:
    """Every row up to `tip`, when `rows` (without the last, which may have grown) are known already."""
    known = list(rows[:-1])
    earlier = None
    if known:
        parent = rows[-1].parent
        assert parent is not None
        earlier = Earlier(parent, (row.entry for row in known))
    mining = Mining(Repository(source.path), tip, RULES, None, earlier)
    return known + list(mining), mining.reverted_by


def everything(clock: Builder) -> None:
    """Changes of every kind that refers to another one."""
    back: dict[bytes, File] = {b"src/clock.py": b"0\n", b"tests/test_clock.py": b"0\n"}
    work = clock.commit(WORK, f"Repair (#12)\n\nChange-Id: I{'a' * 40}")
    revert = clock.commit(back, f'Revert "Repair"\n\nThis reverts commit {work}.')
    clock.commit(WORK, f'Reapply "Repair"\n\nThis reverts commit {revert}.')
    clock.commit({b"x": b"1"}, "Part one (#20)")
    clock.commit({b"x": b"2"}, "Part two (#20)")
    merge_of(clock, {b"src/a.py": b"1\n", b"tests/test_a.py": b"1\n"}, "Merge pull request #21 from a/b", "One", "Two")
    brought = clock.branches["topic"]
    side = clock.commit({b"src/s.py": b"1\n", b"tests/test_s.py": b"1\n"}, "Side", branch="side", parents=[work])
    clock.commit({b"y": b"1"}, f"Take it back\n\nThis reverts commit {brought}.")
    clock.commit(
        {b"src/s.py": b"1\n", b"tests/test_s.py": b"1\n"}, "Merge branch 'side'", parents=[clock.branches["main"], side]
    )
    clock.commit({b"src/t.py": b"1\n", b"tests/test_t.py": b"1\n"}, f"P\n\n(cherry picked from commit {side})")
    clock.commit({b"src/clock.py": b"8\n", b"tests/test_clock.py": b"8\n"}, f"Again\n\nChange-Id: I{'a' * 40}")
    local = clock.commit({b"own": b"1"}, "local", author="Grace <g@example.org>")
    other = clock.commit({b"z": b"1"}, "Other (#30)", branch="other", parents=[local])
    own = clock.commit({b"own": b"2"}, "local", author="Grace <g@example.org>")
    clock.commit({b"z": b"1"}, "Sync", parents=[own, other], author="Grace <g@example.org>")
    clock.commit({b"src/a.py": b"2\n", b"tests/test_a.py": b"2\n"}, "Repair (#21)")


@pytest.mark.slow
def test_two_looks_say_what_one_says_wherever_the_first_ended(clock: Builder) -> None:
    everything(clock)
    tip = clock.branches["main"]
    whole, reverted = look(clock, tip)
    assert len({row.reason for row in whole}) > 4
    assert sum(row.repeats is not None for row in whole) == 4
    mainline = [row.commit for row in whole[:-1]] + [
        row.parent for row in whole if row.shape == "rebase" and row.parent
    ]
    for first_tip in mainline:
        first, reverted_first = look(clock, first_tip)
        both, reverted_second = look(clock, tip, first)
        assert both == whole
        assert reverted_first | reverted_second == reverted


def test_nothing_new_is_the_last_change_alone(clock: Builder) -> None:
    everything(clock)
    tip = clock.branches["main"]
    whole, _reverted = look(clock, tip)
    again = Mining(
        Repository(clock.path), tip, RULES, None, Earlier(str(whole[-1].parent), [row.entry for row in whole[:-1]])
    )
    assert list(again) == whole[-1:]


def test_rewritten_mainline_is_refused(clock: Builder) -> None:
    base = clock.branches["main"]
    gone = clock.commit({b"x": b"1"}, "gone")
    for tip, until in (
        (clock.commit({b"x": b"2"}, "instead", parents=[base]), gone),
        (base, gone),
        (clock.commit({b"x": b"1"}, "Sync", parents=[clock.branches["main"], gone]), gone),
    ):
        with pytest.raises(MainlineRewritten, match=gone):
            list(Mining(Repository(clock.path), tip, RULES, None, Earlier(until, ())))
