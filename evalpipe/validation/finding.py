"""What validation says of a candidate: the classes, and the records that carry a class with its evidence."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evalpipe.runners import SuiteReport


class ValidationClass(StrEnum):
    """What a candidate is; only `valid` becomes a task by itself."""

    VALID = "valid"
    COMPILE_ONLY = "compile_only"
    NO_SIGNAL = "no_signal"
    AFTER_FAILS = "after_fails"
    FLAKY = "flaky"
    NEEDS_NETWORK = "needs_network"
    ENVIRONMENT_FAILED = "environment_failed"
    TIMEOUT = "timeout"
    NO_REPORT = "no_report"
    PENDING = "pending"


class QuarantineCause(StrEnum):
    """Why a test cannot be relied on. `chance`: it ended otherwise in the second pass; the others: under stress.

    `unknown`: the combined stress changed it, and no part of that did alone.
    """

    CHANCE = "chance"
    ORDER = "order"
    CLOCK = "clock"
    LOCALE = "locale"
    TIME_ZONE = "time_zone"
    HOSTNAME = "hostname"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TwoSides:
    """One validation pass: the reports of both sides, and the last day (UTC, ISO) on which any of it ran.

    `with_network`: the after side once more with the network, where the change's own tests failed without.
    """

    before: SuiteReport
    after: SuiteReport
    day: str
    with_network: SuiteReport | None = None


@dataclass(frozen=True, slots=True)
class PassFinding:
    """What one pass alone says.

    `fail_to_pass` of a `compile_only` finding are the tests that are absent before and pass after. `need_network` are
    the change's own tests that pass with the network only, `missing_names` what the before side does not have.
    """

    validation_class: ValidationClass
    evidence: str
    fail_to_pass: frozenset[str] = frozenset()
    pass_to_pass: frozenset[str] = frozenset()
    need_network: frozenset[str] = frozenset()
    missing_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StressFinding:
    """What the stress pass showed: tests that it changed, with each cause that was found, and what it could not do."""

    causes: Mapping[str, frozenset[QuarantineCause]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidationFinding:
    """What all passes say together. `quarantined` gives each test that cannot be relied on its causes."""

    validation_class: ValidationClass
    evidence: str
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    quarantined: Mapping[str, tuple[QuarantineCause, ...]] = field(default_factory=dict)
    need_network: tuple[str, ...] = ()
    missing_names: tuple[str, ...] = ()
    provisional: bool = True


def count(tests: Collection[str]) -> str:
    """`1 test`, `2 tests`."""
    return "1 test" if len(tests) == 1 else f"{len(tests)} tests"
