from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history.errors import IssueTextsInvalid
from evalpipe.history.issues import (
    IssueLink,
    IssueTexts,
    LinkPlace,
    LinkStrength,
    TextKind,
    links_in,
    strongest,
)

CLOSING, MENTION = LinkStrength.closing, LinkStrength.mention


def found(text: str, own_number: int | None = None) -> list[tuple[str, int | None, LinkStrength]]:
    links = links_in(text, LinkPlace.merge_message, "clock", own_number)
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
        ("prefix #12", [("#12", 12, MENTION)]),
    ],
)
def test_forms_of_a_link(text: str, expected: list[tuple[str, int | None, LinkStrength]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text", ["&#12;", "x#12", "#0", "#012", "# 12", "#12a", "##12", "#12345678", "colour #fff", "a!12"]
)
def test_what_is_no_link(text: str) -> None:
    assert found(text) == []


def test_own_number_is_left_out() -> None:
    assert found("Repair (#12), fixes #3", own_number=12) == [("#3", 3, CLOSING)]


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
    for link in links_in(text, LinkPlace.changelog, "clock", None):
        assert link.number is None or 0 < link.number < 10_000_000


@given(st.integers(1, 9_999_999), st.sampled_from(["fixes #{}", "Closes GH-{}", "resolve a/clock#{}"]))
def test_number_comes_back_out_of_a_closing_phrase(number: int, phrase: str) -> None:
    assert found(f"words {phrase.format(number)} words") == [(f"#{number}", number, CLOSING)]


ROW = {
    "number": 1,
    "kind": "issue",
    "title": "Late",
    "body": "By an hour",
    "author": "ada",
    "created_at": "2026-02-05T17:20:00Z",
    "closed_by": 2,
    "labels": ["bug"],
}


def load(tmp_path: Path, *rows: object) -> IssueTexts:
    path = tmp_path / "issues.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return IssueTexts.load(path)


def test_export_is_read(tmp_path: Path) -> None:
    texts = load(tmp_path, ROW, {**ROW, "number": 2, "kind": "pull_request", "closed_by": None, "body": None}, "")
    issue = texts.issue(1)
    assert issue is not None
    assert issue.text == "Late\n\nBy an hour"
    assert issue.created_at == datetime(2026, 2, 5, 17, 20, tzinfo=UTC)
    assert issue.kind is TextKind.issue
    assert texts.issue(2) is None
    pull_request = texts.pull_request(2)
    assert pull_request is not None
    assert pull_request.text == "Late"
    assert texts.closed_by(2, []) == [1]
    assert texts.closed_by(None, ["2"]) == [1]
    assert texts.closed_by(3, ["a"]) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: a line is one JSON object"),
        ({**ROW, "number": "1"}, "line 2, field 'number': a int is needed"),
        ({**ROW, "number": True}, "field 'number'"),
        ({**ROW, "kind": "bug"}, "'bug' is not one of issue, pull_request"),
        ({**ROW, "created_at": "yesterday"}, "no ISO 8601 time"),
        ({**ROW, "created_at": "2026-02-05T17:20:00"}, "no time zone"),
        ({**ROW, "labels": "bug"}, "field 'labels'"),
        ({key: value for key, value in ROW.items() if key != "title"}, "field 'title'"),
    ],
)
def test_faults_of_an_export_are_named(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(IssueTextsInvalid, match=r"issues\.jsonl") as caught:
        load(tmp_path, ROW, row)
    assert message in str(caught.value)


def test_export_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(IssueTextsInvalid, match="does not exist"):
        IssueTexts.load(tmp_path / "none.jsonl")
