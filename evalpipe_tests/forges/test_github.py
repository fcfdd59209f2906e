"""What an export from GitHub holds, and what it asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalpipe.forges import AnswerInvalid, RedirectRefused
from evalpipe.forges.github import api_address
from evalpipe.forges.github_details import details_query
from evalpipe.history import IssueTexts
from evalpipe_tests.forges.conftest import Caller
from evalpipe_tests.forges.server import OTHER_PROJECT_ID, PROJECT_ID, FakeGitHub, FakeItem, Request, Response


def lines(caller: Caller) -> list[dict[str, Any]]:
    return [json.loads(line) for line in caller.output.read_bytes().splitlines()]


def test_issues_and_pull_requests_as_one_line_each(github: Caller) -> None:
    github.forge.items = [
        FakeItem(7, title="Crash 🦀", body="It\r\nfails", labels=("ui", "bug"), closed=True, closer=(PROJECT_ID, 9)),
        FakeItem(9, pull=True, title="Fix it", body=None, author=None, created=30, updated=40, closes=(7, 3)),
    ]
    done = github.export()
    assert lines(github) == [
        {
            "number": 7,
            "kind": "issue",
            "title": "Crash 🦀",
            "body": "It\r\nfails",
            "author": "ann",
            "created_at": "2026-01-01T00:00:00Z",
            "labels": ["bug", "ui"],
            "closed_by": "9",
            "edited_at": None,
        },
        {
            "number": 9,
            "kind": "pull_request",
            "title": "Fix it",
            "body": "",
            "author": "",
            "created_at": "2026-01-01T00:30:00Z",
            "labels": [],
            "closed_by": None,
            "edited_at": None,
            "closes": [3, 7],
        },
    ]
    assert (done.issues, done.pull_requests, done.changed, done.gone) == (1, 1, 2, 0)
    assert github.said == []


def test_the_miner_reads_the_export_as_it_is(github: Caller) -> None:
    github.forge.items = [
        FakeItem(7, closed=True, closer=(PROJECT_ID, 9), edited=5),
        FakeItem(8, closed=True, closer="a" * 40),
        FakeItem(9, pull=True, author="dependabot[bot]", closes=(7,)),
    ]
    github.export()
    texts = IssueTexts.load(github.output)
    assert texts.closed_by(9, []) == [7]
    assert texts.closed_by(None, ["a" * 40]) == [8]
    found = texts.pull_request(9)
    assert found is not None
    assert found.author == "dependabot[bot]"
    assert texts.issue(9) is None


@pytest.mark.parametrize(
    ("item", "title", "body", "edited_at"),
    [
        (FakeItem(1), "A title", "A body", None),
        (FakeItem(1, edited=9, first_body="First"), "A title", "First", None),
        (FakeItem(1, edited=9, first_body=""), "A title", "", None),
        (FakeItem(1, edited=9), "A title", "A body", "2026-01-01T00:09:00Z"),
        (FakeItem(1, edited=9, first_body_deleted=True), "A title", "A body", "2026-01-01T00:09:00Z"),
        (FakeItem(1, first_title="Old"), "Old", "A body", None),
        (FakeItem(1, pull=True, first_title="Old", edited=9, first_body="First"), "Old", "First", None),
    ],
)
def test_the_text_is_that_of_creation_or_marked_as_edited(
    github: Caller, item: FakeItem, title: str, body: str, edited_at: str | None
) -> None:
    github.forge.items = [item]
    github.export()
    (line,) = lines(github)
    assert (line["title"], line["body"], line["edited_at"]) == (title, body, edited_at)


@pytest.mark.parametrize(
    ("item", "closed_by"),
    [
        (FakeItem(1, closed=True, closer="b" * 40), "b" * 40),
        (FakeItem(1, closed=True), None),
        (FakeItem(1, closed=True, closer=(OTHER_PROJECT_ID, 5)), None),
        (FakeItem(1, closed=False, closer=(PROJECT_ID, 5)), None),
    ],
)
def test_what_closed_an_issue(github: Caller, item: FakeItem, closed_by: str | None) -> None:
    github.forge.items = [item]
    github.export()
    assert lines(github)[0]["closed_by"] == closed_by


def test_long_bodies_and_halves_of_characters_are_stored(github: Caller) -> None:
    long = "ä" * 65_536
    github.forge.items = [FakeItem(1, body=long), FakeItem(2, title="half \ud83e", body="line\u2028separator\x00")]
    github.export()
    first, second = lines(github)
    assert first["body"] == long
    assert (second["title"], second["body"]) == ("half ?", "line\u2028separator\x00")
    assert IssueTexts.load(github.output).issue(2) is not None


def test_1500_items_in_pages(github: Caller) -> None:
    # Every second one was updated together with many others, as an import or a bot's labels do it.
    github.forge.items = [FakeItem(n, pull=n % 3 == 0, created=n, updated=n if n % 2 else 5000) for n in range(1, 1501)]
    done = github.export()
    assert (done.issues, done.pull_requests) == (1000, 500)
    assert [line["number"] for line in lines(github)] == list(range(1, 1501))
    listed = [path for path in github.forge.paths() if path.endswith("/issues")]
    # The 750 that share a time are read twice, to be sure that none slipped through.
    assert 15 <= len(listed) <= 26
    assert len([path for path in github.forge.paths() if path.endswith("/graphql")]) < 70
    assert any("1000 read" in text for text in github.said)


def test_an_item_that_is_gone_by_the_second_look_is_left_out(github: Caller) -> None:
    github.forge.items = [FakeItem(1), FakeItem(2, hidden=True), FakeItem(3)]
    done = github.export()
    assert [line["number"] for line in lines(github)] == [1, 3]
    assert done.gone == 1


def test_without_a_token_it_says_what_is_missing_and_claims_no_edits(github: Caller) -> None:
    github.token = None
    github.forge.items = [FakeItem(1, closed=True, closer=(PROJECT_ID, 2), edited=3)]
    github.export()
    (line,) = lines(github)
    assert line["closed_by"] is None
    assert "edited_at" not in line
    assert "GITHUB_TOKEN" in github.said[0]
    assert "/api/graphql" not in github.forge.paths()


def test_a_server_without_graphql_is_read_without_details(github: Caller) -> None:
    assert isinstance(github.forge, FakeGitHub)
    github.forge.graphql = False
    github.forge.items = [FakeItem(n) for n in range(60)]
    github.export()
    assert all("edited_at" not in line for line in lines(github))
    assert github.forge.paths().count("/api/graphql") == 1
    assert len([text for text in github.said if "does not give details" in text]) == 1


@pytest.mark.parametrize(
    "errors",
    [
        [{"type": "FORBIDDEN", "path": ["node", "n1"], "message": "Resource not accessible"}],
        [{"message": "Field 'x' doesn't exist", "extensions": {"code": "undefinedField"}}],
        [{"type": "NOT_FOUND", "path": ["node"], "message": "Could not resolve to a node"}],
    ],
)
def test_graphql_that_refuses_is_done_without(github: Caller, errors: list[dict[str, Any]]) -> None:
    github.forge.items = [FakeItem(1)]
    answer = Response(200, {"data": {"node": None}, "errors": errors})
    github.forge.fault = lambda request: answer if "graphql" in request.path else None
    assert github.export().issues == 1
    assert str(errors[0]["message"]) in github.said[0]


def test_graphql_that_chokes_once_is_asked_again(github: Caller) -> None:
    github.forge.items = [FakeItem(1)]
    answers = [Response(200, {"data": None, "errors": [{"message": "Something went wrong while executing"}]})]
    github.forge.fault = lambda request: answers.pop() if "graphql" in request.path and answers else None
    github.export()
    assert "edited_at" in lines(github)[0]
    assert github.slept == [1.0]


def test_a_project_with_issues_turned_off_still_has_pull_requests(github: Caller) -> None:
    assert isinstance(github.forge, FakeGitHub)
    github.forge.has_issues = False
    github.forge.items = [FakeItem(n, pull=True, created=n) for n in range(1, 251)]
    assert github.export().pull_requests == 250
    github.forge.items[0].title = "Another"
    assert github.export().changed == 1


def test_a_renamed_project_is_followed(github: Caller) -> None:
    github.forge.old_paths, github.path = ("team/store",), "team/store"
    github.forge.items = [FakeItem(n, updated=n) for n in range(1, 130)]
    done = github.export()
    assert (done.path, done.issues) == ("team/shop", 129)


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
@pytest.mark.parametrize("where", ["/repos/", "/issues"])
def test_an_answer_that_is_not_the_apis(github: Caller, answer: Response, where: str) -> None:
    def fault(request: Request) -> Response | None:
        return answer if where in request.path else None

    github.forge.fault = fault
    with pytest.raises(AnswerInvalid, match=r"not GitHub's API; check `forge\.kind`"):
        github.export()


def test_a_redirect_is_followed_once_and_never_in_a_list(github: Caller) -> None:
    def round_and_round(request: Request) -> Response | None:
        where = {"Location": f"{github.forge.address}/api/v3/repos/team/{len(github.forge.requests)}"}
        return Response(301, {"message": "Moved Permanently"}, where)

    github.forge.fault = round_and_round
    with pytest.raises(RedirectRefused, match="redirects the project team/shop"):
        github.export()
    assert len(github.forge.requests) == 2
    github.forge.fault = lambda request: round_and_round(request) if "/issues" in request.path else None
    with pytest.raises(RedirectRefused, match="redirects the issues of team/shop"):
        github.export()


@pytest.mark.parametrize(
    ("address", "api"),
    [
        ("https://github.com", "https://api.github.com"),
        ("https://www.github.com", "https://api.github.com"),
        ("https://acme.ghe.com", "https://api.acme.ghe.com"),
        ("https://git.example.com:8443", "https://git.example.com:8443/api/v3"),
    ],
)
def test_where_the_api_is(address: str, api: str) -> None:
    assert api_address(address) == api


def test_the_details_query_is_graphql() -> None:
    """Checked by hand against GitHub's public schema; here only that it parses, and asks for each number once."""
    graphql = pytest.importorskip("graphql")
    parsed = graphql.parse(details_query([1, 22]))
    assert len(parsed.definitions) == 5
    assert details_query([1, 22]).count("issueOrPullRequest(number: 22)") == 1
