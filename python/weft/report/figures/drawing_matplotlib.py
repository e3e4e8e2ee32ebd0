"""Drawings by Matplotlib: lines, boxes, cells and signs at inches."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from weft.report.figures.model import FEW_SIGNS, Drawing, Figure
from weft.report.figures.palette import BOXES, FAILING, LINK, LOAD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_BAR = 0.85
"""Inches that the bar of a scale takes beside a drawing."""
_TITLE = 0.36
_BOLD, TITLE_LINE = 0.1, 0.19
"""Inches of a letter of a title, and of each line of it after the first."""
_LEGEND = 0.26
_LINE = 0.14
"""Inches of a line of the caption."""
_LETTERS = 17
"""Letters of the caption in an inch."""
_INK = "#222222"
_SOFT = "#5b6570"
_DASHES: dict[str, Any] = {
    "link": "-",
    "down": (0, (1.2, 1.2)),
    "degraded": (0, (5, 1.5, 1.2, 1.5)),
    "flaky": (0, (3.2, 1.6)),
}
_SIGNS = {"down": "X", "degraded": "v", "flaky": "D"}
_SIGN = 5.5


def page(figure: Figure, plot: Drawing) -> Canvas:
    """A page of the drawing, with title, legend, the bar of its colours, and the caption."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    wide = plot.width + (_BAR if plot.scale else 0.0)
    caption = textwrap.wrap(figure.caption, int(_LETTERS * wide))
    below = _LEGEND * bool(plot.kinds) + _LINE * len(caption) + 0.08
    title = wrapped(figure.title, wide)
    tall = plot.height + _TITLE + TITLE_LINE * (len(title) - 1) + below
    canvas = Canvas(figsize=(wide, tall))
    FigureCanvasAgg(canvas)
    top = 1 - 0.06 / tall
    canvas.suptitle("\n".join(title), fontweight="bold", fontsize=11, y=top, va="top")
    ax = canvas.add_axes((0, below / tall, plot.width / wide, plot.height / tall))
    bar = None
    if plot.scale is not None:
        size = min(3.0, 0.8 * plot.height)
        low = below + (plot.height - size) / 2
        bar = canvas.add_axes(((plot.width + 0.1) / wide, low / tall, 0.1 / wide, size / tall))
    draw(ax, plot, bar)
    handles, names = ax.get_legend_handles_labels()
    if handles:
        where = (0.5, (below - 0.02) / tall)
        canvas.legend(handles, names, loc="upper center", bbox_to_anchor=where, ncols=len(names))
    for number, line in enumerate(reversed(caption)):
        canvas.text(0.05 / wide, (0.06 + _LINE * number) / tall, line, fontsize=7, color=_SOFT)
    return canvas


def wrapped(title: str, inches: float, letter: float = _BOLD) -> list[str]:
    """A title in lines of so many inches, of letters that take `letter`."""
    return textwrap.wrap(title, int(inches / letter), break_on_hyphens=False) or [""]


def draw(ax: Axes, plot: Drawing, bar: Axes | None) -> None:
    """Draw it over all of the axes, and the bar of its colours over others."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colours = LinearSegmentedColormap.from_list("load", LOAD)
    limits = plot.scale.limits if plot.scale and plot.scale.limits else (0.0, 1.0)
    scale = ScalarMappable(Normalize(*limits), colours)
    ax.set_xlim(0, plot.width)
    ax.set_ylim(0, plot.height)
    ax.set_axis_off()
    _boxes(ax, plot, behind=True)
    _strokes(ax, plot, scale)
    _cells(ax, plot, colours, limits)
    _boxes(ax, plot, behind=False)
    _signs(ax, plot)
    for words in plot.words:
        ax.text(
            words.x,
            words.y,
            words.text,
            fontsize=words.size,
            ha=words.align,
            va="center",
            color=_INK,
            linespacing=1.25,
        )
    if plot.scale is not None and bar is not None:
        bar.grid(visible=False)
        ax.figure.colorbar(scale, cax=bar, label=plot.scale.title)


def _strokes(ax: Axes, plot: Drawing, scale: Any) -> None:
    """The idle links first, so that busy ones lie on top."""
    from matplotlib.collections import LineCollection

    order = sorted(plot.strokes, key=lambda one: (one.kind != "link", one.value or 0.0))
    for kind, dash in _DASHES.items():
        mine = [stroke for stroke in order if stroke.kind == kind]
        if not mine:
            continue
        colours = [
            FAILING[kind].colour
            if kind != "link"
            else LINK
            if stroke.value is None
            else scale.to_rgba(stroke.value)
            for stroke in mine
        ]
        lines = LineCollection(
            [list(stroke.points) for stroke in mine],
            colors=colours,
            linewidths=[stroke.width for stroke in mine],
            linestyles=[dash],
            capstyle="butt",
            zorder=2,
        )
        ax.add_collection(lines)


def _boxes(ax: Axes, plot: Drawing, *, behind: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    for box in plot.boxes:
        if (box.kind in ("frame", "mesh")) is not behind:
            continue
        colour = BOXES[box.kind]
        is_frame = box.kind == "frame"
        patch = FancyBboxPatch(
            (box.x - box.width / 2, box.y - box.height / 2),
            box.width,
            box.height,
            boxstyle="round,pad=0,rounding_size=0.03"
            if min(box.width, box.height) > 0.1
            else "square,pad=0",
            facecolor=(*_rgb(colour), 0.07) if is_frame else colour,
            edgecolor=(*_rgb(colour), 0.6) if is_frame else "white",
            linewidth=0.7 if is_frame else 0.4,
            zorder=1 if behind else 3,
        )
        ax.add_patch(patch)
        if not box.text:
            continue
        if is_frame:
            ax.text(
                box.x,
                box.y + box.height / 2 + 0.03,
                box.text,
                fontsize=7.5,
                ha="center",
                va="bottom",
                color=_INK,
            )
        else:
            dark = _INK if box.kind == "mesh" else "white"
            ax.text(
                box.x,
                box.y,
                box.text,
                fontsize=7,
                ha="center",
                va="center_baseline",
                color=dark,
                zorder=4,
            )


def _cells(ax: Axes, plot: Drawing, colours: Any, limits: tuple[float, float]) -> None:
    for cells in plot.cells:
        values = [[float("nan") if v is None else v for v in row] for row in cells.values]
        where = (cells.x, cells.x + cells.width, cells.y, cells.y + cells.height)
        ax.imshow(
            values,
            cmap=colours,
            vmin=limits[0],
            vmax=limits[1],
            extent=where,
            aspect="auto",
            interpolation="nearest",
            zorder=2,
        )
        ax.set_xlim(0, plot.width)
        ax.set_ylim(0, plot.height)


def _signs(ax: Axes, plot: Drawing) -> None:
    for kind in plot.kinds:
        style = FAILING[kind]
        mine = [sign for sign in plot.signs if sign.kind == kind]
        ax.plot(
            [sign.x for sign in mine],
            [sign.y for sign in mine],
            marker=_SIGNS[kind],
            markersize=_SIGN if len(plot.signs) <= FEW_SIGNS else 0.75 * _SIGN,
            color=style.colour,
            markeredgecolor="white",
            markeredgewidth=0.6,
            linestyle=_DASHES[kind],
            linewidth=0,
            zorder=5,
        )
        # For the legend: the sign on the line.
        ax.plot(
            [],
            [],
            marker=_SIGNS[kind],
            markersize=_SIGN,
            color=style.colour,
            linestyle=_DASHES[kind],
            linewidth=1.4,
            label=kind,
        )


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return red, green, blue
