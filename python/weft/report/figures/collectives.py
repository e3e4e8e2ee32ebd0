"""The figure of collectives: how long each kind of them took, for each scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report.figures import palette
from weft.report.figures.axes import with_limits
from weft.report.figures.model import Axis, Bars, BarSeries, Figure, Panel
from weft.report.figures.palette import Style
from weft.report.figures.subset import (
    MOST_MEASURED,
    MOST_PANELS,
    MOST_SERIES,
    evenly_spaced,
    first_series,
    shown,
)
from weft.report.grouping import Category, Grouping
from weft.study import stats
from weft.units import time_unit

if TYPE_CHECKING:
    import polars as pl

_MOST_NAMES = 12
"""With more kinds of collectives and groups, a group is named by its size."""

Kind = str
Times = Mapping[int, Mapping[Kind, tuple[float, float, int]]]
"""By run and kind of collective: the mean time, the bus bandwidth, how many."""


def figures(grouping: Grouping, collectives: pl.LazyFrame) -> list[Figure]:
    """One figure a category, a panel a kind, a bar a scheme; none where there is but one kind."""
    if "run" not in collectives.collect_schema():
        return []
    drawn: list[Figure] = []
    for category in evenly_spaced(grouping.categories):
        cells = {
            series: grouping.rows(category, series) for series in first_series(grouping.series)
        }
        runs = [row["run"] for rows in cells.values() for row in rows]
        times = _times(collectives, runs)
        kinds = _longest(times)
        if len(kinds) > 1:
            name = f"collectives-{len(drawn) + 1}"
            drawn.append(_figure(name, grouping, category, cells, times, kinds))
    return drawn


def _figure(
    name: str,
    grouping: Grouping,
    category: Category,
    cells: Mapping[str, Sequence[Row]],
    times: Times,
    kinds: Sequence[Kind],
) -> Figure:
    styles = palette.styles(grouping.series)
    x = Axis(grouping.series_name)
    panels = [Panel(kind, _bars(kind, styles, cells, times, x)) for kind in kinds[:MOST_MEASURED]]
    case = f" {category.label}:" if category.label else ""
    caption = (
        f"By kind of collective and group of ranks:{case} time from the first rank of the group "
        "that starts to the last rank that finishes, mean over all collectives of a run and over "
        "seeds. The kinds with the largest total time come first."
    )
    left_out = _left_out(grouping, kinds)
    return Figure(name, "Times of collectives", caption, with_limits(panels), left_out)


def _bars(
    kind: Kind,
    styles: Mapping[str, Style],
    cells: Mapping[str, Sequence[Row]],
    times: Times,
    x: Axis,
) -> Bars:
    """A bar for each series; axes start at zero, so that differences show as they are."""
    found = {
        series: [times[row["run"]][kind] for row in rows if kind in times.get(row["run"], {})]
        for series, rows in cells.items()
    }
    scale, unit = time_unit([time for ones in found.values() for time, _, _ in ones])
    bars = []
    for series, ones in found.items():
        if ones:
            mean = stats.mean([time / scale for time, _, _ in ones])
            # All bytes over all times, as in the table.
            busbw = sum(bus * time for time, bus, _ in ones) / (
                sum(time for time, _, _ in ones) or 1.0
            )
            note = f"busbw {busbw:.4g} GB/s, {ones[0][2]} in a run"
            look, value, half = (styles[series],), (mean.value,), (mean.half,)
            bars.append(BarSeries(series, look, value, half, notes=(note,)))
    return Bars(("",), tuple(bars), x, Axis(f"time [{unit}]"))


def _left_out(grouping: Grouping, kinds: Sequence[Kind]) -> str:
    parts = []
    if len(kinds) > MOST_MEASURED:
        parts.append(f"the first {MOST_MEASURED} of {len(kinds)} kinds")
    if len(grouping.series) > MOST_SERIES:
        parts.append(f"the first {MOST_SERIES} of {len(grouping.series)} schemes")
    if len(grouping.categories) > MOST_PANELS:
        parts.append(f"{MOST_PANELS} of {len(grouping.categories)} cases")
    return shown(parts)


def _times(collectives: pl.LazyFrame, runs: Sequence[int]) -> Times:
    """The times in these runs. A group has its name, or its size if there are too many names."""
    import polars as pl

    mine = collectives.filter(pl.col("run").is_in(runs))
    named = mine.select("operation", "group").unique().collect()
    alone = named["group"].n_unique() < 2
    group = pl.col("group") if named.height <= _MOST_NAMES else pl.format("{} ranks", "ranks")
    # A group that is called by a number would pass for a number of something.
    group = (
        pl.when(group.str.contains(r"^\d+$")).then(pl.format("group {}", group)).otherwise(group)
    )
    kind = pl.col("operation") if alone else pl.format("{}, {}", "operation", group)
    frame = (
        mine.group_by("run", kind.alias("kind"))
        .agg(
            pl.col("time_s").mean().alias("mean"),
            # All bytes over all times, as the column of runs has it.
            ((pl.col("busbw_gb_s") * pl.col("time_s")).sum() / pl.col("time_s").sum()).alias("bus"),
            pl.len().alias("count"),
        )
        .sort("run", "kind")
        .collect()
    )
    times: dict[int, dict[Kind, tuple[float, float, int]]] = {}
    for run, name, mean, bus, count in frame.iter_rows():
        times.setdefault(run, {})[name] = (mean, bus, count)
    return times


def _longest(times: Times) -> list[Kind]:
    """The kinds, those first that take most time in all runs together."""
    sums: dict[Kind, float] = {}
    for kinds in times.values():
        for kind, (mean, _, count) in kinds.items():
            sums[kind] = sums.get(kind, 0.0) + mean * count
    return sorted(sums, key=lambda kind: (-sums[kind], kind))
