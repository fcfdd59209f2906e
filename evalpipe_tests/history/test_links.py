from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history.links import IssueLink, LinkPlace, LinkStrength, links_in, strongest

CLOSING, MENTION = LinkStrength.closing, LinkStrength.mention


def found(
    text: str, own_reference: str | None = None, jira: tuple[str, ...] = ()
) -> list[tuple[str, int | None, LinkStrength]]:
    links = links_in(text, LinkPlace.merge_message, "clock", own_reference, jira)
    return [(link.key, link.number, link.strength) for link in links]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fixes #12", [("#12", 12, CLOSING)]),
        ("Fix #12: the hand", [("#12", 12, CLOSING)]),
        ("FIXED: #12", [("#12", 12, CLOSING)]),
        ("closes issue #12.", [("#12", 12, CLOSING)]),
        ("Resolves GH-12", [("#12", 12, CLOSING)]),
        ("Implements #12", [("#12", 12, CLOSING)]),
        ("Solves issue #12", [("#12", 12, CLOSING)]),
        ("fix for issue #12", [("#12", 12, CLOSING)]),
        ("Fixes this issue: https://github.com/team/clock/issues/12", [("#12", 12, CLOSING)]),
        ("Fixes GH #12", [("#12", 12, CLOSING)]),
        ("Closes #1 #2", [("#1", 1, CLOSING), ("#2", 2, CLOSING)]),
        (
            "Fixes #1, #2 and #3; see #4",
            [("#1", 1, CLOSING), ("#2", 2, CLOSING), ("#3", 3, CLOSING), ("#4", 4, MENTION)],
        ),
        ("Closes #1 & closes #2", [("#1", 1, CLOSING), ("#2", 2, CLOSING)]),
        ("see #12 (and GH-13)", [("#12", 12, MENTION), ("#13", 13, MENTION)]),
        ("- Hand moves. :issue:`12`", [("#12", 12, MENTION)]),
        ("`#12 <https://example.org/x>`_", [("#12", 12, MENTION)]),
        ("[#12](https://github.com/team/clock/issues/12)", [("#12", 12, MENTION), ("#12", 12, MENTION)]),
        ("Fixes team/clock#12", [("#12", 12, CLOSING)]),
        ("Fixes other/watch#12", [("other/watch#12", None, CLOSING)]),
        ("see !12 and group/sub/clock!13", [("!12", None, MENTION), ("!13", None, MENTION)]),
        ("Fixes https://github.com/team/clock/issues/12", [("#12", 12, CLOSING)]),
        ("https://gitlab.example.org/a/b/clock/-/issues/12#note_3", [("#12", 12, MENTION)]),
        ("https://gitlab.example.org/a/clock/-/merge_requests/12", [("!12", None, MENTION)]),
        ("https://github.com/other/watch/pull/12", [("other/watch#12", None, MENTION)]),
        ("https://dev.azure.com/team/clock/_workitems/edit/12", [("#12", 12, MENTION)]),
        ("x\n\nCloses-Bug: #12\nPartial-Bug: #13", [("#12", 12, CLOSING), ("#13", 13, MENTION)]),
        ("prefix #12", [("#12", 12, MENTION)]),
        ("https://bitbucket.org/team/clock/pull-requests/12", [("!12", None, MENTION)]),
        ("Fixes [#12], [#13]", [("#12", 12, CLOSING), ("#13", 13, CLOSING)]),
        ("Late\n\nBug: 12\nFixes: 13, 14", [("#12", 12, MENTION), ("#13", 13, CLOSING), ("#14", 14, CLOSING)]),
        ("Late\n\nBug: chromium:12, b/13\n", [("chromium:12", None, MENTION), ("b/13", None, MENTION)]),
        ("Late\n\nFixed: chromium:12\nBUG=13", [("chromium:12", None, CLOSING), ("#13", 13, MENTION)]),
        ("Late\n\nBug: #12\nChange-Id: I1", [("#12", 12, MENTION)]),
    ],
)
def test_forms_of_a_link(text: str, expected: list[tuple[str, int | None, LinkStrength]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("&#12;", "x#12", "#0", "#012", "# 12", "#12a", "##12", "#12345678", "colour #fff", "a!12"),
        *("ABC-12", 'Fixes: 0123abcdef01 ("clock: wind")', "Debug: 12", "Bugs: many", "fix: 2 clocks"),
    ],
)
def test_what_is_no_link(text: str) -> None:
    assert found(text) == []


def test_own_number_is_left_out() -> None:
    assert found("Repair (#12), fixes #3", own_reference="#12") == [("#3", 3, CLOSING)]
    assert found("Fixes #12, see !12", own_reference="!12") == [("#12", 12, CLOSING)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ABC-12: repair the hand", [("ABC-12", None, MENTION)]),
        ("Fixes ABC-12 and DEF-3", [("ABC-12", None, CLOSING), ("DEF-3", None, CLOSING)]),
        ("[ABC-12] Repair (see DEF-3)", [("ABC-12", None, MENTION), ("DEF-3", None, MENTION)]),
        ("Merge branch 'feature/ABC-12-wind' into main", [("ABC-12", None, MENTION)]),
        ("https://jira.example.org/browse/ABC-12", [("ABC-12", None, MENTION)]),
        ("Fixes https://jira.example.org/browse/ABC-12, DEF-3", [("ABC-12", None, CLOSING), ("DEF-3", None, CLOSING)]),
        ("Bug: ABC-12\nFixes: DEF-3, #4", [("ABC-12", None, MENTION), ("DEF-3", None, CLOSING), ("#4", 4, CLOSING)]),
        ("closes ABC-12, #3", [("ABC-12", None, CLOSING), ("#3", 3, CLOSING)]),
        ("UTF-8 and XABC-12 and ABC-0 and abc-12 and ABC-12x", []),
    ],
)
def test_jira_keys_of_configured_projects(text: str, expected: list[tuple[str, int | None, LinkStrength]]) -> None:
    assert found(text, jira=("ABC", "DEF")) == expected


def test_strongest_link_of_each_issue_is_kept() -> None:
    links = [
        IssueLink("#2", 2, LinkPlace.changelog, MENTION),
        IssueLink("#1", 1, LinkPlace.changelog, MENTION),
        IssueLink("#1", 1, LinkPlace.branch_commit, CLOSING),
        IssueLink("#2", 2, LinkPlace.merge_message, MENTION),
    ]
    assert strongest(links) == (links[2], links[3])


@given(st.text(max_size=100))
def test_any_text_can_be_searched(text: str) -> None:
    for link in links_in(text, LinkPlace.changelog, "clock", None, ("ABC", "A_B")):
        assert link.number is None or 0 < link.number < 10_000_000


@given(st.integers(1, 9_999_999), st.sampled_from(["fixes #{}", "Closes GH-{}", "resolve a/clock#{}"]))
def test_number_comes_back_out_of_a_closing_phrase(number: int, phrase: str) -> None:
    assert found(f"words {phrase.format(number)} words") == [(f"#{number}", number, CLOSING)]
