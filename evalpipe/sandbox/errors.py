"""What can go wrong with a sandbox, as opposed to with the program inside it.

A program that fails is never an exception here: it is an `Outcome`. An exception means that the run tells
nothing about the program, so that callers can keep infrastructure and failure apart by type alone.
"""


class SandboxError(Exception):
    """Base of everything that a sandbox raises on purpose."""


class EngineFault(SandboxError):  # noqa: N818
    """The engine, or the host, refused or lost a box; what the program did cannot be learnt."""


class EngineUnavailable(EngineFault):
    """No engine answers: it is not running, it died, or it hangs."""


class ImageMissing(SandboxError):  # noqa: N818
    """The environment that a box should run in does not exist (any more)."""


class DiskFull(SandboxError):  # noqa: N818
    """The disk of the engine or of the state directory is full."""


class Interrupted(SandboxError):  # noqa: N818
    """The box was killed from outside, by `Sandbox.kill` or by somebody who removed it."""


class OutputTooLarge(SandboxError):  # noqa: N818
    """What the box left behind is larger than the caller allows."""


class UnsafeOutput(SandboxError):  # noqa: N818
    """What the box left behind is a link, a directory or a device where a regular file was expected."""
