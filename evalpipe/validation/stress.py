"""The stress pass: the after side in another order, with another clock, locale, time zone and hostname.

One run has all of it at once, one the clock a year on. Only when a test ends otherwise than it should are there
runs for each part alone, to find the cause.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalpipe.runners import RunStatus, SuiteReport
from evalpipe.validation.box_facts import HOSTNAME, ZONE, BoxFacts, other_locale
from evalpipe.validation.conditions import RunConditions, RunName
from evalpipe.validation.finding import QuarantineCause, StressFinding
from evalpipe.validation.reports import differing

_SEED = 20_351
_DAYS_AHEAD, _DAYS_OF_A_YEAR = 35, 365
# A zone in the form of POSIX, for a C library without the tables of zones: 13 h 45 min east of Greenwich.
_ZONE_WITHOUT_TABLES = "<+1345>-13:45"
_PYTHON = frozenset({"pytest", "unittest"})
# Programs with tables of zones of their own.
_OWN_ZONES = frozenset({"jest", "vitest", "mocha", "node", "maven", "gradle"})
# Go asks the kernel for the time and not the C library, where the clock is moved.
_OWN_CLOCK = frozenset({"go"})

CAUSES: Mapping[RunName, QuarantineCause] = {
    RunName.OTHER_ORDER: QuarantineCause.ORDER,
    RunName.CLOCK_AHEAD: QuarantineCause.CLOCK,
    RunName.YEAR_LATER: QuarantineCause.CLOCK,
    RunName.OTHER_LOCALE: QuarantineCause.LOCALE,
    RunName.OTHER_TIME_ZONE: QuarantineCause.TIME_ZONE,
    RunName.OTHER_HOSTNAME: QuarantineCause.HOSTNAME,
}


@dataclass(frozen=True, slots=True)
class StressPlan:
    """The runs of a stress pass: `first` always, `separate` when those leave open what changed a test."""

    first: tuple[RunConditions, ...]
    separate: tuple[RunConditions, ...]


def stress_plan(facts: BoxFacts, runner: str, *, can_shuffle: bool) -> StressPlan:
    """Plan the stress of a suite that the runner of this name runs in boxes with these `facts`."""
    parts: list[RunConditions] = []
    not_changed: list[str] = []
    if can_shuffle:
        seed = {"PYTHONHASHSEED": str(_SEED)} if runner in _PYTHON else {}
        parts.append(RunConditions(RunName.OTHER_ORDER, env=seed, shuffle_seed=_SEED, changed=("shuffled order",)))
    else:
        not_changed.append(f"order not changed: {runner} cannot shuffle")
    library = None if runner in _OWN_CLOCK else facts.faketime
    if library is not None:
        ahead = f"clock {_DAYS_AHEAD} days ahead"
        parts.append(RunConditions(RunName.CLOCK_AHEAD, env=_clock(library, _DAYS_AHEAD), changed=(ahead,)))
    elif facts.clock_stops_tool:
        not_changed.append(f"clock not moved: what {runner} needs does not run with libfaketime")
    elif facts.faketime is None:
        not_changed.append("clock not moved: no libfaketime in the image")
    else:
        not_changed.append(f"clock not moved: {runner} does not ask the C library for the time")
    locale = other_locale(facts.locales)
    env = {"LC_ALL": locale, "LANG": locale}
    parts.append(RunConditions(RunName.OTHER_LOCALE, env=env, changed=(f"locale {locale}",)))
    zone = ZONE if facts.has_zones or runner in _OWN_ZONES else _ZONE_WITHOUT_TABLES
    parts.append(RunConditions(RunName.OTHER_TIME_ZONE, env={"TZ": zone}, changed=(f"time zone {zone}",)))
    if facts.has_own_name:
        parts.append(RunConditions(RunName.OTHER_HOSTNAME, hostname=HOSTNAME, changed=(f"hostname {HOSTNAME}",)))
    else:
        not_changed.append("hostname not changed: this sandbox cannot")
    first = [replace(_combined(parts), not_changed=tuple(not_changed))]
    if library is not None:
        env = _clock(library, _DAYS_OF_A_YEAR)
        first.append(RunConditions(RunName.YEAR_LATER, env=env, changed=("clock a year ahead",)))
    return StressPlan(tuple(first), tuple(parts))


def separate_runs(plan: StressPlan, reports: Mapping[RunName, SuiteReport]) -> list[RunConditions]:
    """The runs that find causes, without the clock alone where a moved clock kept the suite from its end."""
    year = reports.get(RunName.YEAR_LATER)
    broken = year is not None and not _is_whole(year)
    return [one for one in plan.separate if not (broken and one.name is RunName.CLOCK_AHEAD)]


def needs_separate_runs(normal: SuiteReport, reports: Mapping[RunName, SuiteReport]) -> bool:
    """Whether the first runs leave a cause open: all at once changed a test that a year alone did not, or broke."""
    combined = reports[RunName.STRESSED]
    if not _is_whole(combined):
        return True
    by_clock = _changed(normal, reports.get(RunName.YEAR_LATER))
    return bool(_changed(normal, combined) - by_clock)


def stress_finding(
    normal: SuiteReport, reports: Mapping[RunName, SuiteReport], not_changed: Sequence[str]
) -> StressFinding:
    """Which tests the runs of a stress pass changed, against the plain run `normal` of the same side, and by what.

    A run that did not come to its end says nothing of single tests; the finding's notes name it, after what was
    `not_changed`.
    """
    causes: dict[str, frozenset[QuarantineCause]] = {}
    for name, cause in CAUSES.items():
        for test in _changed(normal, reports.get(name)):
            causes[test] = causes.get(test, frozenset()) | {cause}
    for test in _changed(normal, reports.get(RunName.STRESSED)):
        causes.setdefault(test, frozenset({QuarantineCause.UNKNOWN}))
    broken = [
        f"under stress ({name}) the suite did not run to its end: {report.status}"
        for name, report in reports.items()
        if not _is_whole(report)
    ]
    return StressFinding(causes, (*not_changed, *broken))


def _changed(normal: SuiteReport, report: SuiteReport | None) -> frozenset[str]:
    return differing([normal, report]) if report is not None and _is_whole(report) else frozenset()


def _is_whole(report: SuiteReport) -> bool:
    return report.status is RunStatus.COMPLETED and report.canary_failed


def _combined(parts: list[RunConditions]) -> RunConditions:
    combined = RunConditions(RunName.STRESSED)
    for part in parts:
        combined = replace(
            combined,
            hostname=part.hostname or combined.hostname,
            env={**combined.env, **part.env},
            shuffle_seed=combined.shuffle_seed if part.shuffle_seed is None else part.shuffle_seed,
            changed=(*combined.changed, *part.changed),
        )
    return combined


def _clock(library: str, days: int) -> dict[str, str]:
    # Durations stay true: only the time of day is moved. The second name is that of libfaketime before 0.9.8.
    steady = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    return {"LD_PRELOAD": library, "FAKETIME": f"+{days}d", **steady}
