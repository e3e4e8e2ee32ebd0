"""Figures as PNG and SVG files, drawn with Matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.charts import Axis, Bars, BarSeries, Curve, Figure, HeatMap, Lines, Panel
from weft.palette import BOUND, Dash

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
    "star": "*",
}
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
    "svg.fonttype": "none",
}
_PANEL = (3.6, 2.7)
_LEGEND_ROOM = 0.75


def draw(figure: Figure, directory: Path) -> list[Path]:
    """Write `directory/<name>.png` and `.svg`; returns what was written."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(_STYLE):
        columns = min(len(figure.panels), 2 if len(figure.panels) == 4 else 3)
        rows = -(-len(figure.panels) // columns)
        single = len(figure.panels) == 1
        width, height = (6.0, 3.6) if single else (_PANEL[0] * columns, _PANEL[1] * rows)
        canvas = Canvas(figsize=(width, height + _LEGEND_ROOM), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = list(canvas.subplots(rows, columns, squeeze=False).flat)
        for ax, panel in zip(axes, figure.panels, strict=False):
            _panel(ax, panel)
        for ax in axes[len(figure.panels) :]:
            ax.set_visible(False)
        canvas.suptitle(figure.title, fontweight="bold", fontsize=11)
        _legend(canvas, axes)
        paths = [directory / f"{figure.name}.png", directory / f"{figure.name}.svg"]
        canvas.savefig(paths[0], dpi=160, metadata={"Software": None})
        canvas.savefig(paths[1], metadata={"Date": None, "Creator": None})
    return paths


def _panel(ax: Axes, panel: Panel) -> None:
    match panel.plot:
        case Bars():
            _bars(ax, panel.plot)
        case Lines():
            _lines(ax, panel.plot)
        case HeatMap():
            _heat_map(ax, panel.plot)
    ax.set_xlabel(panel.plot.x.title)
    ax.set_ylabel(panel.plot.y.title)
    ax.set_title(panel.title)


def _legend(canvas: Any, axes: Sequence[Axes]) -> None:
    """One legend under all panels, so that it never lies over data."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries |= {label: h for h, label in zip(handles, labels, strict=True) if label}
    if entries:
        canvas.legend(
            entries.values(), entries.keys(), loc="outside lower center", ncols=min(5, len(entries))
        )


def _bars(ax: Axes, plot: Bars) -> None:
    width = 0.8 / len(plot.series)
    for number, series in enumerate(plot.series):
        left = -0.4 + width * (number + 0.5)
        _bar_series(ax, series, [i + left for i in range(len(plot.categories))], width)
    label = plot.bound_label
    for i, level in enumerate(plot.bound):
        if level is not None:
            ax.hlines(level, i - 0.5, i + 0.5, colors=BOUND.colour, linestyles="--", label=label)
            label = ""
    ax.set_xticks(range(len(plot.categories)), plot.categories)
    if max(len(name) for name in plot.categories) * len(plot.categories) > 60:
        ax.tick_params(axis="x", labelrotation=30)
        for tick in ax.get_xticklabels():
            tick.set_horizontalalignment("right")
    ax.set_xlim(-0.6, len(plot.categories) - 0.4)
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


def _lines(ax: Axes, plot: Lines) -> None:
    for curve in plot.curves:
        _curve(ax, curve)
    _scale(ax, "x", plot.x)
    _scale(ax, "y", plot.y)


def _curve(ax: Axes, curve: Curve) -> None:
    ax.plot(
        curve.x,
        curve.y,
        label=curve.label,
        color=curve.style.colour,
        linestyle=_DASHES[curve.style.dash],
        marker=_MARKERS[curve.style.marker] if curve.markers else "",
        markersize=4,
        linewidth=1.3,
    )
    if any(curve.halves):
        halves = [half or 0.0 for half in curve.halves]
        ax.errorbar(curve.x, curve.y, halves, color=curve.style.colour, fmt="none", capsize=3)


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
        (ax.set_xticks if horizontal else ax.set_yticks)(places, names)
        ax.minorticks_off()


def _heat_map(ax: Axes, plot: HeatMap) -> None:
    low, high = plot.scale.limits or (0.0, 1.0)
    values = [[float("nan") if v is None else v for v in row] for row in plot.values]
    image = ax.imshow(values, cmap="viridis", vmin=low, vmax=high, aspect="auto")
    _thin(ax, "x", plot.columns)
    _thin(ax, "y", plot.rows)
    ax.grid(visible=False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9)
    bar.set_label(plot.scale.title)


def _thin(ax: Axes, which: str, names: Sequence[str]) -> None:
    """At most about a dozen tick labels."""
    step = -(-len(names) // 12)
    places = range(0, len(names), step)
    setter = ax.set_xticks if which == "x" else ax.set_yticks
    setter(places, [names[i] for i in places])
