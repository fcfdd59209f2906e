"""What the attempts of a run have come to so far, for whoever watches it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from evalpipe.lake import Row


def dollars(amount: float) -> str:
    """US dollars for people: in cents, or where that would be nothing, in their hundredths."""
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.4f}"


class AttemptTally:
    """Counts attempts by outcome, with what those of this run used. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running, self._called, self._tokens, self._cost, self._unpriced = 0, 0, 0, 0.0, 0
        self._outcomes: Counter[str] = Counter()

    @contextmanager
    def running(self) -> Iterator[None]:
        """While an attempt is made, or waits for its turn."""
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def add(self, row: Row, *, new: bool) -> None:
        """An attempt has ended; what an earlier run used is not counted again."""
        with self._lock:
            self._outcomes[row["outcome"]] += 1
            if new and row.get("model_calls") is not None:
                self._called += 1
                self._tokens += row["input_tokens"] + row["output_tokens"]
                self._cost += row["cost_usd"] or 0.0
                self._unpriced += row["cost_usd"] is None

    def text(self) -> str:
        """One line: running, outcomes, tokens, US dollars."""
        with self._lock:
            parts = [f"{self._running} running"] if self._running else []
            parts += [f"{count} {outcome}" for outcome, count in sorted(self._outcomes.items())]
            if self._called:
                parts.append(f"{self._tokens:,} tokens")
                parts.append(dollars(self._cost) + (f" and {self._unpriced} of unknown cost" if self._unpriced else ""))
            return ", ".join(parts)
