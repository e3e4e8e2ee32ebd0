"""What a figure shows, before anything draws it.

Plain data with axis titles and units; `draw_matplotlib` and `html` draw it.
`all_figures` chooses what to show of an experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weft.report.figures.palette import Style

FEW_SIGNS = 60
"""More signs of failures in a drawing are smaller."""
BARS = 0.8
"""The part of a category that its bars fill."""
_MOST_ASLANT = 16


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

    @property
    def upright(self) -> bool:
        """Whether names stand below their bars: so many would lie over each other aslant."""
        return len(self.ticks) > _MOST_ASLANT


@dataclass(frozen=True)
class Curve:
    """Points joined by a line."""

    label: str
    style: Style
    x: tuple[float, ...]
    y: tuple[float, ...]
    halves: tuple[float | None, ...] = ()
    markers: Literal["all", "some", "none"] = "some"
    """At which points its marker is: at some, where a curve has many points."""
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


Kind = Literal["link", "down", "degraded", "flaky"]
"""What a link is drawn as: it works, or how it fails."""


@dataclass(frozen=True)
class Stroke:
    """A line of a drawing: a link, or several."""

    points: tuple[tuple[float, float], ...]
    width: float
    """In points."""
    kind: Kind = "link"
    value: float | None = None
    """On the drawing's scale; None: in grey."""
    note: str = ""
    """Shown when the pointer is over its middle."""


@dataclass(frozen=True)
class Box:
    """A rectangle of a drawing, with a text in it."""

    x: float
    """Its middle."""
    y: float
    width: float
    height: float
    kind: Literal["switch", "hosts", "frame", "mesh"]
    text: str = ""
    """Of a frame: above its lower left corner, else in the middle."""
    note: str = ""


@dataclass(frozen=True)
class Cells:
    """Values in rows and columns of a rectangle, the first row on top."""

    x: float
    """Its left end."""
    y: float
    """Its lower end."""
    width: float
    height: float
    values: tuple[tuple[float | None, ...], ...]
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sign:
    """A sign over a link that fails."""

    x: float
    y: float
    kind: Kind
    note: str = ""


@dataclass(frozen=True)
class Words:
    """A text of a drawing; lines are apart by line breaks."""

    x: float
    y: float
    text: str
    align: Literal["left", "center", "right"] = "left"
    size: float = 8.0
    """In points."""


@dataclass(frozen=True)
class Drawing:
    """A picture whose coordinates are inches from the lower left corner."""

    width: float
    height: float
    strokes: tuple[Stroke, ...] = ()
    boxes: tuple[Box, ...] = ()
    cells: tuple[Cells, ...] = ()
    signs: tuple[Sign, ...] = ()
    words: tuple[Words, ...] = ()
    scale: Axis | None = None
    """The scale of the colours of strokes and cells, with limits; None: there are none."""
    x: Axis = Axis("")
    y: Axis = Axis("")

    @property
    def kinds(self) -> list[Kind]:
        """What the legend has."""
        used = {one.kind for one in self.strokes} | {one.kind for one in self.signs}
        kinds: tuple[Kind, ...] = ("down", "degraded", "flaky")
        return [kind for kind in kinds if kind in used]


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    title: str
    plot: Bars | Lines | HeatMap | Drawing


@dataclass(frozen=True)
class Figure:
    """Panels that are looked at together, with the sentence that says what they show."""

    name: str
    """Stem of the figure's files."""
    title: str
    caption: str
    panels: tuple[Panel, ...]
    shown: str = ""
    """What of all is shown, where something is left out; picture files have this sentence, too."""

    @property
    def text(self) -> str:
        """The caption with all of its sentences."""
        return f"{self.caption} {self.shown}".rstrip()
