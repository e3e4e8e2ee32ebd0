"""Titles, limits and ticks of axes: panels that can be compared share limits."""

from __future__ import annotations

import math
import re
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace

from weft.report.figures.model import Axis, Bars, Lines, Mark, Panel
from weft.report.grouping import Grouping

_ALIKE = 10.0
_WIDE = 30.0
# So many times the median, a value leaves no room for half of the others.
_LONELY = 6.0
_MARGIN = 0.03
# Per cent: where no link has more load, the scale ends here.
_LOW_LOAD = 10.0
# On a logarithmic axis: as far as an error bar may pull it below the least value.
_DEEPEST = 2.5
# An error bar may raise the axis to so many times the largest value.
_HIGHEST = 1.5
_STEPS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (0.6, (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)),
    (1.2, (1, 2, 3, 5, 7)),
    (3, (1, 2, 5)),
    (math.inf, (1,)),
)

LETTERS = 20
"""Of a line of a name of a bar or row."""
UPRIGHT_LETTERS = 40
"""Of a line of a name that stands upright, beside others that have room for one."""

Ends = tuple[float, float]
# A letter alone is no unit.
_QUANTITY = re.compile(r"(-?[0-9][0-9.]*) ?(?![KMGTkmgt]$)([A-Za-z%]+)")


def key_axis(key: str, values: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The title of the axis of a swept key, and what its ticks say.

    Values that are all written in one unit leave it to the title: `fabric.delay [µs]`. Others keep
    theirs.
    """
    parts = [_QUANTITY.fullmatch(value) for value in values]
    units = {part[2] for part in parts if part}
    if None not in parts and len(units) == 1:
        # As the other axes have it.
        unit = "µs" if units == {"us"} else units.pop()
        return f"{key} [{unit}]", tuple(part[1] for part in parts if part)
    return key, tuple(values)


def case_axis(grouping: Grouping) -> tuple[str, tuple[str, ...]]:
    """The same of an axis of categories, which may be values of several keys."""
    categories = grouping.categories
    if grouping.x_key and not grouping.facet_keys:
        return key_axis(grouping.x_key, [category.x for category in categories])
    keys = [*grouping.facet_keys, *([grouping.x_key] if grouping.x_key else [])]
    return ", ".join(keys), tuple(category.label for category in categories)


def lines_of(name: str, letters: int = LETTERS) -> list[str]:
    """A name in lines of at most so many letters: long ones would leave bars no room."""
    return textwrap.wrap(name, letters) or [""]


def load_scale(most: float) -> Axis:
    """The scale of loads of links in per cent, `most` being the largest one.

    To 100, so that a colour is the same load in every report; to 10 where no link has more: else
    all of a job that computes most of the time would be of one colour.
    """
    top = 100.0 if most > _LOW_LOAD else _LOW_LOAD
    above = " and above" * (most > 100.0 * (1 + 1e-9))
    return Axis(f"utilisation [%]{above}", limits=(0.0, top))


def ends_early(scale: Axis) -> str:
    """A further sentence of a caption where a scale of loads does not go to 100 %."""
    top = scale.limits[1] if scale.limits else 100.0
    return "" if top == 100.0 else f" Colours end at {top:g} %: no link had more load."


def needs_log(values: Iterable[float]) -> bool:
    """Whether only a logarithmic axis shows all these values.

    They span too much, or one lone value would press half of them to the ground.
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return False
    return max(positive) > min(_WIDE * min(positive), _LONELY * statistics.median(positive))


def comparable(tops: Sequence[float]) -> bool:
    """Whether panels with these largest values are readable with the same limits and unit."""
    return min(tops) > 0 and max(tops) <= _ALIKE * min(tops)


def with_limits(panels: Sequence[Panel]) -> tuple[Panel, ...]:
    """Panels with room for error bars and ticks on logarithmic axes; limits shared if `comparable`.

    Only panels of curves are made to share.
    """
    plots = [panel.plot for panel in panels if isinstance(panel.plot, Lines)]
    if len(plots) < len(panels):
        return tuple(_fit_alone(panel) for panel in panels)
    xs = _fit([plot.x for plot in plots], [_ends(plot, "x") for plot in plots], from_zero=False)
    ys = _fit([plot.y for plot in plots], [_ends(plot, "y") for plot in plots], from_zero=True)
    return tuple(
        replace(panel, plot=replace(plot, x=x, y=y))
        for panel, plot, x, y in zip(panels, plots, xs, ys, strict=True)
    )


def runs_off(panels: Sequence[Panel]) -> bool:
    """Whether an error bar ends above an axis, where its end cannot be seen."""
    for plot in (panel.plot for panel in panels):
        if not isinstance(plot, Bars | Lines) or plot.y.limits is None:
            continue
        reach = (
            [end for series in plot.series for end in _reach(series.values, series.halves)]
            if isinstance(plot, Bars)
            else [end for curve in plot.curves for end in _reach(curve.y, curve.halves)]
        )
        if any(high > plot.y.limits[1] for _, _, high in reach):
            return True
    return False


def log_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Ticks within these limits, at fewer places of each decade the more decades there are."""
    decades = math.log10(high / low)
    steps = next(steps for most, steps in _STEPS if decades <= most)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    places = [step * 10.0**exponent for exponent in exponents for step in steps]
    return tuple((p, f"{p:,.10g}") for p in places if low * 0.999 <= p <= high * 1.001)


def _fit_alone(panel: Panel) -> Panel:
    if not isinstance(panel.plot, Bars):
        return panel
    plot = panel.plot
    levels = [(level, level, level) for level in plot.bound if level is not None]
    reach = [end for series in plot.series for end in _reach(series.values, series.halves)]
    reach += [end for series in plot.series for end in _marked(series.printed)]
    low, high = _span(_within([*levels, *reach]), log=plot.y.log)
    return replace(panel, plot=replace(plot, y=_fit([plot.y], [(low, high)], from_zero=True)[0]))


def _fit(axes: Sequence[Axis], ends: Sequence[Ends], *, from_zero: bool) -> list[Axis]:
    if any(axis.log for axis in axes):
        return [_logarithmic(axis, *end) for axis, end in zip(axes, ends, strict=True)]
    if axes[0].limits is not None:
        return list(axes)
    if len({axis.title for axis in axes}) == 1 and comparable([high for _, high in ends]):
        ends = [(min(low for low, _ in ends), max(high for _, high in ends))] * len(ends)
    # One rule for all panels: else one that begins at zero stands beside one that does not.
    from_zero = from_zero or any(0.0 <= low < high / 2 for low, high in ends)
    limits = [_limits(low, high, from_zero=from_zero) for low, high in ends]
    return [replace(axis, limits=limit) for axis, limit in zip(axes, limits, strict=True)]


def _limits(low: float, high: float, *, from_zero: bool) -> Ends | None:
    """From zero, or close to the data where they all lie far from it; None for the renderer's."""
    if high <= low and not (from_zero and high > 0.0):
        return None
    if low >= 0.0 and from_zero:
        return (0.0, high + _MARGIN * high)
    margin = _MARGIN * (high - low)
    return (low - margin, high + margin)


def _logarithmic(axis: Axis, low: float, high: float) -> Axis:
    if axis.ticks or low <= 0:
        return axis
    # Out to the next tick on both sides: an axis without a number at its end is hard to read.
    ticks = log_ticks(low / 1.5, high * 1.5)
    places = [place for place, _ in ticks]
    return replace(axis, ticks=ticks, limits=(min(low / 1.1, *places), max(high * 1.1, *places)))


def _ends(plot: Lines, which: str) -> Ends:
    if which == "x":
        return _span([(x, x, x) for curve in plot.curves for x in curve.x], log=plot.x.log)
    reach = [end for curve in plot.curves for end in _reach(curve.y, curve.halves)]
    reach += _marked([spot.mark for spot in plot.spots])
    return _span(_within(reach), log=plot.y.log)


Reach = tuple[float, float, float]
"""A value between the ends of its error bar."""


def _reach(values: Sequence[float | None], halves: Sequence[float | None]) -> list[Reach]:
    pairs = zip(values, halves or [None] * len(values), strict=True)
    return [(v - (half or 0.0), v, v + (half or 0.0)) for v, half in pairs if v is not None]


def _marked(marks: Sequence[Mark | None]) -> list[Reach]:
    return [(m.value - m.half, m.value, m.value + m.half) for m in marks if m is not None]


def _within(reach: Sequence[Reach]) -> list[Reach]:
    """Without what says more about the number of seeds than about the values.

    With two or three seeds an interval may be many times the value, and end below zero where
    nothing can be: such a bar runs off the edge instead of flattening everything else.
    """
    top = _HIGHEST * max((value for _, value, _ in reach), default=0.0)
    bottom = min(0.0, _HIGHEST * min((value for _, value, _ in reach), default=0.0))
    return [(max(low, bottom), v, max(v, min(high, top))) for low, v, high in reach]


def _span(reach: Sequence[Reach], *, log: bool) -> Ends:
    """The least and the most that is drawn.

    On a logarithmic axis an error bar that comes near zero, or beyond, runs off the edge.
    """
    low = min((low for low, _, _ in reach), default=0.0)
    if log:
        least = min((value for _, value, _ in reach), default=0.0)
        lows = [low for low, _, _ in reach if low * _DEEPEST > least]
        low = min([least, *lows])
    return (low, max((high for _, _, high in reach), default=1.0))
