"""Figures of curves over time: one panel a category, one curve a scheme, in readable units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from weft._types import Row
from weft.report.figures import palette
from weft.report.figures.axes import comparable, with_limits
from weft.report.figures.model import Axis, Curve, Lines, Panel
from weft.report.figures.subset import evenly_spaced, first_series
from weft.report.grouping import Category, Grouping
from weft.units import time_unit

Scale = tuple[float, str]
"""How much of a unit makes one of another, and what that is called."""
Samples = tuple[list[float], list[float]]
"""Times in seconds, and values."""


def panels(
    grouping: Grouping,
    samples: Callable[[Row], Samples],
    what: str,
    unit: Callable[[Iterable[float]], Scale],
) -> tuple[Panel, ...]:
    """The panels of a figure; `samples` are those of a run, empty where it has none."""
    found = []
    for category in evenly_spaced(grouping.categories):
        curves = _curves(grouping, category, samples)
        if curves:
            found.append(Panel(category.label, Lines(tuple(curves), Axis(""), Axis(""))))
    return with_limits(_with_units(found, what, unit)) if found else ()


def _curves(
    grouping: Grouping, category: Category, samples: Callable[[Row], Samples]
) -> list[Curve]:
    styles = palette.styles(grouping.series)
    curves = []
    for name in first_series(grouping.series):
        run = grouping.sample(category, name)
        times, values = samples(run) if run else ([], [])
        if times:
            # Solid: a dash pattern over a jagged line reads as noise.
            style = replace(styles[name], dash="solid")
            curves.append(Curve(name, style, tuple(times), tuple(values)))
    return curves


def _with_units(
    panels: Sequence[Panel], what: str, unit: Callable[[Iterable[float]], Scale]
) -> list[Panel]:
    """The same units in all panels where they can be compared, else each its own.

    `what` is the title of the value axis; `unit` chooses its unit.
    """
    plots = [panel.plot for panel in panels if isinstance(panel.plot, Lines)]
    ends = [max(curve.x[-1] for curve in plot.curves) for plot in plots]
    tops = [max(max(curve.y) for curve in plot.curves) for plot in plots]
    ends = [max(ends)] * len(ends) if comparable(ends) else ends
    tops = [max(tops)] * len(tops) if comparable(tops) else tops
    return [
        replace(panel, plot=_scaled(plot, what, time_unit([end]), unit([top])))
        for panel, plot, end, top in zip(panels, plots, ends, tops, strict=True)
    ]


def _scaled(plot: Lines, what: str, time: Scale, value: Scale) -> Lines:
    curves = tuple(
        replace(
            curve,
            x=tuple(x / time[0] for x in curve.x),
            y=tuple(y / value[0] for y in curve.y),
        )
        for curve in plot.curves
    )
    return Lines(curves, Axis(f"time [{time[1]}]"), Axis(f"{what} [{value[1]}]"))
