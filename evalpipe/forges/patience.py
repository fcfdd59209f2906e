"""Asks a forge with patience: waits out short rate limits, repeats what failed for a moment, gives up in time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from evalpipe.forges.errors import ForgeError, ForgeUnreachable, RateLimited
from evalpipe.forges.outcome import PASSING, Answer, Outcome, Place, Refusal, Trouble, TroubleKind, unexpected

LONGEST_WAIT: Final = 120.0
"""Seconds that a rate limit is waited for; a longer one ends the run, with everything kept."""
_MOST_WAITS: Final = 5
_PAUSES: Final = (1.0, 2.0, 4.0, 8.0)
# What GitHub asks for when a secondary limit comes without a time.
_UNTOLD_WAIT: Final = 60.0
# No forge means more than this (in the year 2286), and a date can still hold it.
_NO_TIME: Final = 1e10

Say = Callable[[str], None]


def utc_now() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)


class Patience:
    """How one forge is asked. `say` tells the user of a wait; tests put another `sleep` and `clock` in."""

    def __init__(
        self,
        place: Place,
        say: Say,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.place = place
        self.say = say
        self._sleep = sleep
        self._clock = clock

    def ask(self, attempt: Callable[[], Outcome], what: str) -> Answer | Refusal:
        """Try until there is an answer or a refusal that stays (a status below 500 that is no rate limit).

        Raises RateLimited, ForgeUnreachable and AnswerInvalid.
        """
        failures = waits = 0
        while True:
            outcome = attempt()
            if isinstance(outcome, Answer):
                return outcome
            limit = rate_limit(outcome, self._clock()) if isinstance(outcome, Refusal) else None
            if limit is not None:
                waits += 1
                self._wait(limit, waits)
            elif isinstance(outcome, Refusal) and outcome.status < 500:
                return outcome
            elif failures == len(_PAUSES) or (isinstance(outcome, Trouble) and outcome.kind not in PASSING):
                raise self._given_up(outcome, what)
            else:
                self._sleep(_PAUSES[failures])
                failures += 1

    def _wait(self, seconds: float, waits: int) -> None:
        if seconds > LONGEST_WAIT or waits > _MOST_WAITS:
            back_at = self._clock() + timedelta(seconds=seconds)
            minutes = max(1, round(seconds / 60))
            raise RateLimited(
                f"the rate limit of {self.place.address} is used up until {back_at:%Y-%m-%d %H:%M} UTC "
                f"(in {minutes} min); what was read is kept: run the same again then",
                back_at,
            )
        self.say(f"{self.place.address} asks for a pause (rate limit): waiting {seconds:.0f} s")
        self._sleep(seconds)

    def _given_up(self, outcome: Refusal | Trouble, what: str) -> ForgeError:
        where = self.place.address
        kept = "what was read is kept: run the same again later"
        if isinstance(outcome, Refusal):
            return ForgeUnreachable(f"{where} answers {what} with error {outcome.status} again and again; {kept}")
        detail = self.place.clean(outcome.detail)
        match outcome.kind:
            case TroubleKind.no_such_host:
                return ForgeUnreachable(f"{where}: there is no such host (DNS); check `forge.url` and the network")
            case TroubleKind.certificate:
                return ForgeUnreachable(
                    f"the TLS certificate of {where} is not trusted; when an authority of your own signed it, name its "
                    f"file in REQUESTS_CA_BUNDLE or SSL_CERT_FILE"
                )
            case TroubleKind.certificate_file:
                return ForgeUnreachable(
                    f"there is no file of certificates {detail}; mend REQUESTS_CA_BUNDLE or SSL_CERT_FILE"
                )
            case TroubleKind.not_json:
                return unexpected(self.place, what)
            case TroubleKind.timeout:
                return ForgeUnreachable(f"{where} does not answer in time; {kept}")
            case TroubleKind.connection:
                return ForgeUnreachable(f"the connection to {where} fails ({detail}); {kept}")


def rate_limit(refusal: Refusal, now: datetime) -> float | None:
    """Seconds until a rate limit is over, None when the refusal is for another reason.

    Times of the server are compared with its own clock (`Date`), since this machine's can be off.
    Rules: GitHub, "Rate limits for the REST API", Exceeding the rate limit; GitLab, "Rate limits", Response headers.
    """
    if refusal.status not in (403, 429):
        return None
    headers = refusal.headers
    now = _time(headers.get("date", "")) or now
    after = headers.get("retry-after", "")
    if after:
        until = _time(after)
        return (until - now).total_seconds() if until else _seconds(after)
    reset = _first(headers, "x-ratelimit-reset", "ratelimit-reset")
    spent = _first(headers, "x-ratelimit-remaining", "ratelimit-remaining") == "0"
    if reset and (spent or refusal.status == 429):
        return max(0.0, _seconds(reset) - now.timestamp()) + 1
    if refusal.status == 429 or spent or "rate limit" in refusal.message.lower():
        return _UNTOLD_WAIT
    return None


def _first(headers: Mapping[str, str], *names: str) -> str:
    return next((headers[name] for name in names if name in headers), "")


def _seconds(text: str) -> float:
    return min(float(text), _NO_TIME) if re.fullmatch(r"\d{1,20}(\.\d{1,9})?", text) else _UNTOLD_WAIT


def _time(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
