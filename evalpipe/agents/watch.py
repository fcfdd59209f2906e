"""Looks at an attempt that runs: its deadline, and whether it still does anything."""

import time
from dataclasses import dataclass

from evalpipe.gateway import OpenAttempt

MOST_WITH_WAITS = 4
"""Where waits for rate limits do not count, an attempt still ends after so many times its seconds."""


@dataclass
class AttemptWatch:
    """See `Watch`. `timeout_s`: seconds for the attempt, without those it waits for rate limits unless `count_waits`.

    `silence_s`: seconds without output and without a byte between it and its model. A call that waits for its answer
    is no silence: the gateway gives that up itself. `reason` says why an attempt was ended.
    """

    timeout_s: float
    silence_s: float
    model: OpenAttempt | None = None
    count_waits: bool = True
    reason: str = ""

    @property
    def hard_limit_s(self) -> float:
        """The limit that the box itself holds."""
        return self.timeout_s if self.count_waits or self.model is None else MOST_WITH_WAITS * self.timeout_s

    def is_over(self, elapsed_s: float, silent_s: float) -> bool:
        """See `Watch.is_over`."""
        waited = 0.0
        if self.model is not None:
            progress = self.model.progress()
            waited = 0.0 if self.count_waits else progress.rate_limit_wait_s
            silent_s = 0.0 if progress.in_flight else min(silent_s, time.monotonic() - progress.last_traffic)
        if elapsed_s - waited >= self.timeout_s:
            excluded = f", {waited:.0f} s of waiting for rate limits left out" if waited else ""
            self.reason = f"stopped after {elapsed_s:.0f} s{excluded}"
        elif silent_s >= self.silence_s:
            self.reason = f"stopped after {elapsed_s:.0f} s: for {silent_s:.0f} s it wrote nothing and called no model"
        return bool(self.reason)
