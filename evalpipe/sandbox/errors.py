"""What can go wrong with a sandbox, as opposed to with the program inside it.

A program that fails is never an exception here: it is an `Outcome`. An exception means that the run tells
nothing about the program, so that callers can keep infrastructure and failure apart by type alone.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager


class SandboxError(Exception):
    """Base of everything that a sandbox raises on purpose."""


class EngineFault(SandboxError):
    """The engine, or the host, refused or lost a box; what the program did cannot be learnt."""


class EngineUnavailable(EngineFault):
    """No engine answers: it is not running, it died, or it hangs."""


class ImageMissing(SandboxError):
    """The environment that a box should run in does not exist (any more)."""


class DiskFull(SandboxError):
    """The disk of the engine or of the state directory is full."""


class Interrupted(SandboxError):
    """The box was killed from outside, by `Sandbox.kill` or by somebody who removed it."""


class OutputTooLarge(SandboxError):
    """What the box left behind is larger than the caller allows."""


class UnsafeOutput(SandboxError):
    """What the box left behind is a link, a directory or a device where a regular file was expected."""


@contextmanager
def host_faults(doing: str) -> Iterator[None]:
    """Turn the host's errors into the sandbox's; `doing` completes the sentence "cannot …"."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"cannot {doing}: the disk is full; free some space ({error})") from error
        raise EngineFault(f"cannot {doing}: {error}") from error
