"""How numbers and names are written, once for every form of the report.

Rates have two decimals, differences are whole points; nothing shows more digits than an interval of tens
of tasks supports.
"""

import math
from collections.abc import Iterable

from evalpipe.stats.counts import TaskCount
from evalpipe.stats.intervals import Interval, RateEstimate
from evalpipe.stats.paired import PairedComparison

# Below this many tasks a rate is written as a fraction.
LEAST_TASKS_FOR_A_RATE = 5
NOTHING = "–"  # noqa: RUF001 - a dash in a table cell, not a hyphen
PROVISIONAL = "provisional: both validation passes ran on one day"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def words(code: str) -> str:
    """Return an enum value as words, as safe as `plain`."""
    return plain(code).replace("_", " ")


def plain(text: str, limit: int = 200) -> str:
    """Return text from elsewhere as one bounded line without control or direction characters."""
    line = " ".join(text.split())
    clean = "".join(char if char.isprintable() else _REPLACEMENT for char in line)
    return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"


def plain_block(text: str, limit: int = 800) -> str:
    """Return text from elsewhere as bounded lines without control or direction characters."""
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return "".join(char if char.isprintable() or char in "\n\t" else _REPLACEMENT for char in cut)


def rate(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def interval(value: Interval | None) -> str:
    return NOTHING if value is None else f"{value.low:.2f} to {value.high:.2f}"


def estimate_interval(value: RateEstimate | None) -> str:
    """Return the interval of a rate; nothing below the tasks that a rate needs."""
    return interval(value.interval if value and value.tasks >= LEAST_TASKS_FOR_A_RATE else None)


def estimate(value: RateEstimate | None, counts: Iterable[TaskCount]) -> str:
    """Return the rate, or solved samples over samples when there are fewer tasks than a rate needs."""
    if value is None:
        return NOTHING
    if value.tasks >= LEAST_TASKS_FOR_A_RATE:
        return rate(value.rate)
    return fraction(counts)


def fraction(counts: Iterable[TaskCount]) -> str:
    """Return `3/4 tasks` for single samples, `7/12 samples of 4 tasks` otherwise."""
    known = list(counts)
    passes, samples = sum(count.passes for count in known), sum(count.samples for count in known)
    if not known:
        return NOTHING
    unit = "task" if len(known) == 1 else "tasks"
    if samples == len(known):
        return f"{passes}/{samples} {unit}"
    return f"{passes}/{samples} samples of {len(known)} {unit}"


def points(difference: float) -> str:
    """Return a signed difference of rates in points; in tenths where whole ones would call it nothing."""
    number, tenth = round(difference * 100), round(difference * 100, 1)
    if not number:
        return f"{tenth:+.1f} points" if tenth else "0 points"
    return f"{number:+d} {'point' if abs(number) == 1 else 'points'}"


def points_interval(value: Interval) -> str:
    return f"{round(value.low * 100):+d} to {round(value.high * 100):+d}"


def paired_points(paired: PairedComparison) -> str:
    """Return a paired difference in points; nothing below the tasks that a rate needs."""
    return points(paired.difference) if paired.tasks >= LEAST_TASKS_FOR_A_RATE else NOTHING


def paired_interval(paired: PairedComparison) -> str:
    """Return the interval of a paired difference, or why there is none; nothing below the tasks that a rate needs."""
    if paired.tasks < LEAST_TASKS_FOR_A_RATE:
        return NOTHING
    if paired.interval:
        return points_interval(paired.interval)
    return "all tasks differ alike" if paired.discordant else "no discordant tasks"


def detectable(difference: float | None) -> str:
    """Return a detectable difference, rounded up so that it never promises more than it can see."""
    if difference is None:
        return "none"
    number = math.ceil(round(difference * 100, 6))
    return f"{number} {'point' if number == 1 else 'points'}"


def p_value(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}" if value < 0.1 else f"p = {value:.2f}"


def amount(value: float) -> str:
    """Return an amount of anything with no more digits than its spread deserves: thousands as k, millions as M."""
    if value >= 999_500:
        return f"{value / 1e6:.3g}M"
    if value >= 10_000:
        return f"{value / 1e3:.3g}k"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return names joined by commas, the rest as a number."""
    known = [plain(name) for name in names]
    shown = ", ".join(known[:most])
    return shown if len(known) <= most else f"{shown} and {len(known) - most} more"
