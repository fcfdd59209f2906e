"""What one request came to, without a library's own types, so that waiting and retrying are written once."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any, Final

import requests
from requests.utils import parse_header_links
from urllib3.exceptions import NameResolutionError

from evalpipe.forges.errors import (
    AccessDenied,
    AnswerInvalid,
    ForgeError,
    ProjectMissing,
    RedirectRefused,
    TokenRefused,
)
from evalpipe.forges.token import Token

TIMEOUT: Final = 30
"""Seconds that a forge may be silent."""
PAGE: Final = 100
"""Items asked for in one page, the most that both forges give."""
_LONGEST_MESSAGE: Final = 200


@dataclass(frozen=True, slots=True)
class Place:
    """A forge as messages name it, and the token that goes there. `variable` is where the token comes from."""

    name: str
    address: str
    token: Token | None
    variable: str

    def clean(self, text: object) -> str:
        """A forge's own words on one short line, without the token."""
        words = " ".join(str(text).split())
        shown = words if self.token is None else self.token.hidden_in(words)
        return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[:_LONGEST_MESSAGE]}…"


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON of a good answer; headers have lower-case names."""

    data: Any
    headers: Mapping[str, str]

    @property
    def next_query(self) -> str | None:
        """The query of the next page, None on the last. Its host and path are left: the token goes to one place."""
        for link in parse_header_links(self.headers.get("link", "")):
            if link.get("rel") == "next":
                return urllib.parse.urlsplit(link["url"]).query
        return None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is none: its status (300 and above), headers with lower-case names, the forge's words."""

    status: int
    headers: Mapping[str, str]
    message: str


class TroubleKind(StrEnum):
    """Why there was no answer at all."""

    no_such_host = auto()
    certificate = auto()
    certificate_file = auto()
    not_json = auto()
    timeout = auto()
    connection = auto()


PASSING: Final = frozenset({TroubleKind.timeout, TroubleKind.connection})
"""What can be over a moment later."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A request without an answer; `detail` is empty where the kind says it all."""

    kind: TroubleKind
    detail: str = ""


Outcome = Answer | Refusal | Trouble


def lowered(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Headers with lower-case names."""
    return {name.lower(): value for name, value in (headers or {}).items()}


def trouble_of(error: OSError) -> Trouble:
    """What an error of the requests library means (they all are OSErrors; a missing CA file is a bare one)."""
    if isinstance(error, requests.exceptions.SSLError):
        return Trouble(TroubleKind.certificate)
    if isinstance(error, requests.exceptions.Timeout):
        return Trouble(TroubleKind.timeout)
    if isinstance(error, requests.exceptions.RequestException):
        reason = getattr(error.args[0], "reason", None) if error.args else None
        if isinstance(reason, NameResolutionError):
            return Trouble(TroubleKind.no_such_host)
        return Trouble(TroubleKind.connection, type(error).__name__)
    return Trouble(TroubleKind.certificate_file, str(certificates()))


def certificates() -> str | bool:
    """The file of trusted certificates that the environment names, else True for the usual ones.

    requests knows REQUESTS_CA_BUNDLE alone; the rest of a corporate machine goes by SSL_CERT_FILE.
    """
    return os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE") or True


def below(api: str, location: str) -> str | None:
    """The address below an API that a redirect names, None when it leads anywhere else."""
    target, here = urllib.parse.urlsplit(location), urllib.parse.urlsplit(api)
    if target.netloc and (target.scheme, target.netloc) != (here.scheme, here.netloc):
        return None
    return target.path.removeprefix(here.path) if target.path.startswith(f"{here.path}/") else None


def refused(refusal: Refusal, place: Place, what: str) -> ForgeError:
    """The error for a request that is refused for good. `what` is the thing asked for, as `the project team/shop`."""
    said = f"{refusal.status}: {place.clean(refusal.message)}" if refusal.message else str(refusal.status)
    if refusal.status == 401:
        if place.token is None:
            return TokenRefused(f"{place.address} wants a token for {what} ({said}): set {place.variable}")
        return TokenRefused(
            f"{place.address} refuses the token in {place.variable} ({said}): it is wrong or has expired; set a new one"
        )
    if refusal.status == 403:
        token = f"the token in {place.variable}"
        way = f"set {place.variable}" if place.token is None else f"give {token} the right to read it"
        return AccessDenied(f"{place.address} does not let {what} be read ({said}): {way}")
    if refusal.status in (404, 410):
        seen = f"set {place.variable}" if place.token is None else f"let the token in {place.variable} see it"
        return ProjectMissing(f"{place.address} has no {what.removeprefix('the ')} ({said}): check `forge`, or {seen}")
    if refusal.status < 400:
        return RedirectRefused(
            f"{place.address} redirects {what} to another place ({refusal.status}), which is not followed, so that the "
            f"token goes nowhere else: write the forge's own address in `forge.url`"
        )
    return AnswerInvalid(f"{place.address} refuses {what} ({said})")


def unexpected(place: Place, what: str) -> AnswerInvalid:
    """The error for an answer that is not the API's."""
    return AnswerInvalid(
        f"{place.address} answered to {what} with something that is not {place.name}'s API; check `forge.kind` and "
        f"`forge.url`, and whether a proxy or a login page stands between"
    )
