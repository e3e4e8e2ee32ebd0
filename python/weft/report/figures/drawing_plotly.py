"""Drawings as Plotly traces and layouts in JSON: what a link carries shows when pointed at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from weft.report.figures.model import FEW_SIGNS, Cells, Drawing, Stroke
from weft.report.figures.palette import BOXES, FAILING, LINK, LOAD
from weft.report.figures.plotly_text import plain

Json = dict[str, Any]

_SHADES = 12
"""Colours and widths of lines: a trace has one of each."""
_REM = 6.6
"""Height of an inch of a drawing on the page."""
_WIDE, _BAR = 5.0, 5.0
"""Width of an inch, and of the bar of colours, in which texts fit; else texts get smaller."""
_SYMBOLS = {"down": "x", "degraded": "triangle-down", "flaky": "diamond"}
_POINT = 1.3
"""Screen pixels of a point."""


def draw(plot: Drawing) -> Json:
    """The traces and the layout."""
    high = plot.scale.limits[1] if plot.scale and plot.scale.limits else 1.0
    data = [_cells(plot, cells, high) for cells in plot.cells]
    data += _strokes(plot.strokes, high)
    data += [_notes(plot), *_signs(plot)]
    if plot.scale is not None and not plot.cells:
        data.append(_bar(plot, high))
    flat: Json = {"visible": False, "fixedrange": False, "showgrid": False, "zeroline": False}
    layout: Json = {
        "xaxis": flat | {"range": [0, plot.width]},
        "yaxis": flat | {"range": [0, plot.height]},
        "shapes": _shapes(plot),
        "annotations": _texts(plot),
        "hovermode": "closest",
        "margin": {"l": 5, "r": 5},
        "showlegend": bool(plot.kinds),
    }
    width = _WIDE * plot.width + _BAR * (plot.scale is not None)
    size = {"height": round(_REM * plot.height + 4, 1), "width": round(width, 1)}
    return {"data": data, "layout": layout, **size}


def _strokes(strokes: Sequence[Stroke], high: float) -> list[Json]:
    """Lines of one look are one trace, with gaps."""
    alike: dict[tuple[Any, ...], list[Stroke]] = defaultdict(list)
    for stroke in strokes:
        shade = None if stroke.value is None else round(_SHADES * min(1.0, stroke.value / high))
        alike[stroke.kind != "link", shade or 0, stroke.kind, shade, round(stroke.width, 1)].append(
            stroke
        )
    data = []
    for (_, _, kind, shade, width), mine in sorted(alike.items(), key=lambda one: one[0][:3]):
        x: list[float | None] = []
        y: list[float | None] = []
        for stroke in mine:
            x += [round(point[0], 3) for point in stroke.points] + [None]
            y += [round(point[1], 3) for point in stroke.points] + [None]
        if kind != "link":
            line: Json = {"color": FAILING[kind].colour, "dash": FAILING[kind].dash}
        else:
            line = {"color": LINK if shade is None else _shade(shade / _SHADES)}
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": y,
                "line": line | {"width": round(_POINT * width, 1)},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    return data


def _notes(plot: Drawing) -> Json:
    """Points that cannot be seen, in the middle of what has a note."""
    spots: list[tuple[float, float, str]] = []
    for stroke in plot.strokes:
        if stroke.note:
            first, last = stroke.points[0], stroke.points[-1]
            middle = stroke.points[len(stroke.points) // 2]
            if len(stroke.points) == 2:
                middle = ((first[0] + last[0]) / 2, (first[1] + last[1]) / 2)
            spots.append((*middle, stroke.note))
    spots += [(box.x, box.y, box.note) for box in plot.boxes if box.note]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [round(x, 3) for x, _, _ in spots],
        "y": [round(y, 3) for _, y, _ in spots],
        "customdata": [plain(note) for _, _, note in spots],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {"size": 12, "opacity": 0},
        "showlegend": False,
    }


def _signs(plot: Drawing) -> list[Json]:
    data = []
    for kind in plot.kinds:
        mine = [sign for sign in plot.signs if sign.kind == kind]
        style = FAILING[kind]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": kind,
                "x": [round(sign.x, 3) for sign in mine],
                "y": [round(sign.y, 3) for sign in mine],
                "customdata": [plain(sign.note) for sign in mine],
                "hovertemplate": "%{customdata}<extra></extra>",
                "marker": {
                    "symbol": _SYMBOLS[kind],
                    "size": 10 if len(plot.signs) <= FEW_SIGNS else 7,
                    "color": style.colour,
                    "line": {"width": 1, "color": "#ffffff"},
                },
                "showlegend": True,
            }
        )
    return data


def _scale(plot: Drawing) -> Json:
    title = plot.scale.title if plot.scale else ""
    return {
        "colorscale": [[part / 2, colour] for part, colour in enumerate(LOAD)],
        "colorbar": {"title": {"text": title, "side": "right"}, "thickness": 12},
    }


def _bar(plot: Drawing, high: float) -> Json:
    """Nothing but the bar of the colours of lines."""
    scale = _scale(plot) | {"cmin": 0, "cmax": high, "showscale": True, "color": [0]}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [None],
        "y": [None],
        "marker": scale | {"opacity": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _cells(plot: Drawing, cells: Cells, high: float) -> Json:
    rows, columns = len(cells.values), len(cells.values[0])
    step = (cells.width / columns, cells.height / rows)
    first = cells is plot.cells[0]
    return {
        "type": "heatmap",
        "x0": round(cells.x + step[0] / 2, 4),
        "dx": step[0],
        "y0": round(cells.y + cells.height - step[1] / 2, 4),
        "dy": -step[1],
        "z": cells.values,
        "zmin": 0,
        "zmax": high,
        "hovertemplate": "%{z:.3g} %<extra></extra>",
        "showscale": first,
        **_scale(plot),
    }


def _shapes(plot: Drawing) -> list[Json]:
    shapes = []
    for box in plot.boxes:
        is_frame = box.kind == "frame"
        behind = box.kind in ("frame", "mesh")
        shapes.append(
            {
                "type": "rect",
                "x0": round(box.x - box.width / 2, 3),
                "x1": round(box.x + box.width / 2, 3),
                "y0": round(box.y - box.height / 2, 3),
                "y1": round(box.y + box.height / 2, 3),
                "fillcolor": BOXES[box.kind],
                "opacity": 0.14 if is_frame else 1.0,
                "line": {"width": 1 if is_frame else 0, "color": BOXES[box.kind]},
                "layer": "below" if behind else "above",
            }
        )
    return shapes


def _texts(plot: Drawing) -> list[Json]:
    """Texts of boxes and others; those without a colour have that of the page."""
    texts: list[Json] = []
    for box in plot.boxes:
        if not box.text:
            continue
        if box.kind == "frame":
            y = box.y + box.height / 2
            texts.append(_text(box.x, y, box.text, 7.5) | {"yanchor": "bottom"})
        else:
            ink = "#222222" if box.kind == "mesh" else "#ffffff"
            text = _text(box.x, box.y, box.text, 7.0)
            texts.append(text | {"font": {"size": text["font"]["size"], "color": ink}})
    for words in plot.words:
        text = _text(words.x, words.y, words.text, words.size)
        texts.append(text | {"xanchor": words.align, "align": words.align})
    return texts


def _text(x: float, y: float, text: str, size: float) -> Json:
    return {
        "x": round(x, 3),
        "y": round(y, 3),
        "text": plain(text).replace("\n", "<br>"),
        "showarrow": False,
        "borderpad": 0,
        "font": {"size": round(1.45 * size, 1)},
    }


def _shade(part: float) -> str:
    """The colour at a part of the scale."""
    place = min(part, 0.9999) * (len(LOAD) - 1)
    low, share = int(place), place % 1
    ends = [[int(LOAD[low + one][at : at + 2], 16) for at in (1, 3, 5)] for one in (0, 1)]
    mixed = [round(a + share * (b - a)) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)
