"""Heat maps of link load: uplinks and downlinks that a scheme leaves idle or overloads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report.figures.model import Axis, Figure, HeatMap, Panel
from weft.report.figures.subset import MOST_SERIES, first_series, of_one_run
from weft.report.grouping import Category, Grouping

if TYPE_CHECKING:
    import polars as pl

_MOST_FIGURES = 4
_MOST_SWITCHES = 64

# Tier: which end is the row, what the rows and the columns are.
_TIERS = {
    "leaf-up": ("from", "leaf", "uplink", "Load of the uplinks of the leaves"),
    "spine-down": ("to", "leaf", "downlink", "Load of the downlinks to the leaves"),
    "agg-up": ("from", "aggregation switch", "uplink", "Load of the uplinks to the core"),
    "core-down": ("to", "aggregation switch", "downlink", "Load of the downlinks from the core"),
}


def figures(grouping: Grouping, links: pl.LazyFrame) -> list[Figure]:
    """One figure a tier and facet, at the facet's last x, if its links carried anything.

    One panel a scheme.
    """
    last = {category.facet: category for category in grouping.categories}
    drawn: list[Figure] = []
    for category in last.values():
        for tier in _TIERS:
            figure = _figure(grouping, category, links, tier, len(drawn) + 1)
            if figure is not None:
                drawn.append(figure)
    return drawn[:_MOST_FIGURES]


def _figure(
    grouping: Grouping, category: Category, links: pl.LazyFrame, tier: str, number: int
) -> Figure | None:
    end, row_kind, column_kind, title = _TIERS[tier]
    maps = {}
    for series in first_series(grouping.series):
        run = grouping.sample(category, series)
        grid = _grid(links, run, tier, end) if run else {}
        if grid:
            maps[series] = grid
    if not any(used for grid in maps.values() for cells in grid.values() for _, used in cells):
        return None
    scale = Axis("utilisation [%]", limits=(0.0, _top(maps.values())))
    x, y = Axis(column_kind), Axis(row_kind)
    panels = tuple(Panel(series, _heat(grid, x, y, scale)) for series, grid in maps.items())
    case = f", {category.label}" if category.label else ""
    caption = (
        "Share of each link's capacity that was used, from the start until the last packet"
        f"{case}; {of_one_run(grouping)}. The same colour is the same load."
    )
    if len(grouping.series) > MOST_SERIES:
        caption += f" Shown: the first {MOST_SERIES} of {len(grouping.series)} schemes."
    if any(len(grid) > _MOST_SWITCHES for grid in maps.values()):
        caption += f" The first {_MOST_SWITCHES} switches."
    title += f": {category.label}" if category.label else ""
    return Figure(f"links-{number}", title, caption, panels)


Grid = dict[str, list[tuple[str, float]]]
"""For each switch its links: the other end and the utilisation in per cent."""


def _grid(links: pl.LazyFrame, row: Row, tier: str, end: str) -> Grid:
    import polars as pl

    mine = links.filter((pl.col("run") == row["run"]) & (pl.col("tier") == tier))
    other = "to" if end == "from" else "from"
    grid: Grid = {}
    for switch, peer, used in mine.select(end, other, "utilisation").collect().iter_rows():
        grid.setdefault(switch.split("#")[0], []).append((peer, 100.0 * used))
    return dict(sorted(grid.items(), key=lambda item: _natural(item[0])))


def _heat(grid: Grid, x: Axis, y: Axis, scale: Axis) -> HeatMap:
    shown = dict(list(grid.items())[:_MOST_SWITCHES])
    width = max(len(cells) for cells in shown.values())
    values = tuple(
        tuple(used for _, used in cells) + (None,) * (width - len(cells))
        for cells in shown.values()
    )
    names = tuple(switch.rsplit("-", 1)[-1] for switch in shown)
    return HeatMap(names, tuple(str(i) for i in range(width)), values, x, y, scale)


def _natural(name: str) -> tuple[str, int]:
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isdigit() else (name, 0)


def _top(grids: Iterable[Grid]) -> float:
    """A round upper end of the colour scale, the same for all panels."""
    values = [used for grid in grids for cells in grid.values() for _, used in cells]
    top = max(values, default=0.0)
    return next((limit for limit in (1, 2, 5, 10, 20, 40, 60, 80, 100) if top <= limit), 100.0)
