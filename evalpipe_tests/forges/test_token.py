"""The token goes to the forge alone, and into no text: the canary is looked for wherever something can be read."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe.forges import (
    AccessDenied,
    AnswerInvalid,
    ForgeError,
    ForgeUnreachable,
    Place,
    ProjectMissing,
    RedirectRefused,
    Token,
    TokenInvalid,
    TokenRefused,
    token_from,
)
from evalpipe_tests.forges.conftest import Caller
from evalpipe_tests.forges.server import TOKEN, FakeGitHub, FakeItem, Request, Response, serving


@pytest.fixture(params=["github", "gitlab"])
def caller(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[Caller]:
    """A caller; whatever happens, no log of any library, no file and no word to the user may hold the canary."""
    caplog.set_level(logging.DEBUG)
    found: Caller = request.getfixturevalue(request.param)
    yield found
    texts = [caplog.text, *found.said]
    texts += [path.read_text(errors="replace") for path in found.output.parent.rglob("*") if path.is_file()]
    assert not [text for text in texts if TOKEN in text]


def failing(caller: Caller, kind: type[ForgeError]) -> str:
    """The whole traceback of an export that fails, chained errors included, which must not hold the canary."""
    with pytest.raises(kind) as caught:
        caller.export()
    text = "".join(traceback.format_exception(caught.value))
    texts = [text, str(caught.value), repr(caught.value), repr(caught.value.args)]
    assert not [found for found in texts if TOKEN in found]
    chained: BaseException | None = caught.value.__cause__ or caught.value.__context__
    assert chained is None
    return str(caught.value)


def test_the_token_is_sent_to_the_forge_and_written_nowhere(caller: Caller) -> None:
    caller.forge.public = False
    caller.forge.items = [FakeItem(1, updated=5), FakeItem(2, pull=True, updated=5)]
    caller.export()
    sent = {
        request.headers.get("authorization") or request.headers.get("private-token")
        for request in caller.forge.requests
    }
    assert sent in ({f"token {TOKEN}"}, {TOKEN})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["project", "list", "details"])
def test_no_redirect_takes_the_token_to_another_host(caller: Caller, status: int, where: str) -> None:
    with serving(FakeGitHub()) as thief:
        caller.forge.items = [FakeItem(1, updated=5)]
        # Another port of this machine, and another name of it.
        for target in (thief.address, thief.address.replace("127.0.0.1", "localhost")):

            def fault(request: Request, target: str = target) -> Response | None:
                kind = "details" if request.path.endswith(("graphql", "notes")) else "list"
                kind = "project" if not request.path.endswith(("graphql", "notes", "issues")) else kind
                place = {"Location": f"{target}{request.path}"}
                return Response(status, {"message": "Moved"}, place) if kind == where else None

            caller.forge.fault = fault
            with pytest.raises((RedirectRefused, AnswerInvalid)) as caught:
                caller.export()
            assert TOKEN not in "".join(traceback.format_exception(caught.value))
        assert thief.requests == []


def test_a_link_to_another_host_does_not_take_the_token_there(caller: Caller) -> None:
    with serving(FakeGitHub()) as thief:
        caller.forge.items = [FakeItem(n, updated=n) for n in range(1, 150)]

        def fault(request: Request) -> Response | None:
            if not request.path.endswith("/issues") or request.query.get("page"):
                return None
            answer = caller.forge.route(request)
            return Response(
                200, answer.body, {"Link": answer.headers["Link"].replace(caller.forge.address, thief.address)}
            )

        caller.forge.fault = fault
        assert caller.export().issues == 149
        assert thief.requests == []


def test_a_wrong_token_is_said_by_the_name_of_its_variable(caller: Caller) -> None:
    caller.forge.token = "another"
    assert "the token in" in failing(caller, TokenRefused)


def test_a_server_that_repeats_the_token_does_not_get_it_printed(caller: Caller) -> None:
    for status, kind in ((401, TokenRefused), (403, AccessDenied), (404, ProjectMissing), (418, AnswerInvalid)):
        caller.forge.fault = lambda _, status=status: Response(
            status, {"message": f"no {TOKEN} here\nAuthorization: token {TOKEN}"}, {"X-Sent": TOKEN}
        )
        assert "no *** here" in failing(caller, kind)


def test_every_other_failure_keeps_it_too(caller: Caller) -> None:
    for answer, kind in (
        (Response(200, f"<html>{TOKEN}</html>".encode()), AnswerInvalid),
        (Response(200, f'{{"a": {TOKEN}'.encode()), AnswerInvalid),
        (Response(502, f"<html>{TOKEN}</html>".encode()), ForgeUnreachable),
        (Response(0), ForgeUnreachable),
    ):
        caller.forge.fault = lambda _, answer=answer: answer
        failing(caller, kind)
    caller.forge.address = "http://127.0.0.1:9"
    failing(caller, ForgeUnreachable)


def test_a_private_project_without_a_token_says_which_to_set(caller: Caller) -> None:
    caller.forge.public, caller.token = False, None
    assert "_TOKEN" in failing(caller, ProjectMissing)


def test_no_login_is_taken_from_a_netrc(caller: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password from-netrc\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    caller.token = None
    caller.export()
    assert not [request for request in caller.forge.requests if "authorization" in request.headers]


def test_a_token_shows_itself_to_nobody() -> None:
    token = Token(TOKEN)
    place = Place("GitHub", "https://github.com", token, "GITHUB_TOKEN")
    for text in (repr(token), str(token), f"{token}", repr(place), repr({"token": token})):
        assert TOKEN not in text
    for store in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="not stored"):
            store(token)
    assert token.value == TOKEN


@pytest.mark.parametrize("value", ["", "  ", "\n"])
def test_an_empty_variable_is_no_token(value: str) -> None:
    assert token_from({"X": value}, "X") is None
    assert token_from({}, "X") is None


@pytest.mark.parametrize("value", ["a b", "a\nb", "tökén", "a\x00b"])
def test_what_no_header_can_carry_is_refused_without_repeating_it(value: str) -> None:
    with pytest.raises(TokenInvalid) as caught:
        token_from({"MY_TOKEN": value}, "MY_TOKEN")
    assert "MY_TOKEN" in str(caught.value)
    assert value not in str(caught.value)


def test_a_line_break_around_a_token_is_taken_off() -> None:
    found = token_from({"X": f" {TOKEN}\n"}, "X")
    assert found is not None
    assert found.value == TOKEN
