"""What the gateway saw of an attempt: each call with its result, and sums in one definition for all agents."""

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from evalpipe.gateway.usage import ReplyFacts, TokenUsage
from evalpipe.gateway.wire import WireForm


class CallResult(StrEnum):
    """How a call ended."""

    OK = "ok"
    RATE_LIMITED = "rate_limited"
    USAGE_LIMIT = "usage_limit"
    AUTH_ERROR = "auth_error"
    BAD_REQUEST = "bad_request"
    PROVIDER_ERROR = "provider_error"
    DROPPED = "dropped"
    SILENT = "silent"
    AGENT_LEFT = "agent_left"
    INTERRUPTED = "interrupted"
    REFUSED_CALLS = "refused_calls"
    REFUSED_TOKENS = "refused_tokens"
    REFUSED_COST = "refused_cost"
    REFUSED_PATH = "refused_path"
    REFUSED_KEY = "refused_key"
    REFUSED_SIZE = "refused_size"
    REPLAY_ENDED = "replay_ended"


PROVIDER_FAULTS = frozenset(
    {
        CallResult.RATE_LIMITED,
        CallResult.USAGE_LIMIT,
        CallResult.AUTH_ERROR,
        CallResult.PROVIDER_ERROR,
        CallResult.DROPPED,
        CallResult.SILENT,
    }
)
CAP_REFUSALS = frozenset({CallResult.REFUSED_CALLS, CallResult.REFUSED_TOKENS, CallResult.REFUSED_COST})


@dataclass(frozen=True, slots=True)
class Call:
    """One request of an agent. `started` and `ended` are seconds since the epoch; sizes are bytes on the wire."""

    number: int
    form: WireForm | None
    path: str
    generates: bool
    started: float
    ended: float | None = None
    result: CallResult = CallResult.INTERRUPTED
    status: int | None = None
    model: str | None = None
    usage: TokenUsage | None = None
    cost_usd: Decimal | None = None
    retry_after: str | None = None
    error_type: str | None = None
    detail: str = ""
    request_bytes: int = 0
    reply_bytes: int = 0

    def as_line(self) -> bytes:
        """One line of JSON, as it stands in `calls.jsonl`."""
        return json.dumps(dataclasses.asdict(self), default=str).encode() + b"\n"

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "Call":
        """The call of a line. Raises KeyError, TypeError and ValueError when it is none."""
        usage, cost, form = document["usage"], document["cost_usd"], document["form"]
        return cls(
            **document
            | {
                "form": None if form is None else WireForm(form),
                "result": CallResult(document["result"]),
                "usage": None if usage is None else TokenUsage(**usage),
                "cost_usd": None if cost is None else Decimal(cost),
            }
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """All calls of an attempt, oldest first, and what follows from them."""

    calls: tuple[Call, ...]

    @property
    def succeeded(self) -> int:
        """How many calls the provider answered with a whole reply."""
        return sum(call.generates and call.result is CallResult.OK for call in self.calls)

    @property
    def cap_reached(self) -> CallResult | None:
        """The cap that refused a call, when one did."""
        return next((call.result for call in self.calls if call.result in CAP_REFUSALS), None)

    @property
    def last_of_provider(self) -> Call | None:
        """The last call that had an answer, or a fault, of the provider's own; refusals are the gateway's."""
        of_provider = PROVIDER_FAULTS | {CallResult.OK, CallResult.BAD_REQUEST}
        return next((call for call in reversed(self.calls) if call.generates and call.result in of_provider), None)

    def usage_by_model(self) -> dict[str, tuple[int, TokenUsage]]:
        """For each model that replied: calls with a usage report, and their tokens."""
        found: dict[str, tuple[int, TokenUsage]] = {}
        for call in self.calls:
            if call.usage is not None:
                calls, tokens = found.get(call.model or "unknown", (0, TokenUsage()))
                found[call.model or "unknown"] = calls + 1, tokens + call.usage
        return found

    @property
    def usage(self) -> TokenUsage:
        return sum((call.usage for call in self.calls if call.usage is not None), TokenUsage())

    @property
    def cost_usd(self) -> Decimal | None:
        """What was paid, in US dollars; None when a call that used tokens, or may have, has no price."""
        return sum_costs(self.calls)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What keeps tokens or cost from being known, for the reader of a report."""
        unpriced = sorted({call.model or "unknown" for call in self.calls if call.usage and call.cost_usd is None})
        unreported = sum(call.usage is None and _may_cost(call) for call in self.calls)
        found = [f"the price of model {model} is not known: cost is left open" for model in unpriced]
        if unreported:
            found.append(f"{unreported} calls ended without a report of their tokens")
        return tuple(found)

    @property
    def rate_limit_wait_s(self) -> float:
        """Seconds in which an agent waited because it was told to: from a 429 to its next call."""
        waited = 0.0
        for call, following in zip(self.calls, self.calls[1:], strict=False):
            if call.result is CallResult.RATE_LIMITED and call.ended is not None:
                waited += max(0.0, following.started - call.ended)
        return waited


def sum_costs(calls: Iterable[Call]) -> Decimal | None:
    """US dollars of `calls`; None when one that used tokens, or may have, has no price."""
    total = Decimal(0)
    for call in calls:
        if call.cost_usd is not None:
            total += call.cost_usd
        elif call.usage is not None or _may_cost(call):
            return None
    return total


def _may_cost(call: Call) -> bool:
    """Whether tokens may have been paid for although nothing was reported."""
    begun = call.result in (CallResult.DROPPED, CallResult.AGENT_LEFT, CallResult.INTERRUPTED, CallResult.SILENT)
    return call.generates and (begun or call.result is CallResult.OK)


def read_calls(path: Path) -> Evidence:
    """The evidence in a `calls.jsonl`, also of an attempt that was cut off: a call without its end is interrupted.

    A last line that is not whole is left out. Raises OSError.
    """
    found: dict[int, Call] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        call = Call.from_document(json.loads(line))
        found[call.number] = call
    return Evidence(tuple(found[number] for number in sorted(found)))


_USAGE_LIMIT_TYPES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "usage_limit_reached", "billing_error", "usage_not_included"}
)
_USAGE_LIMIT_TEXTS = ("credit balance", "usage limit", "quota exceeded", "exceeded your current quota", "spend limit")
# Gemini says "quota exceeded" of a minute's and of a day's; of the first, how many seconds to wait.
_SOON = re.compile(r"retry in [\d.]+m?s\b")
_OVERLOADED = 529  # Anthropic's own, `overloaded_error` in a stream
_ERRORS_IN_STREAMS: Sequence[tuple[str, CallResult]] = (
    ("rate_limit", CallResult.RATE_LIMITED),
    ("overloaded", CallResult.RATE_LIMITED),
    ("resource_exhausted", CallResult.RATE_LIMITED),
    ("authentication", CallResult.AUTH_ERROR),
    ("invalid_request", CallResult.BAD_REQUEST),
    ("context_length", CallResult.BAD_REQUEST),
)


def classify(status: int, facts: ReplyFacts) -> CallResult:
    """The result of a reply that came to its end, from its status and what it said.

    A limit of usage (credit, quota, subscription) is told from a rate limit by the error's type and its text, as
    providers answer both with the same status.
    """
    kind, text = (facts.error_type or "").lower(), (facts.error_message or "").lower()
    says_limit = kind in _USAGE_LIMIT_TYPES or any(phrase in text for phrase in _USAGE_LIMIT_TEXTS)
    if says_limit and (status >= 400 or kind) and not _SOON.search(text):
        return CallResult.USAGE_LIMIT
    if status in (401, 403):
        return CallResult.AUTH_ERROR
    if status == 402:
        return CallResult.USAGE_LIMIT
    if status in (429, _OVERLOADED):
        return CallResult.RATE_LIMITED
    if status >= 500 or 300 <= status < 400 or status < 200:
        return CallResult.PROVIDER_ERROR
    if status >= 400:
        return CallResult.BAD_REQUEST
    if kind:
        return next((result for part, result in _ERRORS_IN_STREAMS if part in kind), CallResult.PROVIDER_ERROR)
    return CallResult.OK if facts.ended or facts.unread else CallResult.DROPPED
