"""Further plots, drawn like those of `plots`: curves over k, differences by task, shares, cost against rate."""

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
_MARKERS = "os^Dv*Px"


@dataclass(frozen=True, slots=True)
class Bar:
    """A share from 0 to 1 with its text; without one it is a heading."""

    label: str
    value: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class CostPoint:
    """An agent's cost per attempt against its rate."""

    label: str
    cost: float
    rate: float
    interval: Interval


def curves_svg(series: Sequence[tuple[str, Sequence[float]]], name: str, title: str) -> str:
    """Return rates over k = 1, 2, ... as an SVG element, one curve for each label."""
    with plot_style():
        figure, axes = canvas(_WIDTH, _HEIGHT + 16 * len(series))
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
            axes.text(_LEFT - 4, y + 3, f"{tick * 100:+.0f}", color=MUTED, fontsize=8, ha="right")
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
    """Return cost per attempt against pass@1 with its interval, as an SVG element."""
    with plot_style():
        figure, axes = canvas(_WIDTH, _HEIGHT + 16 * len(points))
        _rate_axis(axes)
        most = max(point.cost for point in points) * 1.1 or 1.0
        for share in (0, 0.5, 1):
            x = _LEFT + 10 + share * (_RIGHT - _LEFT - 30)
            axes.text(x, _BOTTOM + 14, f"{share * most:.2f}", color=MUTED, fontsize=9, ha="center")
        for number, point in enumerate(points):
            x = _LEFT + 10 + point.cost / most * (_RIGHT - _LEFT - 30)
            look = {**_look(number), "linestyle": "none"}
            ends = [_y(point.interval.low), _y(point.interval.high)]
            axes.plot([x, x], ends, color=ACCENT, linewidth=1.4, zorder=3)
            axes.plot([x], [_y(point.rate)], color=ACCENT, zorder=4, **look)
            _legend(axes, number, f"{wording.plain(point.label, 30)}: {point.cost:.2f}", look)
        return inline(figure, name, title)


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
    y = _HEIGHT + 16 * number - 4
    axes.plot([_LEFT, _LEFT + 22], [y - 4, y - 4], color=ACCENT, linewidth=1.6, **look)
    axes.text(_LEFT + 30, y, label, color=INK, fontsize=10)
