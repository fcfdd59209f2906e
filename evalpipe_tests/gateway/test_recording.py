"""Bodies on disk hold no secret, and give an attempt again without a provider."""

import base64
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.gateway import CallResult, Gateway, WireForm
from evalpipe.gateway.redaction import REDACTED, Redactor
from evalpipe_tests.gateway.asking import FORMS, REAL_KEY, ask, provider
from evalpipe_tests.model_replies import Fail, Say
from evalpipe_tests.model_server import Drop, ModelServer, Step

SECRET = 'a-very+secret/value"4711'


@given(
    before=st.binary(max_size=30),
    after=st.binary(max_size=30),
    at=st.lists(st.integers(0, 200), max_size=6),
    form=st.sampled_from(["plain", "hex", "base64"]),
)
def test_a_secret_is_found_however_the_stream_is_cut(before: bytes, after: bytes, at: list[int], form: str) -> None:
    plain = SECRET.encode()
    text = {
        "plain": before + plain + after,
        "hex": plain.hex().encode(),
        "base64": base64.b64encode(before + plain + after),
    }
    stream = text[form]
    places = sorted({place % (len(stream) + 1) for place in at})
    redactor = Redactor([SECRET])
    cuts = zip([0, *places], [*places, len(stream)], strict=True)
    written = b"".join(redactor.feed(stream[begin:end]) for begin, end in cuts) + redactor.finish()
    whole = Redactor([SECRET])
    assert written == whole.feed(stream) + whole.finish()
    assert REDACTED in written
    assert plain not in written
    if form == "plain":
        assert written == before + REDACTED + after


def test_what_is_too_short_to_be_a_secret_is_left() -> None:
    redactor = Redactor(["abc", ""])
    assert redactor.feed(b"abc abc") + redactor.finish() == b"abc abc"


@pytest.mark.parametrize("form", FORMS)
def test_a_recorded_attempt_is_replayed_without_a_provider(
    form: WireForm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Step] = [Say("first"), Fail(429, retry_after="1"), Say("second"), Drop()]
    with ModelServer(steps, compress=True) as server:
        with Gateway([provider(server.url, form)], records_bodies=True) as gateway:
            attempt = gateway.open_attempt("a", "test", folder=tmp_path)
            then = [ask(attempt, form, streams=True) for _ in steps]
            recorded = attempt.close()
        asked = len(server.seen)
        monkeypatch.undo()
        with Gateway([provider(server.url, form)]) as gateway:
            attempt = gateway.open_attempt("b", "test", replay=tmp_path)
            now = [ask(attempt, form, streams=True) for _ in steps]
            more = ask(attempt, form, streams=True)
            replayed = attempt.close()
    assert [(answer.status, answer.body, answer.cut) for answer in now] == [
        (answer.status, answer.body, answer.cut) for answer in then
    ]
    assert [call.result for call in replayed.calls] == [
        *(call.result for call in recorded.calls),
        CallResult.REPLAY_ENDED,
    ]
    assert replayed.usage == recorded.usage
    assert (more.status, len(server.seen)) == (400, asked)


def test_no_secret_is_anywhere_in_the_folder_of_an_attempt(tmp_path: Path) -> None:
    form = WireForm.ANTHROPIC_MESSAGES
    leaking: list[Step] = [Say(f"{REAL_KEY} {SECRET}"), Fail(401, message=f"bad key {REAL_KEY}")]
    with (
        ModelServer(leaking, piece=5) as server,
        Gateway([provider(server.url, form)], records_bodies=True, extra_secrets=[SECRET]) as gateway,
    ):
        attempt = gateway.open_attempt("a", "test", folder=tmp_path)
        for streams in (True, False):
            ask(attempt, form, streams=streams, body=f'{{"stream": true, "x": "{SECRET} {REAL_KEY}"}}'.encode())
        attempt.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 5
    for path in files:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert REAL_KEY.encode() not in data, path
        assert b"a-very+secret" not in data, path
