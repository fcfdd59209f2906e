"""The token: kept so that no repr, log or error text shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evalpipe.forges.errors import TokenInvalid

_HIDDEN = "***"


class Token:
    """A token that shows itself to nobody who does not ask for `value`, and cannot be pickled by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @property
    def value(self) -> str:
        """The token itself, for the client that sends it."""
        return self._value

    def hidden_in(self, text: str) -> str:
        """The text without the token, should it be there (a server can repeat what it was sent)."""
        return text.replace(self._value, _HIDDEN)

    def __repr__(self) -> str:
        return f"Token({_HIDDEN})"

    def __reduce__(self) -> str:
        raise TypeError("a token is not stored")


def token_from(environment: Mapping[str, str], variable: str) -> Token | None:
    """The token in an environment variable, None when it is not set or empty.

    Raises TokenInvalid for what no header can carry: the libraries would repeat it in their error.
    """
    value = environment.get(variable, "").strip()
    if not value:
        return None
    if re.fullmatch(r"[!-~]+", value) is None:
        raise TokenInvalid(f"{variable} holds spaces, line breaks or letters that no token has; set it anew")
    return Token(value)
