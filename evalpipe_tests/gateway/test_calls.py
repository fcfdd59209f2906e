"""A call through the gateway: the agent gets the provider's bytes, and the evidence says what it was."""

import tempfile
from decimal import Decimal
from pathlib import Path

import pytest

from evalpipe.gateway import CallResult, Caps, Gateway, TokenUsage, WireForm, read_calls
from evalpipe_tests.gateway.asking import FORMS, MODELS, REAL_KEY, ask, leave_with, provider
from evalpipe_tests.model_replies import Fail, Say, Use
from evalpipe_tests.model_server import Drop, ModelServer, Silence, Step

_CACHE_WRITES = {WireForm.ANTHROPIC_MESSAGES: 10}
_REASONING = dict.fromkeys(FORMS, 2) | {WireForm.ANTHROPIC_MESSAGES: 0}
# By the providers' price lists of 2025: (70 or 60 uncached, 30 cached, 10 written, 7 of output) times millionths.
_COSTS = dict.fromkeys(FORMS, Decimal("0.00016125")) | {WireForm.ANTHROPIC_MESSAGES: Decimal("0.0003315")}


@pytest.mark.parametrize("streams", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("compress", [False, True], ids=["identity", "gzip"])
@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_counted_alike_in_every_form_and_coding(form: WireForm, compress: bool, streams: bool) -> None:
    with ModelServer(compress=compress, piece=7) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        answer = ask(attempt, form, streams=streams, headers={"Accept-Encoding": "gzip, br, zstd"})
        evidence = attempt.close()
    assert answer.status == 200
    assert answer.headers.get("Content-Encoding") == ("gzip" if compress else None)
    [call] = evidence.calls
    assert (call.result, call.reply_bytes) == (CallResult.OK, len(answer.body))
    assert evidence.usage == TokenUsage(100, 30, _CACHE_WRITES.get(form, 0), 7, _REASONING[form])
    assert list(evidence.usage_by_model()) == [MODELS[form]]
    assert evidence.cost_usd == _COSTS[form]


@pytest.mark.parametrize("form", FORMS)
def test_the_provider_sees_the_real_key_and_never_the_placeholder(form: WireForm) -> None:
    with ModelServer() as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        answer = ask(attempt, form, headers={"Cookie": "a=b", "X-Forwarded-For": "10.0.0.1", "anthropic-version": "1"})
    [seen] = server.seen
    assert REAL_KEY in str(seen.headers)
    assert attempt.key not in str(seen)
    assert "anthropic-version" in seen.headers
    assert not {"Cookie", "X-Forwarded-For"} & seen.headers.keys()
    assert REAL_KEY not in str(answer)
    names = {name.lower() for name in answer.headers}
    assert "x-request-id" in names
    assert "set-cookie" not in names


def test_a_key_in_the_address_is_taken_and_does_not_reach_the_provider() -> None:
    form = WireForm.GEMINI
    with ModelServer() as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        path = f"/v1beta/models/gemini-2.5-pro:streamGenerateContent?key={attempt.key}&alt=sse&other=1"
        answer = ask(attempt, form, key="", path=path)
    assert answer.status == 200
    assert server.seen[0].query == "alt=sse"


@pytest.mark.parametrize(
    ("step", "result", "status", "cut"),
    [
        (Fail(401), CallResult.AUTH_ERROR, 401, False),
        (Fail(403), CallResult.AUTH_ERROR, 403, False),
        (Fail(429, retry_after="7"), CallResult.RATE_LIMITED, 429, False),
        (Fail(529, "overloaded_error"), CallResult.RATE_LIMITED, 529, False),
        (Fail(429, "insufficient_quota"), CallResult.USAGE_LIMIT, 429, False),
        (Fail(429, "rate_limit_error", "You have hit your usage limit."), CallResult.USAGE_LIMIT, 429, False),
        (Fail(400, "invalid_request_error", "Your credit balance is too low"), CallResult.USAGE_LIMIT, 400, False),
        (Fail(402), CallResult.USAGE_LIMIT, 402, False),
        (Fail(400, "context_length_exceeded"), CallResult.BAD_REQUEST, 400, False),
        (Fail(500), CallResult.PROVIDER_ERROR, 500, False),
        (Fail(503, body=b"\xff\xfe<html>"), CallResult.PROVIDER_ERROR, 503, False),
        (Fail(307), CallResult.PROVIDER_ERROR, 307, False),
        (Drop(mid_stream=False), CallResult.PROVIDER_ERROR, 502, False),
        (Drop(), CallResult.DROPPED, 200, True),
        (Drop(politely=True), CallResult.DROPPED, 200, True),
        (Silence(), CallResult.SILENT, 504, False),
        (Silence(mid_stream=True), CallResult.SILENT, 200, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", FORMS)
def test_each_fault_of_a_provider_has_its_result(
    form: WireForm, step: Step, result: CallResult, status: int, cut: bool
) -> None:
    with ModelServer([step]) as server, Gateway([provider(server.url, form)], silence_s=0.3) as gateway:
        attempt = gateway.open_attempt("a", "test")
        answer = ask(attempt, form, streams=True)
        [call] = attempt.close().calls
    assert (answer.status, answer.cut) == (status, cut)
    assert (call.result, call.status) == (result, status)
    if isinstance(step, Fail):
        assert call.retry_after == step.retry_after


def test_a_stream_that_breaks_keeps_what_it_had_reported() -> None:
    form = WireForm.ANTHROPIC_MESSAGES
    with ModelServer([Drop()]) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        ask(attempt, form, streams=True)
        evidence = attempt.close()
    assert evidence.succeeded == 0
    assert (evidence.usage.input, evidence.usage.output) == (100, 1)


@pytest.mark.parametrize(
    ("step", "last", "result"),
    [
        (Say(lingers=True), b"message_stop", CallResult.OK),
        (Silence(mid_stream=True), b"message_start", CallResult.AGENT_LEFT),
    ],
    ids=["with the last event", "in the middle"],
)
def test_who_leaves_with_the_last_event_has_had_a_whole_reply(step: Step, last: bytes, result: CallResult) -> None:
    form = WireForm.ANTHROPIC_MESSAGES
    with ModelServer([step]) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test", caps=Caps(calls=1))
        leave_with(attempt, last)
        assert ask(attempt, form).status == 400  # Either way it was a turn, which may have been paid for.
        call, refused = attempt.close().calls
    assert (call.result, call.status) == (result, 200)
    assert refused.result is CallResult.REFUSED_CALLS


def test_a_provider_that_is_not_there_is_an_error_of_the_provider() -> None:
    form = WireForm.OPENAI_CHAT
    with Gateway([provider("http://127.0.0.1:9", form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        answer = ask(attempt, form)
        [call] = attempt.close().calls
    assert (answer.status, call.result) == (502, CallResult.PROVIDER_ERROR)
    assert "cannot be reached" in answer.document["error"]["message"]


def test_chat_streams_are_asked_for_their_tokens_and_keep_other_options() -> None:
    form = WireForm.OPENAI_CHAT
    body = b'{"model": "gpt-5", "stream": true, "stream_options": {"x": 1, "include_usage": false}, "n": 1}'
    with ModelServer() as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        ask(attempt, form, body=body)
        evidence = attempt.close()
    assert server.seen[0].document["stream_options"] == {"x": 1, "include_usage": True}
    assert evidence.usage.input == 100


@pytest.mark.parametrize("form", [form for form in FORMS if form is not WireForm.OPENAI_CHAT])
def test_other_requests_arrive_byte_for_byte(form: WireForm) -> None:
    body = b'{"stream":  true, "text": "' + b"\xff\x00" + b'", "rest": "' + b"x" * 300_000 + b'"}'
    with ModelServer(lambda number, document: Say()) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        ask(attempt, form, body=body)
        [call] = attempt.close().calls
    assert server.seen[0].body == body
    assert call.request_bytes == len(body)


def test_a_reply_of_long_lines_passes_whole() -> None:
    form = WireForm.ANTHROPIC_MESSAGES
    long = "é" * 200_000
    step = Use("Bash", {"command": long}, long)
    with ModelServer([step], piece=50_000) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        answer = ask(attempt, form, streams=True)
        evidence = attempt.close()
    assert len(answer.body) > 2 * 6 * 200_000
    assert (evidence.usage.output, evidence.succeeded) == (7, 1)


def test_a_model_without_a_price_leaves_the_cost_open_and_warns() -> None:
    form = WireForm.OPENAI_CHAT
    with (
        ModelServer([Say(model="my-local-model")]) as server,
        Gateway([provider(server.url, form)]) as gateway,
    ):
        attempt = gateway.open_attempt("a", "test")
        ask(attempt, form)
        evidence = attempt.close()
    assert evidence.cost_usd is None
    assert evidence.warnings == ("the price of model my-local-model is not known: cost is left open",)


def test_a_reply_without_a_report_of_tokens_leaves_the_cost_open_and_warns() -> None:
    form = WireForm.OPENAI_RESPONSES
    with ModelServer([Say(reports_usage=False)]) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        ask(attempt, form, streams=True)
        evidence = attempt.close()
    assert (evidence.succeeded, evidence.cost_usd) == (1, None)
    assert evidence.warnings == ("1 calls ended without a report of their tokens",)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    form = WireForm.ANTHROPIC_MESSAGES
    steps: list[Step] = [Fail(429, retry_after="1"), Say()]
    with ModelServer(steps) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test", folder=tmp_path / "calls")
        ask(attempt, form)
        ask(attempt, form, streams=True)
        evidence = attempt.close()
    assert read_calls(tmp_path / "calls" / "calls.jsonl") == evidence


def test_the_folders_of_a_killed_gateway_are_removed_and_those_of_a_live_one_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Gateway([provider("http://127.0.0.1:9", WireForm.OPENAI_CHAT)]):
        (live,) = tmp_path.iterdir()
        # As a kill leaves it: nobody holds its file any more.
        dead = tmp_path / "evalpipe-gateway-dead"
        dead.mkdir()
        (dead / "held").touch()
        (tmp_path / "evalpipe-gateway-strange").mkdir()
        with Gateway([provider("http://127.0.0.1:9", WireForm.OPENAI_CHAT)]):
            assert live.is_dir()
            assert not dead.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["evalpipe-gateway-strange"]
