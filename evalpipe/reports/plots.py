"""Plots as SVG for the HTML report and as a small PNG for Dagster: no script, byte for byte reproducible.

Text stays text, so that a page can set its own font and a reader can select it. The colours are those of
the light page; inside the page they become its CSS variables, which is what makes dark mode work.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from evalpipe.reports import wording
from evalpipe.stats.intervals import Interval

INK, MUTED, LINE, ACCENT, ON_ACCENT = "#1b2430", "#5c6773", "#d5dade", "#0f6e66", "#fefffe"
_VARIABLES = {INK: "--ink", MUTED: "--muted", LINE: "--line", ACCENT: "--accent", ON_ACCENT: "--on-accent"}
_FONT_FAMILY = "font-family: 'DejaVu Sans', sans-serif"
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "evalpipe",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    # Names come from configurations and agents: a dollar sign is no formula.
    "text.parse_math": False,
    "path.simplify": False,
}
_UNITS_PER_INCH = 72
# A picture of Dagster's metadata is kept in its database for each run.
_ROWS_IN_PNG = 24


# Places on an axis with their labels; the first and the last are its ends.
Ticks = Sequence[tuple[float, str]]
RATE_TICKS: Ticks = tuple((value, f"{value:g}") for value in (0, 0.25, 0.5, 0.75, 1))


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A line of a forest plot: a rate or a difference of rates; `value` is the text at its right.

    A row without a rate is a heading.
    """

    label: str
    value: str = ""
    rate: float | None = None
    interval: Interval | None = None
    emphasis: bool = False


@dataclass(frozen=True, slots=True)
class HeatMap:
    """`cells[task][agent]` is (passes, samples); no samples is None."""

    tasks: tuple[str, ...]
    agents: tuple[str, ...]
    cells: tuple[tuple[tuple[int, int] | None, ...], ...]


def forest_svg(rows: Sequence[ForestRow], name: str, title: str, ticks: Ticks = RATE_TICKS) -> str:
    """Return a forest plot as an SVG element; `name` keeps its ids apart from those of other plots."""
    with plot_style():
        return inline(_forest(rows, ticks), name, title)


def heat_map_svg(data: HeatMap, name: str, title: str) -> str:
    """Return the share of solved samples, task by agent, as an SVG element."""
    with plot_style():
        return inline(_heat_map(data), name, title)


def forest_png(rows: Sequence[ForestRow], ticks: Ticks = RATE_TICKS) -> bytes:
    """Return the forest plot as a small PNG (tens of kilobytes) on white, of its first rows where they are many."""
    shown = list(rows[:_ROWS_IN_PNG])
    if len(rows) > len(shown):
        shown.append(ForestRow(f"and {len(rows) - len(shown)} more lines in the report"))
    with plot_style():
        figure = _forest(shown, ticks)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=110, facecolor="white", metadata={"Software": None})
    # Few colours, for the same reason.
    image = io.BytesIO()
    Image.open(drawn).convert("RGB").quantize(24).save(image, format="PNG", optimize=True)
    return image.getvalue()


@contextmanager
def plot_style() -> Iterator[None]:
    """Draw and save inside it: the settings that make a plot reproducible and its text plain."""
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]  # its stubs want one literal per key
        yield


def _forest(rows: Sequence[ForestRow], ticks: Ticks) -> Figure:
    # The label stands above its line, not beside it: so the plot is narrow enough for a phone.
    heights = [26.0 if row.rate is None else 34.0 for row in rows]
    width, height = 360.0, sum(heights) + 26
    figure, axes = canvas(width, height)
    left, right = 6.0, width - 6
    bottom = height - 20
    low, high = ticks[0][0], ticks[-1][0]

    def place(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    for value, label in ticks:
        x = place(value)
        axes.plot([x, x], [4, bottom], color=LINE, linewidth=0.7, zorder=1)
        align = "left" if value == low else "right" if value == high else "center"
        axes.text(x, bottom + 13, label, color=MUTED, fontsize=9, ha=align, va="baseline")
    y = 4.0
    for row, room in zip(rows, heights, strict=True):
        if row.rate is None:
            text = wording.plain(row.label, 46)
            axes.text(left, y + 18, text, color=INK, fontsize=11, fontweight="bold", va="baseline")
        else:
            ends = [place(end) for end in (row.interval.low, row.interval.high)] if row.interval else []
            _forest_row(axes, row, y, (left, right), place(row.rate), ends)
        y += room
    return figure


def _forest_row(
    axes: Axes, row: ForestRow, y: float, sides: tuple[float, float], x: float, ends: Sequence[float]
) -> None:
    weight = "bold" if row.emphasis else "normal"
    label, value = wording.plain(row.label, 30), wording.plain(row.value, 40)
    axes.text(sides[0], y + 12, label, color=INK, fontsize=11, fontweight=weight, va="baseline")
    axes.text(sides[1], y + 12, value, color=MUTED, fontsize=10, ha="right", va="baseline")
    line = y + 22
    if ends:
        axes.plot(ends, [line, line], color=ACCENT, linewidth=2, solid_capstyle="round", zorder=3)
    marker = "D" if row.emphasis else "o"
    axes.plot([x], [line], marker=marker, markersize=7, color=ACCENT, linestyle="none", zorder=4)


def _heat_map(data: HeatMap) -> Figure:
    cell_width, cell_height = 58.0, 20.0
    tasks = [wording.plain(task, 34) for task in data.tasks]
    labels = 24.0 + 5.2 * max(map(len, tasks))
    agents = [wording.plain(agent, 18) for agent in data.agents]
    top = 22.0 + 3.6 * max(map(len, agents))
    width = labels + cell_width * len(data.agents) + 50
    height = top + cell_height * len(data.tasks) + 6
    figure, axes = canvas(width, height)
    for column, text in enumerate(agents):
        x = labels + (column + 0.5) * cell_width
        axes.text(
            x - 4, top - 8, text, color=INK, fontsize=9, rotation=38, ha="left", va="baseline",
            rotation_mode="anchor",
        )  # fmt: skip
    for line, (task, cells) in enumerate(zip(tasks, data.cells, strict=True)):
        y = top + line * cell_height
        axes.text(2, y + 13.5, task, color=INK, fontsize=9, va="baseline")
        for column, cell in enumerate(cells):
            _heat_cell(axes, cell, labels + column * cell_width, y, cell_width, cell_height)
    return figure


def _heat_cell(axes: Axes, cell: tuple[int, int] | None, x: float, y: float, width: float, height: float) -> None:
    box = (x + 1.5, y + 1.5)
    size = (width - 3, height - 3)
    middle = x + width / 2
    share = cell[0] / cell[1] if cell else 0.0
    fill = to_rgba(ACCENT, 0.12 + 0.88 * share) if share else "none"
    # Not `add_patch`, which looks for the limits of the axes each time: most of the time of a map of 500 tasks.
    axes.add_artist(Rectangle(box, *size, facecolor=fill, edgecolor=LINE, linewidth=0.7))
    if cell is None:
        axes.text(middle, y + 13.5, wording.NOTHING, color=MUTED, fontsize=8.5, ha="center", va="baseline")
        return
    passes, samples = cell
    colour = ON_ACCENT if share > 0.55 else INK
    text = f"{passes}/{samples}"
    axes.text(middle, y + 13.5, text, color=colour, fontsize=8.5, ha="center", va="baseline")


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure whose data coordinates are its points, with the origin at the top left."""
    figure = Figure(figsize=(width / _UNITS_PER_INCH, height / _UNITS_PER_INCH))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    return figure, axes


def inline(figure: Figure, name: str, title: str) -> str:
    """Return a figure as an SVG element of a page; `name` keeps its ids apart from those of other plots."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Its style sheet would reach the whole page, its size would not follow the page, its ids would collide.
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    head, _, rest = svg.partition(">")
    view_box = re.search(r'viewBox="[^"]+"', head)
    assert view_box is not None
    # A map of 500 tasks has thousands of texts, each told in a comment and named by an id that nothing uses.
    rest = re.sub(r"<!--.*?-->\n?", "", rest, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(|xlink:href=")#([^")]+)', rest))
    rest = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", rest)
    rest = re.sub(r"\n *", "\n", rest)
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    rest = re.sub(r"url\(#", f"url(#{name}-", rest)
    rest = re.sub(r'xlink:href="#', f'href="#{name}-', rest)
    rest = rest.replace(_FONT_FAMILY, "font-family: inherit")
    for colour, variable in _VARIABLES.items():
        rest = rest.replace(colour, f"var({variable})")
    width = figure.get_figwidth() * _UNITS_PER_INCH
    label = wording.plain(title).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" {view_box.group()} '
        f'class="plot" style="--plot-width: {width:.0f}px">{rest}'
    ).strip()
