"""The runs that cover what is due: stretches of the partitions, and nothing that must not run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalpipe.pipeline.due_passes import DuePasses, runs_over
from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe.stages.validating import ValidationPass

FIRST = ValidationPass.FIRST


def stretches(order: str, due: str, idle: str = "") -> list[str]:
    """Candidates are letters; a run is shown by its first and its last."""
    runs = runs_over(list(order), DuePasses(list(due), [], set(idle)), FIRST)
    return [tags[RANGE_START].removesuffix("|first") + tags[RANGE_END].removesuffix("|first") for tags in runs]


def test_what_lies_side_by_side_is_one_run() -> None:
    assert stretches("abcdef", "bcd") == ["bd"]
    assert stretches("abcdef", "f") == ["ff"]
    assert stretches("abcdef", "") == []


def test_what_is_idle_is_run_over_and_what_is_not_divides() -> None:
    assert stretches("abcdef", "af", idle="bcde") == ["af"]
    assert stretches("abcdef", "af", idle="bde") == ["aa", "ff"]
    assert stretches("abcdef", "b", idle="acdef") == ["bb"]


def test_a_wide_gap_is_not_run_over() -> None:
    order = [f"c{n:03}" for n in range(60)]
    found = DuePasses(["c000", "c059"], [], set(order[1:59]))
    assert len(list(runs_over(order, found, FIRST))) == 2


@given(st.lists(st.sampled_from(["due", "idle", "other"]), max_size=60))
def test_all_that_is_due_is_covered_and_nothing_else_but_idle(kinds: list[str]) -> None:
    order = [f"c{n:03}" for n in range(len(kinds))]
    found = DuePasses(
        [key for key, kind in zip(order, kinds, strict=True) if kind == "due"],
        [],
        {key for key, kind in zip(order, kinds, strict=True) if kind == "idle"},
    )
    covered: list[str] = []
    for tags in runs_over(order, found, FIRST):
        first, last = (order.index(tags[end].removesuffix("|first")) for end in (RANGE_START, RANGE_END))
        covered += order[first : last + 1]
    assert len(covered) == len(set(covered))
    assert set(found.due) <= set(covered) <= {*found.due, *found.idle}
