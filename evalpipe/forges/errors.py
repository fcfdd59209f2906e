"""What can go wrong with a forge; every message names the thing and says what to do, and none holds a token."""

from __future__ import annotations

from datetime import datetime


class ForgeError(Exception):
    """A forge cannot be read; base class of everything that this folder raises on purpose."""


class ForgeUnreachable(ForgeError):
    """The forge does not answer, or its certificate is not trusted."""


class TokenRefused(ForgeError):
    """The token is wrong or has expired, or one is needed and there is none."""


class TokenInvalid(ForgeError):
    """What the environment holds cannot be a token."""


class AccessDenied(ForgeError):
    """The token may not read what was asked for."""


class ProjectMissing(ForgeError):
    """There is no such project, or the token does not see it."""


class RedirectRefused(ForgeError):
    """The forge redirects to a place where the token must not go."""


class AnswerInvalid(ForgeError):
    """What answers is not the API that was expected."""


class OutputTaken(ForgeError):
    """The file to write is there already, and is nobody's export."""


class RateLimited(ForgeError):
    """The forge's rate limit is used up for longer than is waited for. `back_at` is when to come again, in UTC."""

    def __init__(self, message: str, back_at: datetime) -> None:
        super().__init__(message)
        self.back_at = back_at
