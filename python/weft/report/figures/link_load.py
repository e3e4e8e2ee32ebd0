"""Heat maps of link load: uplinks and downlinks that a scheme leaves idle or overloads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report.figures.axes import ends_early, load_scale
from weft.report.figures.model import Axis, Figure, HeatMap, Panel
from weft.report.figures.subset import MOST_SERIES, first_series, of_one_run, shown
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
    scale = scale_of(grouping, links)
    drawn: list[Figure] = []
    for category in last.values():
        for tier in _TIERS:
            figure = _figure(grouping, category, links, tier, scale)
            if figure is not None:
                drawn.append(replace(figure, name=f"links-{len(drawn) + 1}"))
    return drawn[:_MOST_FIGURES]


def scale_of(grouping: Grouping, links: pl.LazyFrame) -> Axis:
    """The scale of all pictures of load of an experiment."""
    import polars as pl

    runs = [row["run"] for rows in grouping.cells.values() for row in rows]
    mine = links.filter(pl.col("run").is_in(runs)).select(pl.col("utilisation").max())
    return load_scale(100 * (mine.collect().item() or 0.0))


def _figure(
    grouping: Grouping, category: Category, links: pl.LazyFrame, tier: str, scale: Axis
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
    x = Axis(column_kind)
    panels = tuple(Panel(series, _heat(grid, x, row_kind, scale)) for series, grid in maps.items())
    case = f", {category.label}" if category.label else ""
    caption = (
        "Share of each link's capacity that was used, from the start until the last packet"
        f"{case}; {of_one_run(grouping)}. The same colour is the same load in all of these "
        f"maps.{ends_early(scale)}"
    )
    parts = []
    if len(grouping.series) > MOST_SERIES:
        parts.append(f"the first {MOST_SERIES} of {len(grouping.series)} schemes")
    if any(len(grid) > _MOST_SWITCHES for grid in maps.values()):
        parts.append(f"the first {_MOST_SWITCHES} switches")
    title += f": {category.label}" if category.label else ""
    return Figure("links", title, caption, panels, shown(parts))


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


def _heat(grid: Grid, x: Axis, kind: str, scale: Axis) -> HeatMap:
    shown = dict(list(grid.items())[:_MOST_SWITCHES])
    width = max(len(cells) for cells in shown.values())
    values = tuple(
        tuple(used for _, used in cells) + (None,) * (width - len(cells))
        for cells in shown.values()
    )
    words, names = _labels(list(shown))
    y = Axis("/".join([*words, kind]))
    return HeatMap(names, tuple(str(i) for i in range(width)), values, x, y, scale)


def _labels(switches: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """What tells switches apart: `1/0` for `pod-1-agg-0`, after `pod` for the title of the axis.

    Names that differ in more than numbers are shown whole.
    """
    parts = [name.split("-") for name in switches]
    if len({len(one) for one in parts}) > 1:
        return [], tuple(switches)
    places = [i for i, column in enumerate(zip(*parts, strict=True)) if len(set(column)) > 1]
    if not places or 0 in places or not all(one[i].isdigit() for one in parts for i in places):
        return [], tuple(switches)
    words = [parts[0][i - 1] for i in places[:-1]]
    return words, tuple("/".join(one[i] for i in places) for one in parts)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts names by their numbers, `pod-2` before `pod-10`."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]
