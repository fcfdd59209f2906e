"""TAP 12 to 14: what each line says, and that a stream which cannot be whole or true is refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import TestOutcome
from evalpipe.runners.tap import DamagedTap, TapTest, UnfinishedTap, read_tap


def told(text: str) -> dict[tuple[str, ...], str]:
    tests = read_tap(text.encode())
    found = {test.titles: test.outcome.value for test in tests}
    assert len(found) == len(tests)
    return found


def one(line: str) -> TapTest:
    (test,) = read_tap(f"1..1\n{line}\n".encode())
    return test


@pytest.mark.parametrize(
    ("line", "title", "outcome"),
    [
        ("ok 1 - adds", "adds", "passed"),
        ("not ok 1 - adds", "adds", "failed"),
        ("ok 1 adds", "adds", "passed"),
        ("ok - adds", "adds", "passed"),
        ("ok adds", "adds", "passed"),
        ("ok 1", "1", "passed"),
        ("not ok", "1", "failed"),
        ("ok 1 - 12 months", "12 months", "passed"),
        ("ok 1 -5 is negative", "-5 is negative", "passed"),
        ("ok 1 - - dashes - ", "- dashes - ", "passed"),
        ("ok 1 -   three blanks  ", "  three blanks  ", "passed"),
        ('ok 1 - x[ "a" ] it\'s [', 'x[ "a" ] it\'s [', "passed"),
        ("ok 1 - skipped # SKIP no database", "skipped", "skipped"),
        ("ok 1 - skipped # skipped: no database", "skipped", "skipped"),
        ("not ok 1 - skipped # Skip", "skipped", "skipped"),
        ("ok 1 # skip", "1", "skipped"),
        ("not ok 1 - later # TODO not written", "later", "xfailed"),
        ("ok 1 - later # todo", "later", "xpassed"),
        ("ok 1 - number # 5 of # 6", "number # 5 of # 6", "passed"),
        ("ok 1 - todomvc #todomvc", "todomvc #todomvc", "passed"),
        (r"ok 1 - literal \# TODO is no directive", "literal # TODO is no directive", "passed"),
        (r"ok 1 - back \\# SKIP", r"back \# SKIP", "passed"),
        (r"ok 1 - back \\ # SKIP", "back \\", "skipped"),
        ("ok 1 - C#TODO", "C#TODO", "passed"),
        ("ok 1 - timed # time=12.3ms", "timed", "passed"),
        ("ok 1 - late # SKIP # time=1s", "late", "skipped"),
        ("ok 1 - windows\r", "windows", "passed"),
        ("ok 1 - \x1b[31mé", "\x1b[31mé", "passed"),
    ],
)
def test_a_test_point_has_a_title_and_an_outcome(line: str, title: str, outcome: str) -> None:
    test = one(line)
    assert (test.titles, test.outcome.value) == ((title,), outcome)


def test_bytes_that_are_no_text_are_shown_as_escapes() -> None:
    (test,) = read_tap(b"1..1\nok 1 - a \xff\n")
    assert test.titles == (r"a \xff",)


def test_the_output_of_tests_is_passed_over() -> None:
    text = """
        TAP version 13
        # a comment
        1..2
        okay, here it begins
        PASS
         ok 3 - not at the beginning
        ok 1 - one
        some words not ok 2 - in the middle
        ok2 - no blank
        pragma +strict
        not ok 2 - two
    """
    assert told(text.replace("\n        ", "\n")) == {("one",): "passed", ("two",): "failed"}


SUB_TESTS = """TAP version 14
1..3
# Subtest: outer
    ok 1 - one
    # Subtest: inner
        not ok 1 - deep
        1..1
    not ok 2 - inner
    1..2
not ok 1 - outer
    1..1
    ok 1 - one
ok 2 - other
ok 3 - one
"""


def test_sub_tests_belong_to_the_point_after_them() -> None:
    assert told(SUB_TESTS) == {
        ("outer", "one"): "passed",
        ("outer", "inner", "deep"): "failed",
        ("outer", "inner"): "failed",
        ("outer",): "failed",
        ("other", "one"): "passed",
        ("other",): "passed",
        ("one",): "passed",
    }


@pytest.mark.parametrize("children", ["    ok 1 - a\n", "    1..2\n    ok 1 - a\n", "    1..0\n    ok 1 - a\n"])
def test_a_point_whose_sub_tests_are_not_all_there_has_not_passed(children: str) -> None:
    assert told(f"1..1\n{children}ok 1 - outer\n") == {("outer", "a"): "passed", ("outer",): "error"}


def test_what_is_said_of_a_failure_is_its_message_and_its_time() -> None:
    text = """1..3
not ok 1 - a
  ---
  message: 'here is why'
  duration_ms: 12.5
  stack: |
    ok 7 - not a test
  ...
# and a comment
ok 2 - b
---
duration_ms: 2
...
not ok 3 - c
# Failed test 'c'
noise
---
"""
    a, b, c = read_tap(text.encode())
    assert (a.seconds, b.seconds, c.seconds) == (0.0125, 0.002, 0)
    assert "here is why" in a.message
    assert "and a comment" in a.message
    assert b.message == ""
    assert c.message == "# Failed test 'c'"


def test_streams_that_each_have_a_version_follow_each_other() -> None:
    stream = "TAP version 13\nok 1 - {0}\n1..1\n"
    assert told(stream.format("a") + stream.format("b")) == {("a",): "passed", ("b",): "passed"}


@pytest.mark.parametrize("plan", ["1..0", "1..0 # SKIP no database", "TAP version 14\n1..0"])
def test_a_plan_of_no_tests_is_a_whole_stream(plan: str) -> None:
    assert told(f"{plan}\n") == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no TAP at all\n",
        "ok 1 - a\n",
        "1..2\nok 1 - a\n",
        "1..1\nBail out! no database\nok 1 - a\n",
        "1..1\nok 1 - a\n    Bail out!\n    1..1\n",
        "1..1\nok 1 - a\n    ok 1 - no point after it\n",
        "1..1\nok 1 - a\n  ---\n  no: end\n",
        "TAP version 13\n1..2\nok 1 - a\nTAP version 13\n1..1\nok 1 - b\n",
    ],
)
def test_a_stream_that_ends_before_its_end_is_refused(text: str) -> None:
    with pytest.raises(UnfinishedTap):
        read_tap(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "1..1\nok 1 - a\nok 2 - b\n",
        "1..2\nok 1 - a\nok 1 - a\n",
        "1..2\nok 2 - a\nok - b\n",
        "1..1\nok 1 - a\n1..1\nok 1 - b\n",
        "    ok 1 - a\n1..1\nok 1 - b\n",
    ],
)
def test_a_stream_that_cannot_be_true_is_refused(text: str) -> None:
    with pytest.raises(DamagedTap):
        read_tap(text.encode())


TITLES = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12).filter(
    lambda title: title.strip() == title and title
)
TREES = st.recursive(
    st.lists(st.tuples(TITLES, st.booleans(), st.none()), max_size=3),
    lambda inner: st.lists(st.tuples(TITLES, st.booleans(), inner), max_size=3),
    max_leaves=6,
)


def written(tree: Sequence[tuple[str, bool, Any]], indent: str = "") -> list[str]:
    lines = []
    for number, (title, failed, children) in enumerate(tree, start=1):
        lines += written(children, indent + "    ") if children is not None else []
        escaped = title.replace("\\", "\\\\").replace("#", "\\#")
        lines.append(f"{indent}{'not ' if failed else ''}ok {number} - {escaped}")
    return [*lines, f"{indent}1..{len(tree)}"]


def expected(tree: Sequence[tuple[str, bool, Any]], above: tuple[str, ...] = ()) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for title, failed, children in tree:
        found += expected(children, (*above, title)) if children is not None else []
        found.append(((*above, title), TestOutcome.FAILED if failed else TestOutcome.PASSED))
    return found


@given(TREES)
def test_what_is_written_as_tap_14_comes_back(tree: list[tuple[str, bool, Any]]) -> None:
    tests = read_tap("\n".join(["TAP version 14", *written(tree)]).encode())
    assert [(test.titles, test.outcome) for test in tests] == expected(tree)


LINES = st.sampled_from(
    [
        "ok 1 - a",
        "not ok 2",
        "1..2",
        "1..1",
        "TAP version 13",
        "---",
        "...",
        "  ---",
        "# x",
        "Bail out!",
        "    ok 1 - b",
    ]
) | st.text(max_size=8)


@given(st.binary() | st.lists(LINES, max_size=8).map(lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass")))
def test_any_content_is_read_or_refused(content: bytes) -> None:
    try:
        tests = read_tap(content)
    except (DamagedTap, UnfinishedTap) as error:
        str(error).encode()
    else:
        for test in tests:
            "".join((*test.titles, test.message)).encode()


@given(TREES, st.integers(0, 10**6))
def test_a_stream_that_lacks_a_test_point_is_never_whole(tree: list[tuple[str, bool, Any]], seed: int) -> None:
    lines = written([*tree, ("last", False, None)])
    points = [number for number, line in enumerate(lines) if not line.startswith((" ", "1.."))]
    del lines[random.Random(seed).choice(points)]
    with pytest.raises((DamagedTap, UnfinishedTap)):
        read_tap("\n".join(lines).encode())
