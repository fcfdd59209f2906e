"""The last event of each program, heard in the pieces in which it comes, and nothing else taken for it."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.agents.transcripts.last_word import LastWord, LastWordListener
from evalpipe.agents.transcripts.lines import LINE_BYTES
from evalpipe_tests.agents.transcripts.test_transcripts import FILES

PROGRAMS = ("claude-code", "codex", "gemini-cli", "opencode")
FAILURES = {
    "claude-code": b'{"type":"result","subtype":"success","is_error":true,"api_error_status":429}',
    "codex": b'{"type":"turn.failed","error":{"message":"exceeded retry limit"}}',
    "gemini-cli": b'{"type":"result","status":"error","error":{"type":"FatalTurnLimitedError"}}',
    "opencode": b'{"type":"error","error":{"name":"APIError"}}',
}


def _heard(program: str, *chunks: bytes) -> LastWord | None:
    listener = LastWordListener(program)
    for chunk in chunks:
        listener.feed(chunk)
    return listener.word


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_real_run_is_done_with_its_last_line_and_not_before(program: str) -> None:
    *before, last = FILES[program].read_bytes().splitlines(keepends=True)
    assert _heard(program, *before) is None
    assert _heard(program, *before, last) is LastWord.DONE


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_error_is_a_last_word_too(program: str) -> None:
    assert _heard(program, FAILURES[program] + b"\n") is LastWord.FAILED


@pytest.mark.parametrize("program", PROGRAMS)
@given(data=st.data())
def test_it_is_heard_however_the_output_is_cut(program: str, data: st.DataObject) -> None:
    raw = b"\xff noise {\n" + FILES[program].read_bytes()[-4000:]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    assert _heard(program, *(raw[i:j] for i, j in zip([0, *cuts], [*cuts, None], strict=True))) is LastWord.DONE


@pytest.mark.parametrize("program", PROGRAMS)
def test_words_about_a_last_event_are_none(program: str) -> None:
    quoted = FAILURES[program].replace(b'"', b'\\"')
    for text in (b'{"type":"assistant","text":"%s"}\n' % quoted, b"%s: what is it?\n" % FAILURES[program], b"{\n"):
        assert _heard(program, text) is None


def test_programs_without_events_have_no_last_word() -> None:
    for program in ("aider", "mini-swe-agent", "command", "unknown"):
        assert _heard(program, *(line + b"\n" for line in FAILURES.values())) is None


def test_a_line_without_end_is_not_kept_and_the_next_one_is_heard() -> None:
    listener = LastWordListener("codex")
    piece = b"x" * 2**20
    tracemalloc.start()
    for _ in range(40):
        listener.feed(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * LINE_BYTES
    listener.feed(b"\n" + FAILURES["codex"] + b"\n")
    assert listener.word is LastWord.FAILED
