"""What a figure shows, before anything draws it.

Plain data with axis titles and units; `draw_matplotlib` and `html` draw it.
`all_figures` chooses what to show of an experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weft.report.figures.palette import Style

BARS = 0.8
"""The part of a category that its bars fill."""


@dataclass(frozen=True)
class Axis:
    """An axis; `title` carries the unit."""

    title: str
    log: bool = False
    limits: tuple[float, float] | None = None
    ticks: tuple[tuple[float, str], ...] = ()
    """Where ticks belong and what they say; empty for the renderer's choice."""


@dataclass(frozen=True)
class Mark:
    """A printed value, and how far it reaches to both sides: a deviation, or half a range."""

    value: float
    half: float = 0.0


@dataclass(frozen=True)
class BarSeries:
    """Bars of one scheme (or of all, each with a style of its own), one a category."""

    label: str
    styles: tuple[Style, ...]
    values: tuple[float | None, ...]
    halves: tuple[float | None, ...]
    """Half widths of the confidence intervals; None for a single seed."""
    printed: tuple[Mark | None, ...] = ()
    """Printed values, by category; may be empty."""
    notes: tuple[str, ...] = ()
    """More text for a bar, shown when the pointer is over it."""


@dataclass(frozen=True)
class Bars:
    """Grouped bars over categories, with a reference level in each category."""

    categories: tuple[str, ...]
    series: tuple[BarSeries, ...]
    x: Axis
    y: Axis
    bound: tuple[float | None, ...] = ()
    """A line across each category; empty for none."""
    bound_label: str = "lower bound"

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the axis on which the first category is at 0, the second at 1, ...

        Bars of a single one fill it.
        """
        return (-0.6, len(self.categories) - 0.4) if len(self.categories) > 1 else (-0.45, 0.45)

    @property
    def ticks(self) -> list[int]:
        """Where categories with a name are."""
        return [place for place, name in enumerate(self.categories) if name]


@dataclass(frozen=True)
class Curve:
    """Points joined by a line."""

    label: str
    style: Style
    x: tuple[float, ...]
    y: tuple[float, ...]
    halves: tuple[float | None, ...] = ()
    markers: bool = False
    shape: Literal["linear", "steps"] = "linear"
    notes: tuple[str, ...] = ()
    """More text for a point, shown when the pointer is over it."""


@dataclass(frozen=True)
class Spot:
    """A printed value among curves, in the style of its series."""

    label: str
    style: Style
    x: float
    mark: Mark


@dataclass(frozen=True)
class Lines:
    """Curves over a common axis: over a swept value, over time, or a CDF."""

    curves: tuple[Curve, ...]
    x: Axis
    y: Axis
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class HeatMap:
    """A value for each row and column; None where there is no such link."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    x: Axis
    y: Axis
    scale: Axis
    """The scale of the colours, with limits."""
    texts: tuple[tuple[str, ...], ...] = ()
    """Texts in cells; empty for colours only."""

    @property
    def low_is_light(self) -> bool:
        """Whether small values are light: yes if cells have texts."""
        return bool(self.texts)


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    title: str
    plot: Bars | Lines | HeatMap


@dataclass(frozen=True)
class Figure:
    """Panels that are looked at together, with the sentence that says what they show."""

    name: str
    """Stem of the figure's files."""
    title: str
    caption: str
    panels: tuple[Panel, ...]
