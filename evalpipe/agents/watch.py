"""Looks at an attempt that runs: its deadline, whether it still does anything, and whether its program is through."""

import time
from dataclasses import dataclass, field

from evalpipe.agents.transcripts.last_word import LastWord, LastWordListener
from evalpipe.gateway import OpenAttempt

MOST_WITH_WAITS = 4
"""Where waits for rate limits do not count, an attempt still ends after so many times its seconds."""

LAST_WORD_GRACE_S = 15.0
"""Programs have been seen to hang after their last event; a clean end takes them a second or two."""

_TRAILING_S = 2.0
"""The last bytes of a reply may pass after the event that tells of it; what comes later is another call."""


@dataclass
class AttemptWatch:
    """See `Watch`. `timeout_s`: seconds for the attempt, without those it waits for rate limits unless `count_waits`.

    `silence_s`: seconds without output and without a byte between it and its model. A call that waits for its answer
    is no silence: the gateway gives that up itself. `program` is the adapter whose last event is listened for: a
    program that has told it, and calls no model any more, has `grace_s` seconds to end by itself. `reason` says why an
    attempt was ended.
    """

    timeout_s: float
    silence_s: float
    model: OpenAttempt | None = None
    count_waits: bool = True
    program: str = ""
    grace_s: float = LAST_WORD_GRACE_S
    reason: str = ""
    _listener: LastWordListener = field(init=False)

    def __post_init__(self) -> None:
        self._listener = LastWordListener(self.program)

    @property
    def hard_limit_s(self) -> float:
        """The limit that the box itself holds."""
        return self.timeout_s if self.count_waits or self.model is None else MOST_WITH_WAITS * self.timeout_s

    @property
    def last_word(self) -> LastWord | None:
        """What the program said of its end, if it did and called no model since."""
        if self._listener.word is not None and self.model is not None:
            progress = self.model.progress()
            if progress.in_flight or progress.last_traffic > self._listener.at + _TRAILING_S:
                return None
        return self._listener.word

    def saw(self, output: bytes) -> None:
        """See `Watch.saw`."""
        self._listener.feed(output)

    def is_over(self, elapsed_s: float, silent_s: float) -> bool:
        """See `Watch.is_over`."""
        waited, now = 0.0, time.monotonic()
        if self.model is not None:
            progress = self.model.progress()
            waited = 0.0 if self.count_waits else progress.rate_limit_wait_s
            silent_s = 0.0 if progress.in_flight else min(silent_s, now - progress.last_traffic)
        if elapsed_s - waited >= self.timeout_s:
            excluded = f", {waited:.0f} s of waiting for rate limits left out" if waited else ""
            self.reason = f"stopped after {elapsed_s:.0f} s{excluded}"
        elif silent_s >= self.silence_s:
            self.reason = f"stopped after {elapsed_s:.0f} s: for {silent_s:.0f} s it wrote nothing and called no model"
        elif self.last_word and now - self._listener.at >= self.grace_s:
            self.reason = f"stopped after {elapsed_s:.0f} s: it had told its last event, and did not end"
        return bool(self.reason)
