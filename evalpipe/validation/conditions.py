"""Under which conditions a suite is run: the sides of a change, and what the stress pass changes about the world."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Side(StrEnum):
    """The two trees that the same tests run on."""

    BEFORE = "before"
    AFTER = "after"


class SuiteScope(StrEnum):
    """Which tests a pass runs: all, or those of the files that the change can reach."""

    WHOLE = "whole"
    AFFECTED = "affected"


class RunName(StrEnum):
    """The runs that a pass may be made of, each a run of the whole suite or of its scope in a box of its own."""

    BEFORE = "before"
    AFTER = "after"
    WITH_NETWORK = "with_network"
    STRESSED = "stressed"
    YEAR_LATER = "year_later"
    OTHER_ORDER = "other_order"
    CLOCK_AHEAD = "clock_ahead"
    OTHER_LOCALE = "other_locale"
    OTHER_TIME_ZONE = "other_time_zone"
    OTHER_HOSTNAME = "other_hostname"


@dataclass(frozen=True, slots=True)
class RunConditions:
    """One run of a suite. `env` goes over the runner's own.

    `changed` says for people what is unlike a plain run, `not_changed` what should be and cannot, with the reason.
    """

    name: RunName
    side: Side = Side.AFTER
    network: bool = False
    hostname: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    shuffle_seed: int | None = None
    changed: tuple[str, ...] = ()
    not_changed: tuple[str, ...] = ()


BEFORE = RunConditions(RunName.BEFORE, Side.BEFORE)
AFTER = RunConditions(RunName.AFTER)
WITH_NETWORK = RunConditions(RunName.WITH_NETWORK, network=True, changed=("with the network",))
