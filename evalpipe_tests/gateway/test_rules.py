"""What the gateway refuses: other paths, other keys, what is above a cap, and what comes after the end."""

from decimal import Decimal
from pathlib import Path

import pytest

from evalpipe.gateway import CallResult, Caps, Gateway, OpenAttempt, Provider, ProviderError, WireForm
from evalpipe_tests.gateway.asking import (
    FORMS,
    KEY_VARIABLE,
    MODELS,
    REAL_KEY,
    UnixConnection,
    ask,
    leave_with,
    provider,
)
from evalpipe_tests.model_replies import Fail, Say
from evalpipe_tests.model_server import Drop, ModelServer, Silence, Step

ANTHROPIC = WireForm.ANTHROPIC_MESSAGES


@pytest.mark.parametrize(
    "path",
    [
        "/v1/complete",
        "/v1/messages/",
        "/v1/messages/../files",
        "/v1/messages/batches",
        "/v1//messages",
        "//v1/messages",
        "/v1/messages%2f..%2ffiles",
        "/%761/messages",
        "/V1/messages",
        "/v1/messages;x",
        "/v1/chat/completions",
        "http://other.example/v1/messages/x",
    ],
)
def test_a_path_that_is_not_configured_is_refused_and_not_sent(path: str) -> None:
    with ModelServer() as server, Gateway([provider(server.url, ANTHROPIC)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        answer = ask(attempt, ANTHROPIC, path=path)
        [call] = attempt.close().calls
    assert (answer.status, call.result, server.seen) == (404, CallResult.REFUSED_PATH, [])
    assert answer.document["error"]["type"] == "not_found_error"


@pytest.mark.parametrize("path", ["/v1beta/models/a/b:generateContent", "/v1beta/models/..:generateContent"])
def test_a_model_in_a_path_is_one_plain_name(path: str) -> None:
    with ModelServer() as server, Gateway([provider(server.url, WireForm.GEMINI)]) as gateway:
        assert ask(gateway.open_attempt("a", "test"), WireForm.GEMINI, path=path).status == 404
    assert server.seen == []


def test_only_post_asks_and_a_look_at_the_root_is_answered_here() -> None:
    with ModelServer() as server, Gateway([provider(server.url, ANTHROPIC)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        statuses = {}
        for method, path in (("HEAD", "/"), ("GET", "/"), ("GET", "/v1/messages"), ("DELETE", "/v1/messages")):
            connection = UnixConnection(attempt.socket)
            connection.request(method, path, headers={"x-api-key": attempt.key})
            statuses[method, path] = connection.getresponse().status
            connection.close()
    assert list(statuses.values()) == [200, 200, 404, 404]
    assert server.seen == []


@pytest.mark.parametrize("form", FORMS)
def test_another_key_is_refused_also_the_one_of_another_attempt_and_the_real_one(form: WireForm) -> None:
    with ModelServer() as server, Gateway([provider(server.url, form)]) as gateway:
        attempt, other = gateway.open_attempt("a", "test"), gateway.open_attempt("b", "test")
        answers = [ask(attempt, form, key=key) for key in ("wrong", other.key, REAL_KEY, "")]
        results = {call.result for call in attempt.close().calls}
    assert [answer.status for answer in answers] == [401] * 4
    assert results == {CallResult.REFUSED_KEY}
    assert server.seen == []


def test_after_the_end_neither_socket_nor_key_are_worth_anything() -> None:
    with ModelServer() as server, Gateway([provider(server.url, ANTHROPIC)]) as gateway:
        ended, other = gateway.open_attempt("a", "test"), gateway.open_attempt("b", "test")
        ended.close()
        with pytest.raises(OSError, match="No such file"):
            ask(ended, ANTHROPIC)
        assert list(ended.socket.parent.iterdir()) == []
        assert ask(other, ANTHROPIC, key=ended.key).status == 401
    assert server.seen == []


def _use_up(attempt: OpenAttempt, form: WireForm, most: int = 10) -> list[int]:
    return [ask(attempt, form).status for _ in range(most)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("caps", "result", "calls"),
    [
        (Caps(calls=3), CallResult.REFUSED_CALLS, 3),
        (Caps(tokens=214), CallResult.REFUSED_TOKENS, 2),
        (Caps(tokens=215), CallResult.REFUSED_TOKENS, 3),
        (Caps(cost_usd=Decimal("0.0004")), CallResult.REFUSED_COST, None),
    ],
    ids=["calls", "tokens reached", "tokens passed", "cost"],
)
def test_what_is_above_a_cap_is_refused_in_the_providers_own_form(
    form: WireForm, caps: Caps, result: CallResult, calls: int | None
) -> None:
    with ModelServer() as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test", model=MODELS[form], caps=caps)
        statuses = _use_up(attempt, form, 6)
        refused = ask(attempt, form).document["error"]
        evidence = attempt.close()
    expected = calls or (2 if form is ANTHROPIC else 3)
    assert statuses == [200] * expected + [400] * (6 - expected)
    assert (evidence.cap_reached, evidence.succeeded, len(server.seen)) == (result, expected, expected)
    assert refused["message"].startswith("evalpipe: this attempt has used its")
    assert refused.get("type", refused.get("status")) in ("invalid_request_error", "FAILED_PRECONDITION")


def test_faults_of_the_provider_use_up_no_turns_and_no_tokens() -> None:
    steps: list[Step] = [Fail(429), Fail(500), Drop(mid_stream=False), Say(), Say(), Say()]
    with ModelServer(steps) as server, Gateway([provider(server.url, ANTHROPIC)]) as gateway:
        attempt = gateway.open_attempt("a", "test", caps=Caps(calls=2))
        statuses = _use_up(attempt, ANTHROPIC, 6)
    assert statuses == [429, 500, 502, 200, 200, 400]


def test_counting_tokens_is_no_turn() -> None:
    with ModelServer() as server, Gateway([provider(server.url, ANTHROPIC)]) as gateway:
        attempt = gateway.open_attempt("a", "test", caps=Caps(calls=1))
        counted = [ask(attempt, ANTHROPIC, path="/v1/messages/count_tokens").status for _ in range(3)]
        assert (counted, _use_up(attempt, ANTHROPIC, 2)) == ([200, 200, 200], [200, 400])


@pytest.mark.parametrize(
    ("caps", "result"),
    [(Caps(tokens=10**6), CallResult.REFUSED_TOKENS), (Caps(cost_usd=Decimal(9)), CallResult.REFUSED_COST)],
    ids=["tokens", "cost"],
)
def test_a_provider_that_reports_nothing_cannot_pass_below_a_cap(caps: Caps, result: CallResult) -> None:
    with ModelServer([Say(reports_usage=False)]) as server, Gateway([provider(server.url, ANTHROPIC)]) as gateway:
        attempt = gateway.open_attempt("a", "test", caps=caps)
        assert _use_up(attempt, ANTHROPIC, 3) == [200, 400, 400]
        assert attempt.close().cap_reached is result


@pytest.mark.parametrize(
    # Told are 107 tokens and 0.00033 dollars of the whole call, 101 and 0.00024 of the others.
    "caps",
    [Caps(tokens=315), Caps(cost_usd=Decimal("0.0009"))],
    ids=["tokens", "cost"],
)
def test_calls_that_the_agent_breaks_off_before_their_report_are_not_had_for_nothing(caps: Caps) -> None:
    steps: list[Step] = [Say(), *[Silence(mid_stream=True)] * 2, Say()]
    with ModelServer(steps) as server, Gateway([provider(server.url, ANTHROPIC)]) as gateway:
        attempt = gateway.open_attempt("a", "test", model=MODELS[ANTHROPIC], caps=caps)
        assert ask(attempt, ANTHROPIC).status == 200
        for _ in range(2):
            leave_with(attempt, b"message_start")
        assert ask(attempt, ANTHROPIC).status == 400
        results = [call.result for call in attempt.close().calls]
    assert results[:3] == [CallResult.OK, CallResult.AGENT_LEFT, CallResult.AGENT_LEFT]
    assert results[3] in (CallResult.REFUSED_TOKENS, CallResult.REFUSED_COST)


def test_an_agent_that_never_waits_for_a_report_is_stopped_where_there_is_a_limit() -> None:
    with ModelServer([Silence(mid_stream=True)] * 4) as server, Gateway([provider(server.url, ANTHROPIC)]) as gateway:
        attempt = gateway.open_attempt("a", "test", model=MODELS[ANTHROPIC], caps=Caps(tokens=10**6))
        for _ in range(3):
            leave_with(attempt, b"message_start")
        assert ask(attempt, ANTHROPIC).document["error"]["message"].endswith("are not known, and it has a limit")
        assert len(server.seen) == 3


def test_a_limit_of_cost_needs_a_price_before_anything_is_paid() -> None:
    with Gateway([provider("http://127.0.0.1:9", ANTHROPIC)]) as gateway:
        with pytest.raises(ProviderError, match="the price of model my-local-model is not known"):
            gateway.open_attempt("a", "test", model="my-local-model", caps=Caps(cost_usd=Decimal(1)))
        gateway.open_attempt("a", "test", model="my-local-model", caps=Caps(tokens=5)).close()


def test_a_missing_key_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    with Gateway([provider("http://127.0.0.1:9", ANTHROPIC)]) as gateway:
        with pytest.raises(ProviderError, match=f"set {KEY_VARIABLE}"):
            gateway.open_attempt("a", "test", folder=tmp_path)
        with pytest.raises(ProviderError, match="no provider is called other: there are test"):
            gateway.open_attempt("a", "other")


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "https://user:word@host", "https://host?x=1", "https://host#x", "host"]
)
def test_an_address_that_is_more_than_a_host_and_a_path_is_refused(url: str) -> None:
    with pytest.raises(ProviderError, match="base_url must be"):
        Provider("p", url, frozenset({ANTHROPIC}))


def test_the_machines_proxy_is_used_where_it_is_not_excepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    outside, inside = (
        Provider("p", f"https://{host}", frozenset({ANTHROPIC})) for host in ("a.example", "inside.example")
    )
    assert (outside.proxy(), inside.proxy()) == ("http://proxy.example:3128", None)


def test_a_path_before_the_forms_own_is_kept() -> None:
    target = Provider("p", "https://host.example:8443/api/", frozenset({ANTHROPIC})).url(
        "/v1/messages", {"beta": "true"}
    )
    assert str(target) == "https://host.example:8443/api/v1/messages?beta=true"
