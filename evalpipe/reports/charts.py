"""Further plots, drawn like those of `plots`: curves over k, differences by task, shares, cost against rate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from evalpipe.reports import wording
from evalpipe.reports.plots import ACCENT, INK, LINE, MUTED, canvas, inline, plot_style
from evalpipe.stats.intervals import Interval

_WIDTH, _HEIGHT = 360.0, 210.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 350.0, 14.0, 178.0
# Series are told apart by dash and marker: one accent colour serves the light and the dark page.
_DASHES = ("-", "--", ":", "-.")
_MARKERS = "os^Dv*Px<>hdp8"
# A range is drawn from the first to the last, thick between the quartiles, with a dot at the median.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Bar:
    """A share from 0 to 1 with its text; without one it is a heading."""

    label: str
    value: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class RangeRow:
    """A line of a plot of ranges: values above zero at QUANTILES, and the text at its right; without them a heading."""

    label: str
    value: str = ""
    quantiles: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class CostPoint:
    """An agent's mean cost per attempt against its rate, both with their intervals."""

    label: str
    cost: float
    cost_interval: Interval | None
    rate: float
    interval: Interval


def curves_svg(series: Sequence[tuple[str, Sequence[float]]], name: str, title: str) -> str:
    """Return rates over k = 1, 2, ... as an SVG element, one curve for each label."""
    with plot_style():
        figure, axes = canvas(_WIDTH, _HEIGHT + 16 * len(series) + 4)
        most = max(len(values) for _, values in series)
        _rate_axis(axes)
        step = (_RIGHT - _LEFT - 20) / max(1, most - 1)
        for k in range(1, most + 1):
            if most <= 10 or k in (1, most):
                axes.text(_LEFT + 10 + (k - 1) * step, _BOTTOM + 14, str(k), color=MUTED, fontsize=9, ha="center")
        for number, (label, values) in enumerate(series):
            x = [_LEFT + 10 + k * step for k in range(len(values))]
            look = _look(number)
            axes.plot(x, [_y(value) for value in values], color=ACCENT, linewidth=1.6, **look)
            _legend(axes, number, wording.plain(label, 40), look)
        return inline(figure, name, title)


def differences_svg(differences: Sequence[float], name: str, title: str) -> str:
    """Return the differences of single tasks (-1 to 1), largest loss first, as an SVG element."""
    with plot_style():
        figure, axes = canvas(_WIDTH, _HEIGHT)
        for tick in (-1, -0.5, 0, 0.5, 1):
            y = _y((tick + 1) / 2)
            axes.plot([_LEFT, _RIGHT], [y, y], color=MUTED if tick == 0 else LINE, linewidth=0.7, zorder=1)
            axes.text(_LEFT - 4, y + 3, f"{tick * 100:+.0f}" if tick else "0", color=MUTED, fontsize=8, ha="right")
        step = (_RIGHT - _LEFT) / len(differences)
        middle = _y(0.5)
        for number, difference in enumerate(sorted(differences)):
            x = _LEFT + (number + 0.5) * step
            if difference:
                axes.plot([x, x], [middle, _y((difference + 1) / 2)], color=ACCENT, linewidth=max(0.6, step * 0.6),
                          solid_capstyle="butt")  # fmt: skip
        axes.text((_LEFT + _RIGHT) / 2, _BOTTOM + 16, "tasks, sorted", color=MUTED, fontsize=9, ha="center")
        return inline(figure, name, title)


def bars_svg(bars: Sequence[Bar], name: str, title: str) -> str:
    """Return shares as horizontal bars under their headings, as an SVG element."""
    with plot_style():
        figure, axes = canvas(_WIDTH, 24.0 * len(bars) + 8)
        for number, bar in enumerate(bars):
            y = 24.0 * number + 4
            weight = "bold" if bar.share is None else "normal"
            axes.text(6, y + 12, wording.plain(bar.label, 42), color=INK, fontsize=10, fontweight=weight)
            if bar.share is not None:
                axes.text(_RIGHT + 4, y + 12, wording.plain(bar.value, 16), color=MUTED, fontsize=9, ha="right")
                axes.plot([6, _RIGHT + 4], [y + 18, y + 18], color=LINE, linewidth=3, solid_capstyle="butt")
                end = 6 + bar.share * (_RIGHT - 2)
                axes.plot([6, end], [y + 18, y + 18], color=ACCENT, linewidth=3, solid_capstyle="butt")
        return inline(figure, name, title)


def cost_svg(points: Sequence[CostPoint], name: str, title: str) -> str:
    """Return cost per attempt against pass@1, each with its interval, as an SVG element."""
    with plot_style():
        figure, axes = canvas(_WIDTH, _HEIGHT + 16 * len(points) + 4)
        _rate_axis(axes)
        most = _round_above(max(max([point.cost, *_ends(point.cost_interval)]) for point in points))
        start, room = _LEFT + 10, _RIGHT - _LEFT - 30
        for share in (0, 0.5, 1):
            axes.text(start + share * room, _BOTTOM + 14, f"{share * most:g}", color=MUTED, fontsize=9, ha="center")
        for number, point in enumerate(points):
            x, y = start + point.cost / most * room, _y(point.rate)
            look = {**_look(number), "linestyle": "none"}
            axes.plot([x, x], [_y(point.interval.low), _y(point.interval.high)], color=ACCENT, linewidth=1.4, zorder=3)
            sides = [start + max(0.0, cost) / most * room for cost in _ends(point.cost_interval)]
            axes.plot(sides, [y] * len(sides), color=ACCENT, linewidth=1.4, zorder=3)
            axes.plot([x], [y], color=ACCENT, zorder=4, **look)
            _legend(axes, number, f"{wording.plain(point.label, 30)}: {point.cost:.2f}", look)
        return inline(figure, name, title)


def ranges_svg(rows: Sequence[RangeRow], name: str, title: str) -> str:
    """Return ranges of values on a logarithmic axis, as an SVG element."""
    with plot_style():
        bottom = 28.0 * len(rows) + 6
        figure, axes = canvas(_WIDTH, bottom + 24)
        known = [value for row in rows for value in row.quantiles if value > 0]
        low = math.floor(math.log10(min(known, default=1.0)))
        high = max(low + 1, math.ceil(math.log10(max(known, default=1.0))))

        def place(value: float) -> float:
            return 8 + (math.log10(max(value, 10.0**low)) - low) / (high - low) * (_RIGHT - 12)

        for power in range(low, high + 1):
            x = place(10.0**power)
            axes.plot([x, x], [2, bottom], color=LINE, linewidth=0.7, zorder=1)
            align = "left" if power == low else "right" if power == high else "center"
            axes.text(x, bottom + 14, wording.amount(10.0**power), color=MUTED, fontsize=9, ha=align)
        for number, row in enumerate(rows):
            _range(axes, row, 28.0 * number + 2, [place(value) for value in row.quantiles])
        return inline(figure, name, title)


def _range(axes: Axes, row: RangeRow, y: float, places: Sequence[float]) -> None:
    weight = "normal" if places else "bold"
    axes.text(8, y + 12, wording.plain(row.label, 42), color=INK, fontsize=10, fontweight=weight)
    if places:
        axes.text(_RIGHT - 4, y + 12, wording.plain(row.value, 40), color=MUTED, fontsize=9, ha="right")
        axes.plot([places[0], places[-1]], [y + 20, y + 20], color=ACCENT, linewidth=1, zorder=3)
        axes.plot([places[1], places[3]], [y + 20, y + 20], color=ACCENT, linewidth=4, solid_capstyle="butt", zorder=3)
        axes.plot([places[2]], [y + 20], marker="o", markersize=6, color=ACCENT, linestyle="none", zorder=4)


def _round_above(value: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below the value; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _ends(interval: Interval | None) -> list[float]:
    return [interval.low, interval.high] if interval else []


def _y(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)


def _rate_axis(axes: Axes) -> None:
    for tick in (0, 0.25, 0.5, 0.75, 1):
        axes.plot([_LEFT, _RIGHT], [_y(tick), _y(tick)], color=LINE, linewidth=0.7, zorder=1)
        axes.text(_LEFT - 4, _y(tick) + 3, f"{tick:g}", color=MUTED, fontsize=9, ha="right")


def _look(number: int) -> dict[str, Any]:
    return {
        "linestyle": _DASHES[number % len(_DASHES)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 5.0,
    }


def _legend(axes: Axes, number: int, label: str, look: dict[str, Any]) -> None:
    y = _HEIGHT + 16 * number
    ends = [_LEFT + 11] if look["linestyle"] == "none" else [_LEFT, _LEFT + 22]
    axes.plot(ends, [y - 4] * len(ends), color=ACCENT, linewidth=1.6, **look)
    axes.text(_LEFT + 30, y, label, color=INK, fontsize=10)
