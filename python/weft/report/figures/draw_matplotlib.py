"""Figures as PNG, SVG and PDF files, drawn with Matplotlib."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import WeftWarning
from weft.report.figures import drawing_matplotlib
from weft.report.figures.axes import LETTERS, UPRIGHT_LETTERS, lines_of
from weft.report.figures.drawing_matplotlib import TITLE_LINE, wrapped
from weft.report.figures.model import (
    BARS,
    Axis,
    Bars,
    BarSeries,
    Curve,
    Drawing,
    Figure,
    HeatMap,
    Lines,
    Mark,
    Panel,
)
from weft.report.figures.palette import BOUND, Dash

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES: dict[Dash, str] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "x": "X",
    "hexagon": "h",
    "pentagon": "p",
    "triangle-left": "<",
    "triangle-right": ">",
    "diamond-tall": "d",
}
_ASIDE = 0.03
"""Inches from the error bar of a curve to that of the next one."""
_BETWEEN = 0.14
"""From marker to marker of a curve with many points, in diagonals of the plot."""
_STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    # The same figure gives the same bytes: no random ids, and text stays text.
    "svg.hashsalt": "weft",
    # A name may have dollar signs.
    "text.parse_math": False,
    "svg.fonttype": "none",
}
_PANEL = (3.6, 2.7)
_SINGLE = (6.0, 3.6)
_WIDEST = 10.0
# In inches: room for the title, for a line of the legend, for a letter in it, for its line.
_TITLE, _ENTRY_HEIGHT, _LETTER, _HANDLE = 0.5, 0.19, 0.066, 0.62
_GUTTER = 0.5
"""Inches of a panel that its title leaves free."""
_PRINTED = "#222222"
_NO_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Nothing that differs from day to day or version to version."""
_GLYPH = re.compile(r"Glyph (\d+) ")
"""How Matplotlib begins to warn of a letter; the number is its code."""
# In inches: a cell of a heat map with texts, and the names left of and above the cells.
_CELL, _NAMES, _ABOVE = (0.62, 0.21), 2.6, 1.1
_DARK = 0.55
"""The part of the colours on which text is white."""


def draw(figure: Figure, directory: Path, formats: Sequence[str]) -> list[Path]:
    """Write `directory/<name>.FORMAT` for each of the formats; returns what was written."""
    paths = [directory / f"{figure.name}.{form}" for form in formats]
    draw_files(figure, paths)
    return paths


def draw_files(figure: Figure, paths: Sequence[Path]) -> None:
    """Write files of the kinds that their names end in: `.png`, `.svg` or `.pdf`."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE), _naming_letters(paths):
        first = figure.panels[0].plot
        if isinstance(first, Drawing):
            canvas = drawing_matplotlib.page(figure, first)
        else:
            canvas = _canvas(figure)
        for path in paths:
            canvas.savefig(path, dpi=160, metadata=_NO_METADATA[path.suffix])


@contextmanager
def _naming_letters(paths: Sequence[Path]) -> Iterator[None]:
    """Warn once of all letters that no font has, where Matplotlib warns of each of them.

    In SVG text stays text, and whatever shows it looks for fonts.
    """
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        yield
    glyphs = [(one, _GLYPH.match(str(one.message))) for one in met]
    letters = dict.fromkeys(chr(int(found[1])) for _, found in glyphs if found)
    boxes = [path.suffix for path in paths if path.suffix != ".svg"]
    if letters and boxes:
        warnings.warn(
            f"plots: no font has {' '.join(letters)}, so they are boxes in {', '.join(boxes)}; "
            "name one that has them in a matplotlibrc (font.family: DejaVu Sans, NAME), or draw "
            "svg",
            WeftWarning,
            stacklevel=3,
        )
    for one in [one for one, found in glyphs if not found]:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _canvas(figure: Figure) -> Any:
    """All panels of a figure under its title, over one legend and what of all is shown."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    columns = min(len(figure.panels), 2 if len(figure.panels) == 4 else 3)
    rows = -(-len(figure.panels) // columns)
    width, height = _size(figure, columns, rows)
    names = _names(figure)
    across = _across(names, width)
    title = wrapped(figure.title, width)
    panels = [wrapped(panel.title, width / columns - _GUTTER, _LETTER) for panel in figure.panels]
    shown = wrapped(figure.shown, width, _LETTER) if figure.shown else []
    more = rows * (max(map(len, panels)) - 1) + len(title) - 1 + len(shown)
    room = _TITLE + _ENTRY_HEIGHT * -(-len(names) // across) + TITLE_LINE * more
    canvas = Canvas(figsize=(width, height + room), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = list(canvas.subplots(rows, columns, squeeze=False).flat)
    for ax, panel, lines in zip(axes, figure.panels, panels, strict=False):
        _panel(ax, panel)
        ax.set_title("\n".join(lines))
    for ax in axes[len(figure.panels) :]:
        ax.set_visible(False)
    canvas.suptitle("\n".join(title), fontweight="bold", fontsize=11)
    _legend(canvas, axes, (names, "\n".join(shown)), across)
    return canvas


def _size(figure: Figure, columns: int, rows: int) -> tuple[float, float]:
    """Width and height in inches, without title and legend. Many bars make a panel wider."""
    if len(figure.panels) > 1:
        return _PANEL[0] * columns, _PANEL[1] * rows
    plot = figure.panels[0].plot
    if isinstance(plot, HeatMap) and plot.texts:
        tall = _CELL[1] * max(len(lines_of(name)) for name in plot.rows)
        return _CELL[0] * len(plot.columns) + _NAMES, tall * len(plot.rows) + _ABOVE
    bars = len(plot.categories) * len(plot.series) if isinstance(plot, Bars) else 0
    return min(_WIDEST, max(_SINGLE[0], 1.5 + 0.28 * bars)), _SINGLE[1]


def _names(figure: Figure) -> list[str]:
    """What the legend has."""
    names: dict[str, None] = {}
    for panel in figure.panels:
        match panel.plot:
            case Lines():
                names |= dict.fromkeys(curve.label for curve in panel.plot.curves)
                names |= dict.fromkeys("printed" for _ in panel.plot.spots)
            case Bars():
                names |= dict.fromkeys(one.label for one in panel.plot.series if one.label)
                names |= dict.fromkeys(panel.plot.bound_label for _ in panel.plot.bound)
                marks = [mark for one in panel.plot.series for mark in one.printed if mark]
                names |= dict.fromkeys("printed" for _ in marks)
    return list(names)


def _across(names: Sequence[str], width: float) -> int:
    """Legend entries per line, so that all lines are about equally full."""
    if not names or sum(_HANDLE + _LETTER * len(name) for name in names) <= width:
        return max(1, len(names))
    fit = max(1, int(width / (_HANDLE + _LETTER * max(map(len, names)))))
    return -(-len(names) // -(-len(names) // fit))


def _panel(ax: Axes, panel: Panel) -> None:
    match panel.plot:
        case Bars():
            _bars(ax, panel.plot)
        case Lines():
            _lines(ax, panel.plot)
        case HeatMap():
            _heat_map(ax, panel.plot)
        case Drawing():
            raise TypeError("a drawing has a page of its own")
    ax.set_xlabel(panel.plot.x.title)
    ax.set_ylabel(panel.plot.y.title)


def _legend(
    canvas: Any, axes: Sequence[Axes], words: tuple[Sequence[str], str], across: int
) -> None:
    """One legend under all panels, so that it never lies over data, below a sentence."""
    names, sentence = words
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries |= {label: h for h, label in zip(handles, labels, strict=True) if label}
    shown = [name for name in names if name in entries]
    if shown:
        handles = [entries[name] for name in shown]
        place = "outside lower center"
        canvas.legend(handles, shown, loc=place, ncols=across, title=sentence or None)
    elif sentence:
        canvas.supxlabel(sentence, fontsize=9)


def _bars(ax: Axes, plot: Bars) -> None:
    width = BARS / len(plot.series)
    for number, series in enumerate(plot.series):
        left = -BARS / 2 + width * (number + 0.5)
        places = [i + left for i in range(len(plot.categories))]
        _bar_series(ax, series, places, width)
        for place, mark in zip(places, series.printed, strict=False):
            _printed(ax, place, mark, _PRINTED, min(9.0, 90 * width))
    label = plot.bound_label
    for i, level in enumerate(plot.bound):
        if level is not None:
            ax.hlines(level, i - 0.5, i + 0.5, colors=BOUND.colour, linestyles="--", label=label)
            label = ""
    most = UPRIGHT_LETTERS if plot.upright else LETTERS
    lines = [lines_of(name, most) for name in plot.categories]
    ax.set_xticks(plot.ticks, ["\n".join(lines[place]) for place in plot.ticks])
    letters = max(len(line) for name in lines for line in name) * len(plot.categories)
    if plot.upright:
        ax.tick_params(axis="x", labelrotation=90)
    elif letters * _LETTER > 0.75 * ax.bbox.width / ax.figure.dpi:
        ax.tick_params(axis="x", labelrotation=30)
        for tick in ax.get_xticklabels():
            tick.set_horizontalalignment("right")
    ax.set_xlim(plot.span)
    ax.grid(visible=False, axis="x")
    _scale(ax, "y", plot.y)


def _bar_series(ax: Axes, series: BarSeries, places: Sequence[float], width: float) -> None:
    cells = zip(places, series.values, series.halves, series.styles, strict=True)
    label = series.label
    for place, value, half, style in cells:
        if value is None:
            continue
        ax.bar(place, value, 0.92 * width, color=style.colour, label=label)
        if half:
            ax.errorbar(place, value, half, color="#333333", capsize=3, linewidth=1)
        label = ""


def _printed(ax: Axes, x: float, mark: Mark | None, colour: str, size: float) -> None:
    """A star for what a paper prints, with its deviation."""
    if mark is None:
        return
    ax.plot(
        x,
        mark.value,
        "*",
        color=colour,
        markersize=size,
        markeredgecolor="white",
        markeredgewidth=0.6,
        zorder=4,
        linestyle="",
        label="printed",
    )
    if mark.half:
        ax.errorbar(x, mark.value, mark.half, color=colour, capsize=5, linewidth=0.8, zorder=3)


def _lines(ax: Axes, plot: Lines) -> None:
    for number, curve in enumerate(plot.curves):
        _curve(ax, curve, number / len(plot.curves))
        # Error bars at one x stand beside each other.
        _intervals(ax, curve, _ASIDE * (number - (len(plot.curves) - 1) / 2))
    for spot in plot.spots:
        _printed(ax, spot.x, spot.mark, spot.style.colour, 11.0)
    _scale(ax, "x", plot.x)
    _scale(ax, "y", plot.y)


def _curve(ax: Axes, curve: Curve, start: float) -> None:
    """A curve with its markers: those at some points `start` elsewhere for each, from 0 to 1."""
    every = (_BETWEEN * start, _BETWEEN) if curve.markers == "some" else None
    ax.plot(
        curve.x,
        curve.y,
        label=curve.label,
        color=curve.style.colour,
        linestyle=_DASHES[curve.style.dash],
        marker="" if curve.markers == "none" else _MARKERS[curve.style.marker],
        markersize=4.5,
        markevery=every,
        linewidth=1.3,
        drawstyle="steps-post" if curve.shape == "steps" else "default",
    )


def _intervals(ax: Axes, curve: Curve, aside: float) -> None:
    """The error bars of a curve, some inches beside its points."""
    from matplotlib.transforms import ScaledTranslation

    if any(curve.halves):
        halves = [half or 0.0 for half in curve.halves]
        thin: Any = {"capsize": 1.2, "elinewidth": 0.8, "capthick": 0.8, "alpha": 0.8}
        moved = ax.transData + ScaledTranslation(aside, 0.0, ax.figure.dpi_scale_trans)
        thin |= {"color": curve.style.colour, "fmt": "none", "transform": moved}
        ax.errorbar(curve.x, curve.y, halves, **thin)


def _scale(ax: Axes, which: str, axis: Axis) -> None:
    horizontal = which == "x"
    if axis.log:
        (ax.set_xscale if horizontal else ax.set_yscale)("log")
    if axis.limits is not None:
        (ax.set_xlim if horizontal else ax.set_ylim)(axis.limits)
    elif not axis.log and not horizontal:
        ax.set_ylim(bottom=0)
    if not horizontal and ax.get_ylim()[0] < 0 and not axis.log:
        ax.axhline(0.0, color="#888888", linewidth=0.8)
    if axis.ticks:
        places, names = zip(*axis.ticks, strict=True)
        shown = _apart(ax, places, names) if horizontal else names
        (ax.set_xticks if horizontal else ax.set_yticks)(places, shown)
        ax.minorticks_off()


def _apart(ax: Axes, places: Sequence[float], names: Sequence[str]) -> list[str]:
    """The names of ticks, empty where they would overlap; the first and the last stay."""
    inches = ax.figure.dpi

    def ends(i: int) -> tuple[float, float]:
        middle = ax.transData.transform((places[i], 0.0))[0] / inches
        half = _LETTER * (len(names[i]) + 1) / 2
        return middle - half, middle + half

    last = len(places) - 1
    shown, free = [last], -math.inf
    for i in range(last):
        if ends(i)[0] >= free and (i == 0 or ends(i)[1] <= ends(last)[0]):
            shown.append(i)
            free = ends(i)[1]
    return [name if i in shown else "" for i, name in enumerate(names)]


def _heat_map(ax: Axes, plot: HeatMap) -> None:
    from matplotlib.colors import LogNorm, Normalize

    low, high = plot.scale.limits or (0.0, 1.0)
    values = [[float("nan") if v is None else v for v in row] for row in plot.values]
    norm = (LogNorm if plot.scale.log else Normalize)(low, high)
    colours = "viridis_r" if plot.low_is_light else "viridis"
    image = ax.imshow(values, cmap=colours, norm=norm, aspect="auto")
    ax.grid(visible=False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9)
    bar.set_label(plot.scale.title)
    if plot.scale.ticks:
        places, names = zip(*plot.scale.ticks, strict=True)
        bar.set_ticks(places, labels=names)
        bar.minorticks_off()
    if not plot.texts:
        _thin(ax, "x", plot.columns)
        _thin(ax, "y", plot.rows)
        return
    columns, rows = (
        ["\n".join(lines_of(name)) for name in ends] for ends in (plot.columns, plot.rows)
    )
    ax.set_xticks(range(len(columns)), columns, rotation=30, ha="left")
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
    for row, cells in enumerate(plot.texts):
        for column, text in enumerate(cells):
            is_dark = norm(values[row][column]) > _DARK
            colour = "white" if is_dark else "#222222"
            ax.text(column, row, text, ha="center", va="center", fontsize=7.5, color=colour)


def _thin(ax: Axes, which: str, names: Sequence[str]) -> None:
    """At most about a dozen tick labels."""
    step = -(-len(names) // 12)
    places = range(0, len(names), step)
    setter = ax.set_xticks if which == "x" else ax.set_yticks
    setter(places, [names[i] for i in places])
