"""What a build is asked and what it answers, whichever sandbox it is for."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from evalpipe.environments.sources import EnvironmentSource

LOG_LINES = 40
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class BuildStatus(StrEnum):
    """How a build ended."""

    BUILT = "built"
    FAILED = "failed"
    UNRELEASED = "unreleased"
    """A tool found no release of what was asked for, perhaps because there was none by the day."""
    UNREACHABLE = "unreachable"
    """A registry, mirror or proxy did not answer, or refused."""
    TIMEOUT = "timeout"
    NO_RECIPE = "no_recipe"
    BASE_MISSING = "base_missing"
    DISK_FULL = "disk_full"
    LEAKS_PROJECT = "leaks_project"


SETTLED = frozenset({BuildStatus.FAILED, BuildStatus.UNRELEASED, BuildStatus.TIMEOUT, BuildStatus.LEAKS_PROJECT})
"""How a build fails that would fail again as long as its key is the same; the rest is tried again."""


@dataclass(frozen=True, slots=True)
class PlannedBuild:
    """A source with the digest of what it builds on, and the key of the two.

    `newer` are ids of commits that came after the base commit: no git repository in the image may have one.
    """

    source: EnvironmentSource
    build_key: str
    base_digest: str
    newer: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BuiltEnvironment:
    """How a build ended. `image_digest` is the image's id, for a virtual environment its key; None when it failed.

    `log_tail` is the end of what its steps said, also of a build that went well.
    `packages` is what a template's steps say they installed, sorted.
    """

    status: BuildStatus
    image_digest: str | None
    log_tail: str
    seconds: float
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpareEnvironment:
    """An environment that nothing needs; `size` in bytes has the layers that it shares with others."""

    name: str
    size: int
    last_used: dt.datetime
    remove: Callable[[], None]


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """What this machine's builds need to reach package registries, and what never stays in an image.

    `env` is the environment of each step, `files` lie (by names below SETTINGS_FOLDER) where only the build sees them,
    `secrets` are texts that no log may show, `links` are places that lead to files of the settings during the build.
    """

    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    secrets: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def masked(self, text: str) -> str:
        """The text without any of the secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


SETTINGS_FOLDER = "/run/evalpipe"
"""Where the files of the settings lie while an image is built."""


class BaseMissing(Exception):
    """The image that an environment begins with is not there and cannot be had; the text says what to do."""


class EnvironmentBuilder(Protocol):
    """Builds environments for one kind of sandbox. Methods may be called from any thread."""

    @property
    def at_once(self) -> int:
        """How many builds may run side by side."""

    def plan(self, source: EnvironmentSource) -> PlannedBuild:
        """The key of a source on this machine; a base image that is not here is pulled.

        Raises BaseMissing and SandboxError.
        """

    def build(self, planned: PlannedBuild) -> BuiltEnvironment:
        """Build, or find what was built before. A failed build is a status; a dead engine raises SandboxError."""

    def abandon(self) -> None:
        """End every build that runs, so that the threads that wait for them come back with SandboxError."""

    def locate(self, image_digest: str) -> str:
        """What the sandbox opens for an environment: its digest, or where it lies on this machine."""

    def exists(self, image_digest: str) -> bool:
        """Whether an environment that was built before is still there. Raises SandboxError."""

    def spare(self, needed: Collection[str], before: dt.datetime) -> Iterable[SpareEnvironment]:
        """Those of this instance with no digest in `needed`, not used since `before`; an unfinished build is none.

        Raises SandboxError.
        """


def log_end(output: bytes, settings: BuildSettings, *, last: str = "") -> str:
    """The last lines of a build's output, without colours and secrets, and `last` below them."""
    text = settings.masked(_COLOUR.sub("", output.decode(errors="replace")).replace("\r\n", "\n"))
    lines = [line.rpartition("\r")[2] for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    if last:
        lines.append(settings.masked(last))
    return "\n".join(lines[-LOG_LINES:])
