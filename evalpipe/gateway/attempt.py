"""One attempt at the gateway while it runs: its caps, its calls, and what it has used."""

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from evalpipe.gateway.concurrency import ProviderPlaces
from evalpipe.gateway.evidence import Call, CallResult, Evidence, classify
from evalpipe.gateway.prices import cost_usd
from evalpipe.gateway.provider import Provider
from evalpipe.gateway.recording import CALLS, BodyRecorder, Recording, reply_path, request_path
from evalpipe.gateway.usage import ReplyFacts, TokenUsage
from evalpipe.gateway.wire import Route

_DETAIL_CHARS = 500
_LEFT_BEFORE_A_WHOLE = 3
"""Calls that an agent may break off before a whole one tells what a call uses: as often clients try again."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most an attempt may use; None is no limit.

    A call is refused when what is used has reached a cap, so tokens and cost may pass it by what the calls under way
    use. Calls that the agent broke off may have been paid for, and count: as one, and as much as the largest whole one.
    A retry after a fault of the provider is no turn.
    """

    calls: int | None = None
    tokens: int | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What an attempt has used until now. `last_traffic` is on the clock of `time.monotonic`."""

    calls: int
    in_flight: int
    usage: TokenUsage
    cost_usd: Decimal | None
    rate_limit_wait_s: float
    last_traffic: float


@dataclass(slots=True)
class AttemptState:
    """What the gateway keeps of an open attempt. Only the gateway's own thread changes it."""

    attempt_id: str
    provider: Provider
    key: str | None
    caps: Caps
    folder: Path | None
    records_bodies: bool
    recording: Recording | None
    secrets: tuple[str, ...]
    places: ProviderPlaces
    proxy: str | None
    placeholder: str = field(default_factory=lambda: f"sk-evalpipe-{secrets.token_hex(24)}")
    last_traffic: float = field(default_factory=time.monotonic)
    _calls: dict[int, Call] = field(default_factory=dict)
    _open: int = 0
    _turns: int = 0

    def refusal(self, route: Route) -> tuple[CallResult, str] | None:
        """The cap that forbids another call now, and what to tell the agent."""
        if not route.generates:
            return None
        caps = self.caps
        if caps.calls is not None and self._turns + self._open >= caps.calls:
            return CallResult.REFUSED_CALLS, f"this attempt has used its {caps.calls} model calls"
        if caps.tokens is not None:
            tokens = _used(self._generating(), lambda call: None if call.usage is None else Decimal(call.usage.total))
            if tokens is None:
                return CallResult.REFUSED_TOKENS, "the tokens of this attempt are not known, and it has a limit"
            if tokens >= caps.tokens:
                return CallResult.REFUSED_TOKENS, f"this attempt has used its {caps.tokens} tokens"
        if caps.cost_usd is not None:
            cost = _used(self._generating(), lambda call: call.cost_usd)
            if cost is None:
                return CallResult.REFUSED_COST, "the cost of this attempt is not known, and it has a limit"
            if cost >= caps.cost_usd:
                return CallResult.REFUSED_COST, f"this attempt has used its {caps.cost_usd} US dollars"
        return None

    def begin(self, route: Route | None, path: str) -> Call:
        """Enter a call into the journal before anything is sent."""
        generates = route is not None and route.generates
        form = route.form if route else None
        call = Call(len(self._calls) + 1, form, path[:500], generates, time.time())
        self._open += generates
        self._enter(call)
        return call

    def end(self, call: Call, facts: ReplyFacts | None, result: CallResult | None = None) -> CallResult:
        """Enter the end of a call; without a `result`, what the reply said of itself decides."""
        usage = facts.usage if facts else None
        model = facts.model if facts else None
        if result is None:
            assert call.status is not None
            assert facts is not None
            result = classify(call.status, facts)
        cost = None
        if usage is not None:
            cost = cost_usd(self.provider.price_list, model, usage, datetime.fromtimestamp(call.started, UTC))
        self.places.report(result)
        self._open -= call.generates
        self._turns += call.generates and result in (CallResult.OK, CallResult.AGENT_LEFT)
        error_type = facts.error_type if facts else None
        message = facts.error_message if facts else None
        self._enter(
            replace(
                call,
                ended=time.time(),
                result=result,
                model=model,
                usage=usage,
                cost_usd=cost,
                error_type=error_type,
                detail=call.detail or self._redacted(message or "")[:_DETAIL_CHARS],
            )
        )
        return result

    def recorders(self, call: Call) -> tuple[BodyRecorder, BodyRecorder] | None:
        """Where the bodies of a call are kept, when they are."""
        if self.folder is None or not self.records_bodies:
            return None
        return (
            BodyRecorder(request_path(self.folder, call.number), self.secrets),
            BodyRecorder(reply_path(self.folder, call.number), self.secrets),
        )

    def touch(self) -> None:
        """Bytes have passed."""
        self.last_traffic = time.monotonic()

    def evidence(self) -> Evidence:
        """All calls until now; those under way count as interrupted."""
        return Evidence(tuple(self._calls.values()))

    def progress(self) -> Progress:
        """What is used until now. May be asked from any thread."""
        evidence = self.evidence()
        ended = Evidence(tuple(call for call in evidence.calls if call.ended is not None))
        return Progress(
            ended.succeeded, self._open, ended.usage, ended.cost_usd, evidence.rate_limit_wait_s, self.last_traffic
        )

    def _generating(self) -> list[Call]:
        return [call for call in self._calls.values() if call.generates and call.ended is not None]

    def _enter(self, call: Call) -> None:
        self._calls[call.number] = call
        self.last_traffic = time.monotonic()
        if self.folder is not None:
            with (self.folder / CALLS).open("ab") as journal:
                journal.write(call.as_line())

    def _redacted(self, text: str) -> str:
        return _without(text, self.secrets)


def _used(calls: Iterable[Call], amount: Callable[[Call], Decimal | None]) -> Decimal | None:
    """The sum of an `amount` over calls that have ended; None when it cannot be told.

    One that the agent broke off counts as the largest whole one, or it could be had for nothing: its report comes last.
    """
    whole: list[Decimal] = []
    left: list[Decimal] = []
    other = Decimal(0)
    for call in calls:
        told = amount(call)
        if told is None and (call.result is CallResult.OK or call.usage is not None):
            return None
        if call.result is CallResult.OK:
            whole.append(told or Decimal(0))
        elif call.result is CallResult.AGENT_LEFT:
            left.append(told or Decimal(0))
        else:
            other += told or Decimal(0)
    if not whole and len(left) >= _LEFT_BEFORE_A_WHOLE:
        return None
    return sum(whole, other) + sum(max([told, *whole]) for told in left)


def _without(text: str, values: Iterable[str]) -> str:
    for value in values:
        if value:
            text = text.replace(value, "[redacted]")
    return text
