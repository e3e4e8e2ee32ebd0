"""Figures as Plotly traces and layouts in JSON, for `report.html`.

The script of the page adds the colours of light or dark paper and draws them.
"""

from __future__ import annotations

import math
from typing import Any

from weft.report.figures import drawing_plotly
from weft.report.figures.axes import LETTERS, UPRIGHT_LETTERS, lines_of
from weft.report.figures.model import (
    BARS,
    Axis,
    Bars,
    Curve,
    Drawing,
    HeatMap,
    Lines,
    Mark,
    Panel,
)
from weft.report.figures.palette import BOUND
from weft.report.figures.plotly_text import plain, wrapped

Json = dict[str, Any]

_STAR: Json = {"symbol": "star", "size": 12, "line": {"width": 1.2, "color": "#333333"}}
"""Seen on bars of every colour, and on light and dark paper."""
_MOST_MARKERS = 9
"""Markers of a curve with many points."""
_ERROR: Json = {"type": "data", "thickness": 1.2, "width": 3}
_LETTERS = 100
"""Category names with more letters side by side are rotated, and the plot is higher."""
_UPRIGHT = 1.4
"""Width of a name that stands upright, in rem: what has less room scrolls."""
_LEGEND = 40
"""Letters of a line of a name in a legend: as many as a telephone has room for."""


def panel(panel: Panel) -> Json:
    """The traces and the layout of a panel."""
    match panel.plot:
        case Bars():
            drawn = _bars(panel.plot)
        case Lines():
            drawn = _lines(panel.plot)
        case HeatMap():
            drawn = _heat_map(panel.plot)
        case Drawing():
            drawn = drawing_plotly.draw(panel.plot)
    drawn["layout"] |= {"xaxis": _axis(panel.plot.x) | drawn["layout"].get("xaxis", {})}
    drawn["layout"] |= {"yaxis": _axis(panel.plot.y) | drawn["layout"].get("yaxis", {})}
    return {"tall": False, "height": None, "width": None} | drawn | {"title": panel.title}


def _bars(plot: Bars) -> Json:
    places = list(range(len(plot.categories)))
    data: list[Json] = []
    for series in plot.series:
        halves = [half or 0.0 for half in series.halves]
        notes = series.notes or ("",) * len(halves)
        data.append(
            {
                "type": "bar",
                "name": wrapped(series.label, _LEGEND),
                "x": places,
                "y": series.values,
                "customdata": [
                    plain(
                        " ".join(
                            part
                            for part in (
                                series.label or category,
                                f"± {half:.3g}" if half else "",
                                note,
                            )
                            if part
                        )
                    )
                    for category, half, note in zip(plot.categories, halves, notes, strict=True)
                ],
                "hovertemplate": "%{y:.4g}<br>%{customdata}<extra></extra>",
                "marker": {"color": [style.colour for style in series.styles]},
                "error_y": _ERROR | {"array": halves, "visible": any(halves)},
                "showlegend": len(plot.series) > 1,
            }
        )
    if plot.bound:
        data.append(_bound(plot))
    if any(mark for series in plot.series for mark in series.printed):
        data.append(_printed_bars(plot))
    letters = UPRIGHT_LETTERS if plot.upright else LETTERS
    ticks: Json = {
        "tickvals": plot.ticks,
        "ticktext": [wrapped(plot.categories[place], letters) for place in plot.ticks],
        "showgrid": False,
        "zeroline": False,
    }
    aslant = sum(max(map(len, lines_of(name))) for name in plot.categories) > _LETTERS
    angle = -90 if plot.upright else -35
    ticks |= {"range": plot.span} | ({"tickangle": angle} if plot.upright or aslant else {})
    layout = {"xaxis": ticks, "barmode": "group", "bargap": 1 - BARS}
    width = round(_UPRIGHT * len(plot.ticks)) if plot.upright else None
    return {"data": data, "layout": layout, "tall": plot.upright or aslant, "width": width}


def _bound(plot: Bars) -> Json:
    """The bound as one broken line: a level across each category."""
    x: list[float | None] = []
    y: list[float | None] = []
    for i, level in enumerate(plot.bound):
        x += [i - 0.5, i, i + 0.5, None]
        y += [level, level, level, None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plot.bound_label,
        "x": x,
        "y": y,
        "line": {"color": BOUND.colour, "dash": BOUND.dash, "width": 2},
        "hovertemplate": f"{plot.bound_label}: %{{y:.4g}}<extra></extra>",
        "showlegend": True,
    }


def _printed_bars(plot: Bars) -> Json:
    """What is printed, over the middle of each bar."""
    width = BARS / len(plot.series)
    marks = [
        (place - BARS / 2 + width * (number + 0.5), mark, series.label or category)
        for number, series in enumerate(plot.series)
        for place, (category, mark) in enumerate(
            zip(plot.categories, series.printed, strict=True) if series.printed else ()
        )
        if mark is not None
    ]
    names = [f"{label}: printed" for _, _, label in marks]
    return _printed([x for x, _, _ in marks], [mark for _, mark, _ in marks], names) | {
        "name": "printed",
        "showlegend": True,
        "marker": _STAR | {"color": "#ffffff"},
    }


def _printed(x: list[float], marks: list[Mark], names: list[str]) -> Json:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": [mark.value for mark in marks],
        "customdata": [
            plain(name) + (f" ± {mark.half:.3g}" if mark.half else "")
            for name, mark in zip(names, marks, strict=True)
        ],
        "hovertemplate": "%{customdata}<br>%{y:.4g}<extra></extra>",
        "error_y": _ERROR
        | {
            "array": [mark.half for mark in marks],
            "visible": any(mark.half for mark in marks),
        },
    }


def _lines(plot: Lines) -> Json:
    data = [_curve(curve) for curve in plot.curves]
    for number, label in enumerate(dict.fromkeys(spot.label for spot in plot.spots)):
        mine = [spot for spot in plot.spots if spot.label == label]
        names = [f"{label}: printed"] * len(mine)
        colour = mine[0].style.colour
        drawn = _printed([spot.x for spot in mine], [spot.mark for spot in mine], names)
        # One entry in the legend for all: printed values are stars everywhere.
        entry = {"name": "printed", "legendgroup": "printed", "showlegend": number == 0}
        data.append(drawn | entry | {"marker": _STAR | {"color": colour}})
    return {"data": data, "layout": {"hovermode": "closest"}}


def _curve(curve: Curve) -> Json:
    return {
        "type": "scatter",
        "mode": "lines" if curve.markers == "none" else "lines+markers",
        "name": wrapped(curve.label, _LEGEND),
        "x": [_rounded(value) for value in curve.x],
        "y": [_rounded(value) for value in curve.y],
        "line": {"color": curve.style.colour, "dash": curve.style.dash, "width": 2}
        | ({"shape": "hv"} if curve.shape == "steps" else {}),
        "marker": {"symbol": curve.style.marker, "size": 7}
        | ({"maxdisplayed": _MOST_MARKERS} if curve.markers == "some" else {}),
        "error_y": _ERROR
        | {
            "array": [half or 0.0 for half in curve.halves],
            "visible": any(curve.halves),
        },
        "customdata": [plain(note) for note in curve.notes],
        "hovertemplate": f"{plain(curve.label)}: %{{y:.4g}} at %{{x:.4g}}"
        + ("<br>%{customdata}" if any(curve.notes) else "")
        + "<extra></extra>",
    }


def _heat_map(plot: HeatMap) -> Json:
    low, high = plot.scale.limits or (0.0, 1.0)
    log = plot.scale.log
    bar: Json = {"title": {"text": plot.scale.title, "side": "right"}, "thickness": 12}
    if plot.scale.ticks:
        places = [math.log10(at) if log else at for at, _ in plot.scale.ticks]
        bar |= {"tickvals": places, "ticktext": [name for _, name in plot.scale.ticks]}
    trace: Json = {
        "type": "heatmap",
        "x": [wrapped(name) for name in plot.columns],
        "y": [wrapped(name) for name in plot.rows],
        "z": [[_rounded_cell(value, log) for value in row] for row in plot.values],
        "zmin": math.log10(low) if log else low,
        "zmax": math.log10(high) if log else high,
        "colorscale": "Viridis",
        "reversescale": plot.low_is_light,
        "xgap": 1,
        "ygap": 1,
        "colorbar": bar,
    }
    if plot.texts:
        trace |= {"text": plot.texts, "texttemplate": "%{text}"}
        trace |= {"hovertemplate": "%{y}, %{x}: %{text}<extra></extra>"}
    else:
        hover = f"{plot.y.title} %{{y}}, {plot.x.title} %{{x}}: %{{z:.1f}} %<extra></extra>"
        trace |= {"hovertemplate": hover}
    ticks = {"dtick": 1} if plot.texts else {"nticks": 12}
    flat: Json = {"showgrid": False, "zeroline": False, "type": "category", **ticks}
    down = {"autorange": "reversed", "automargin": True}
    across = {"side": "top", "tickangle": -30, "automargin": True} if plot.texts else {}
    drawn: Json = {"data": [trace], "layout": {"xaxis": flat | across, "yaxis": flat | down}}
    # A row has room for its name.
    lines = max(len(lines_of(name)) for name in plot.rows)
    height = round(9 + 1.4 * lines * len(plot.rows), 1)
    return drawn | ({"height": height} if plot.texts else {})


def _rounded_cell(value: float | None, log: bool) -> float | None:
    """The value on the colour scale, which may be logarithmic."""
    return None if value is None else _rounded(math.log10(value) if log else value)


def _axis(axis: Axis) -> Json:
    drawn: Json = {"title": {"text": plain(axis.title)}}
    if axis.title.endswith("]"):
        # Plotly would write 250µ on an axis in MB.
        drawn |= {"exponentformat": "none"}
    if axis.log:
        drawn |= {"type": "log"}
    if axis.limits is not None:
        # Plotly takes the limits of a logarithmic axis as exponents.
        drawn |= {"range": [math.log10(v) for v in axis.limits] if axis.log else axis.limits}
    elif not axis.log:
        drawn |= {"rangemode": "tozero"}
    if axis.ticks:
        drawn |= {"tickvals": [v for v, _ in axis.ticks], "ticktext": [t for _, t in axis.ticks]}
    return drawn


def _rounded(value: float) -> float:
    """Six digits: more than a screen shows, and a third of the bytes."""
    return float(f"{value:.6g}")
