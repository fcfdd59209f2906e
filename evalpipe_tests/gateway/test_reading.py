"""Replies are read alike however they are cut into chunks, and what is broken in them ends nothing."""

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.gateway.reading import DOCUMENT_BYTES, EventSplitter, ReplyReader
from evalpipe.gateway.usage import ReplyFacts, TokenUsage
from evalpipe.gateway.wire import WireForm
from evalpipe_tests.model_replies import EVENTS, Say, Use

NAMES = {
    WireForm.ANTHROPIC_MESSAGES: "anthropic",
    WireForm.OPENAI_RESPONSES: "responses",
    WireForm.OPENAI_CHAT: "chat",
    WireForm.GEMINI: "gemini",
}
_ASKS = {"model": "m", "stream_options": {"include_usage": True}}


def _cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({place % (len(data) + 1) for place in at})
    return [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)], strict=True)]


@settings(max_examples=60, deadline=None)
@given(
    form=st.sampled_from(list(WireForm)),
    text=st.text(max_size=60),
    ending=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    compress=st.booleans(),
    at=st.lists(st.integers(0, 10_000), max_size=40),
)
def test_any_cutting_gives_the_same_counts(
    form: WireForm, text: str, ending: bytes, compress: bool, at: list[int]
) -> None:
    stream = b": hello\n\n" + b"".join(EVENTS[NAMES[form]](Use("tool", {"x": text}, text), _ASKS))
    sent = stream.replace(b"\n", ending)
    if compress:
        engine = zlib.compressobj(wbits=31)
        sent = engine.compress(sent) + engine.flush()
    facts = ReplyFacts(form)
    reader = ReplyReader(facts, "text/event-stream; charset=utf-8", "gzip" if compress else "")
    decoded = b"".join(piece for chunk in _cut(sent, at) for piece in reader.feed(chunk))
    reader.finish()
    written, reasoning = (10, 0) if form is WireForm.ANTHROPIC_MESSAGES else (0, 2)
    assert facts.usage == TokenUsage(100, 30, written, 7, reasoning)
    assert (facts.model, facts.ended, facts.unread, facts.error_type) == ("m", True, False, None)
    assert decoded == stream.replace(b"\n", ending)


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(st.binary(max_size=20).filter(lambda line: not set(line) & {10, 13}), max_size=8),
    at=st.lists(st.integers(0, 400), max_size=20),
    ending=st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_events_are_split_alike_however_they_arrive(lines: list[bytes], at: list[int], ending: bytes) -> None:
    stream = b"".join(b"data: " + line + ending * 2 for line in lines)
    splitter = EventSplitter()
    found = [data for chunk in _cut(stream + b":\n", at) for data in splitter.feed(chunk)]
    assert found == lines


def test_data_of_several_lines_is_one_event() -> None:
    assert list(EventSplitter().feed(b"event: x\ndata: a\ndata:b\nid: 1\n\ndata: half")) == [b"a\nb"]


@pytest.mark.parametrize("form", list(WireForm))
def test_an_event_that_is_no_json_is_passed_over(form: WireForm) -> None:
    facts = ReplyFacts(form)
    reader = ReplyReader(facts, "text/event-stream", "")
    reader.feed(b'data: \xff\xfe\n\ndata: [1,2]\n\ndata: {"usage": 7, "model": 3}\n\n')
    reader.feed(b"".join(EVENTS[NAMES[form]](Say(), _ASKS)))
    reader.finish()
    assert facts.usage is not None
    assert (facts.usage.input, facts.ended, facts.unread) == (100, True, True)


def test_an_event_too_large_to_hold_is_not_held() -> None:
    facts = ReplyFacts(WireForm.ANTHROPIC_MESSAGES)
    reader = ReplyReader(facts, "text/event-stream", "")
    for _ in range(DOCUMENT_BYTES // 2**20 + 2):
        reader.feed(b"x" * 2**20)
    reader.finish()
    assert facts.unread


def test_a_compression_that_is_not_known_is_told() -> None:
    facts = ReplyFacts(WireForm.OPENAI_CHAT)
    ReplyReader(facts, "application/json", "br")
    assert facts.unread


@pytest.mark.parametrize(
    ("form", "report", "expected"),
    [
        (WireForm.OPENAI_CHAT, {"usage": {"prompt_tokens": 5, "completion_tokens": None}}, TokenUsage(input=5)),
        (WireForm.OPENAI_CHAT, {"usage": {"prompt_tokens": True, "completion_tokens": -3}}, TokenUsage()),
        (WireForm.OPENAI_CHAT, {"usage": {"prompt_tokens_details": None, "prompt_tokens": 4}}, TokenUsage(input=4)),
        (
            WireForm.GEMINI,
            {"usageMetadata": {"promptTokenCount": 9, "toolUsePromptTokenCount": 2, "thoughtsTokenCount": 4}},
            TokenUsage(input=11, output=4, reasoning=4),
        ),
    ],
)
def test_reports_with_gaps_and_nonsense_are_read(
    form: WireForm, report: dict[str, object], expected: TokenUsage
) -> None:
    facts = ReplyFacts(form)
    facts.read(json.loads(json.dumps(report)))
    assert facts.usage == expected
