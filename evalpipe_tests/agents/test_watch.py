from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import pytest

from evalpipe.agents.transcripts.last_word import LastWord
from evalpipe.agents.watch import MOST_WITH_WAITS, AttemptWatch
from evalpipe.gateway import OpenAttempt, Progress, TokenUsage


@dataclass
class Model:
    """Stands for an open attempt whose progress a test sets."""

    in_flight: int = 0
    waited_s: float = 0.0
    quiet_s: float = 0.0

    def progress(self) -> Progress:
        return Progress(1, self.in_flight, TokenUsage(), None, self.waited_s, time.monotonic() - self.quiet_s)


def watch(model: Model | None = None, *, count_waits: bool = True) -> AttemptWatch:
    return AttemptWatch(100, 20, cast("OpenAttempt | None", model), count_waits)


def test_it_ends_an_attempt_at_its_deadline_and_not_before() -> None:
    looking = watch()
    assert not looking.is_over(99.9, 1)
    assert looking.is_over(100, 1)
    assert looking.reason == "stopped after 100 s"
    assert looking.hard_limit_s == 100


def test_silence_is_no_output_and_no_traffic() -> None:
    assert watch().is_over(50, 20)
    assert not watch().is_over(50, 19)
    assert not watch(Model(quiet_s=5)).is_over(50, 40)
    quiet = watch(Model(quiet_s=30))
    assert quiet.is_over(50, 25)
    assert quiet.reason == "stopped after 50 s: for 25 s it wrote nothing and called no model"
    assert not watch(Model(in_flight=1, quiet_s=30)).is_over(50, 40)


@pytest.mark.parametrize("count_waits", [True, False])
def test_waits_for_rate_limits_count_unless_they_are_left_out(count_waits: bool) -> None:
    looking = watch(Model(waited_s=30), count_waits=count_waits)
    assert looking.is_over(110, 0) is count_waits
    assert looking.is_over(131, 0)
    assert ("30 s of waiting for rate limits left out" in looking.reason) is not count_waits
    assert looking.hard_limit_s == (100 if count_waits else MOST_WITH_WAITS * 100)


DONE = b'{"type":"turn.completed","usage":{}}\n'


def hearing(model: Model | None = None) -> AttemptWatch:
    return AttemptWatch(100, 20, cast("OpenAttempt | None", model), program="codex", grace_s=5)


def test_a_program_that_told_its_last_event_has_a_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = hearing()
    looking.saw(b'{"type":"item.completed"}\n' + DONE[:9])
    looking.saw(DONE[9:-1])
    assert looking.last_word is None
    looking.saw(DONE[-1:])
    assert looking.last_word is LastWord.DONE
    assert not looking.is_over(50, 0)
    later = time.monotonic() + 6
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert looking.is_over(50, 0)
    assert "it had told its last event" in looking.reason


@pytest.mark.parametrize("model", [Model(in_flight=1), Model(quiet_s=0)])
def test_a_program_that_calls_its_model_after_its_last_event_goes_on(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = hearing(model)
    looking.saw(DONE)
    later = time.monotonic() + 6
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert looking.last_word is None
    assert not looking.is_over(50, 0)
