from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evalpipe.history.errors import IssueTextsInvalid
from evalpipe.history.issues import IssueTexts, TextKind

ROW = {
    "number": 1,
    "kind": "issue",
    "title": "Late",
    "body": "By an\r\nhour",
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
    assert issue.text == "Late\n\nBy an\nhour"
    assert issue.created_at == datetime(2026, 2, 5, 17, 20, tzinfo=UTC)
    assert issue.kind is TextKind.issue
    assert texts.issue(2) is None
    pull_request = texts.pull_request(2)
    assert pull_request is not None
    assert pull_request.text == "Late"
    assert texts.closed_by(2, []) == [1]
    assert texts.closed_by(None, ["2"]) == [1]
    assert texts.closed_by(3, ["a"]) == []
    assert (issue.edited_at, issue.closes) == (None, ())


def test_edits_and_what_a_pull_request_closes_are_read(tmp_path: Path) -> None:
    edited = {**ROW, "edited_at": "2026-02-06T00:00:00+01:00"}
    closing = {**ROW, "number": 2, "kind": "pull_request", "closed_by": None, "closes": [7, 1], "edited_at": None}
    texts = load(tmp_path, edited, closing)
    issue, pull_request = texts.issue(1), texts.pull_request(2)
    assert issue is not None
    assert issue.edited_at == datetime(2026, 2, 5, 23, tzinfo=UTC)
    assert pull_request is not None
    assert (pull_request.edited_at, pull_request.closes) == (None, (7, 1))
    assert texts.closed_by(2, []) == [1, 7]


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
        ({**ROW, "edited_at": 5}, "field 'edited_at': a str is needed"),
        ({**ROW, "edited_at": "2026-02-05"}, "no time zone"),
        ({**ROW, "closes": [True]}, "field 'closes'"),
        ({**ROW, "closes": 3}, "field 'closes'"),
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
