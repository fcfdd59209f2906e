"""What an export from GitLab holds, and what it asks for."""

from __future__ import annotations

from typing import Any

import pytest

from evalpipe.forges import AccessDenied, AnswerInvalid
from evalpipe.history import IssueTexts
from evalpipe_tests.forges.conftest import Caller
from evalpipe_tests.forges.server import OTHER_PROJECT_ID, PROJECT_ID, FakeGitLab, FakeItem, Request, Response
from evalpipe_tests.forges.test_github import lines


def test_issues_and_merge_requests_with_the_same_number(gitlab: Caller) -> None:
    gitlab.forge.items = [
        FakeItem(3, title="Crash 🦀", closed=True, closer=(PROJECT_ID, 3), labels=("ui", "bug"), updated=20),
        FakeItem(3, pull=True, title="Fix it", body=None, author=None, created=30, updated=40.5),
    ]
    done = gitlab.export()
    assert lines(gitlab) == [
        {
            "number": 3,
            "kind": "issue",
            "title": "Crash 🦀",
            "body": "A body",
            "author": "ann",
            "created_at": "2026-01-01T00:00:00Z",
            "labels": ["bug", "ui"],
            "closed_by": "3",
            "edited_at": None,
        },
        {
            "number": 3,
            "kind": "pull_request",
            "title": "Fix it",
            "body": "",
            "author": "",
            "created_at": "2026-01-01T00:30:00Z",
            "labels": [],
            "closed_by": None,
            "edited_at": None,
        },
    ]
    assert (done.issues, done.pull_requests, done.changed) == (1, 1, 2)
    texts = IssueTexts.load(gitlab.output)
    issue, merge_request = texts.issue(3), texts.pull_request(3)
    assert issue is not None
    assert merge_request is not None
    assert (issue.title, merge_request.title) == ("Crash 🦀", "Fix it")
    assert texts.closed_by(3, []) == [3]


@pytest.mark.parametrize(
    ("item", "edited_at"),
    [
        (FakeItem(1, updated=50, edited=9), "2026-01-01T00:09:00Z"),
        (FakeItem(1, updated=50, edited=9, first_title="A"), "2026-01-01T00:09:00Z"),
        (FakeItem(1, pull=True, updated=50, edited=9.5), "2026-01-01T00:09:30Z"),
        (FakeItem(1, updated=50), None),
        (FakeItem(1), None),
    ],
)
def test_an_edited_text_is_marked_with_the_last_edit(gitlab: Caller, item: FakeItem, edited_at: str | None) -> None:
    gitlab.forge.items = [item]
    gitlab.export()
    assert lines(gitlab)[0]["edited_at"] == edited_at


def test_an_item_that_was_never_touched_costs_no_look(gitlab: Caller) -> None:
    gitlab.forge.items = [FakeItem(1), FakeItem(2, closed=True)]
    gitlab.export()
    assert not [path for path in gitlab.forge.paths() if path.endswith(("notes", "closed_by"))]


@pytest.mark.parametrize(
    ("item", "closed_by"),
    [
        (FakeItem(5, closed=True, closer=(PROJECT_ID, 8)), "8"),
        (FakeItem(5, closed=True, closer=(OTHER_PROJECT_ID, 8)), None),
        (FakeItem(5, closed=False, closer=(PROJECT_ID, 8)), None),
        (FakeItem(5, closed=True), None),
    ],
)
def test_what_closed_an_issue_is_the_merge_request_merged_last(
    gitlab: Caller, item: FakeItem, closed_by: str | None
) -> None:
    gitlab.forge.items = [item]
    gitlab.export()
    assert lines(gitlab)[0]["closed_by"] == closed_by


def test_many_items_in_pages(gitlab: Caller) -> None:
    gitlab.forge.items = [FakeItem(n, pull=n % 2 == 0, created=n / 600, updated=n / 600) for n in range(1, 1501)]
    done = gitlab.export()
    assert (done.issues, done.pull_requests) == (750, 750)
    assert [line["number"] for line in lines(gitlab)] == list(range(1, 1501))
    assert len(gitlab.forge.requests) < 40


def test_long_lists_below_an_item_are_read_to_their_end(gitlab: Caller) -> None:
    gitlab.forge.items = [FakeItem(1, updated=50)]
    notes = [{"body": "added label", "system": True, "created_at": "2026-01-01T00:01:00Z"}] * 250
    notes.append({"body": "changed the description", "system": True, "created_at": "2026-01-01T00:02:00Z"})
    gitlab.forge.fault = lambda request: gitlab.forge.paged(notes, request) if "/notes" in request.path else None
    gitlab.export()
    assert lines(gitlab)[0]["edited_at"] == "2026-01-01T00:02:00Z"


def test_an_item_that_is_gone_by_the_second_look_is_left_out(gitlab: Caller) -> None:
    gitlab.forge.items = [FakeItem(1), FakeItem(2, hidden=True, updated=5), FakeItem(2, pull=True, updated=5)]
    done = gitlab.export()
    assert [(line["kind"], line["number"]) for line in lines(gitlab)] == [("issue", 1), ("pull_request", 2)]
    assert done.gone == 1


def test_a_project_with_issues_turned_off_still_has_merge_requests(gitlab: Caller) -> None:
    assert isinstance(gitlab.forge, FakeGitLab)
    gitlab.forge.issues_enabled = False
    gitlab.forge.items = [FakeItem(1), FakeItem(1, pull=True)]
    done = gitlab.export()
    assert (done.issues, done.pull_requests) == (0, 1)


def test_without_a_token_public_items_are_read(gitlab: Caller) -> None:
    assert isinstance(gitlab.forge, FakeGitLab)
    gitlab.token = None
    gitlab.forge.items = [FakeItem(1, updated=5, edited=3)]
    gitlab.export()
    assert lines(gitlab)[0]["edited_at"] is not None
    assert "LAB_TOKEN" in gitlab.said[0]


def test_where_notes_need_a_token_no_edits_are_claimed(gitlab: Caller) -> None:
    assert isinstance(gitlab.forge, FakeGitLab)
    gitlab.token = None
    gitlab.forge.notes_need_a_token = True
    gitlab.forge.items = [FakeItem(n, updated=5) for n in range(1, 10)]
    gitlab.export()
    assert all("edited_at" not in line for line in lines(gitlab))
    assert len([path for path in gitlab.forge.paths() if path.endswith("notes")]) == 1


def test_a_token_without_the_right_for_notes_is_told(gitlab: Caller) -> None:
    gitlab.forge.items = [FakeItem(1, updated=5)]
    denied = Response(403, {"error": "insufficient_scope"})
    gitlab.forge.fault = lambda request: denied if "/notes" in request.path else None
    with pytest.raises(AccessDenied, match=r"notes of group/sub/shop#1.*insufficient_scope.*LAB_TOKEN"):
        gitlab.export()


def test_a_renamed_project_is_followed(gitlab: Caller) -> None:
    gitlab.forge.old_paths, gitlab.path = ("group/store",), "group/store"
    gitlab.forge.items = [FakeItem(1)]
    done = gitlab.export()
    assert (done.path, done.issues) == ("group/sub/shop", 1)


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, b"<html>Please sign in</html>", {"Content-Type": "text/html"}),
        Response(200, b'{"broken": '),
        Response(200, b""),
        Response(200, {"no": "list"}),
        Response(200, [{"no": "item"}]),
        Response(200, [3]),
    ],
)
@pytest.mark.parametrize("where", ["/projects/group", "/issues", "/notes"])
def test_an_answer_that_is_not_the_apis(gitlab: Caller, answer: Response, where: str) -> None:
    def fault(request: Request) -> Response | None:
        return answer if request.path.endswith(where) or where in request.path.partition("/4711")[0] else None

    gitlab.forge.items = [FakeItem(1, updated=5)]
    gitlab.forge.fault = fault
    if where == "/notes" and answer.body == [{"no": "item"}]:
        answer_with_edit: list[dict[str, Any]] = [{"system": True, "body": "changed the description"}]
        answer = Response(200, answer_with_edit)
    with pytest.raises(AnswerInvalid, match=r"not GitLab's API; check `forge\.kind`"):
        gitlab.export()
