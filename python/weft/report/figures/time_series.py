"""Curves over time, measured in seconds and in some unit, shown in units that read well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from weft.report.figures.axes import alike
from weft.report.figures.model import Axis, Lines, Panel
from weft.units import time_unit

Scale = tuple[float, str]
"""How much of a unit makes one of another, and what that is called."""


def with_units(
    panels: Sequence[Panel], what: str, unit: Callable[[Iterable[float]], Scale]
) -> list[Panel]:
    """The same units in all panels where they can be compared, else each its own.

    `what` the values are stands at their axis; `unit` chooses theirs.
    """
    plots = [panel.plot for panel in panels if isinstance(panel.plot, Lines)]
    ends = [max(curve.x[-1] for curve in plot.curves) for plot in plots]
    tops = [max(max(curve.y) for curve in plot.curves) for plot in plots]
    ends = [max(ends)] * len(ends) if alike(ends) else ends
    tops = [max(tops)] * len(tops) if alike(tops) else tops
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
