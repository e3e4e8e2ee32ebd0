"""Which figures an experiment gets, and what they show.

Figures hold at most `selection.MOST_SERIES` series and `MOST_PANELS` panels; where a sweep has
more, a figure shows a choice and its caption says so. The table has everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weft import linkload, palette, queues, stats
from weft._types import Row
from weft.axes import fit, wide
from weft.charts import Axis, Bars, BarSeries, Curve, Figure, Lines, Panel
from weft.groups import Category, Grouping
from weft.quantities import bytes_unit, time_unit
from weft.selection import chosen, evenly, remark

if TYPE_CHECKING:
    import polars as pl

    from weft.inputs import Experiment
    from weft.study import Results

_CDF_POINTS = 400


def of_experiment(experiment: Experiment, results: Results, grouping: Grouping) -> list[Figure]:
    """All figures of an experiment, their names made distinct by the experiment's."""
    figures = [completion(grouping), *_slowdown(grouping), *_fct(grouping, results.flows)]
    figures += queues.figures(grouping, results.series)
    figures += [_peaks(grouping)]
    figures += linkload.figures(grouping, results.links)
    return [replace(figure, name=f"{experiment.name}-{figure.name}") for figure in figures]


def completion(grouping: Grouping) -> Figure:
    """Completion times, with the bound."""
    values = [row["cct_s"] for rows in grouping.cells.values() for row in rows]
    scale, unit = time_unit(values)
    title = f"completion time [{unit}]"
    caption = f"Collective completion time, {_sure(grouping)}; the dashed line is the lower bound."
    panels = _measured(grouping, "cct_s", title, scale, bound="bound_s", log=wide(values))
    return Figure("cct", "Completion time", caption, panels)


def _slowdown(grouping: Grouping) -> list[Figure]:
    """Only where the bound differs: else it is the first figure again."""
    bounds = {row["bound_s"] for rows in grouping.cells.values() for row in rows}
    if len(bounds) < 2:
        return []
    caption = f"Completion time over the lower bound, {_sure(grouping)}; 1 is optimal."
    panels = _measured(grouping, "slowdown", "completion time ÷ bound", 1.0)
    return [Figure("slowdown", "Distance from optimal", caption, panels)]


def _peaks(grouping: Grouping) -> Figure:
    values = [row["peak_queue_bytes"] for rows in grouping.cells.values() for row in rows]
    scale, unit = bytes_unit(values)
    title = f"largest queue [{unit}]"
    caption = f"The most that ever stood in one port's queue, {_sure(grouping)}."
    panels = _measured(grouping, "peak_queue_bytes", title, scale)
    return Figure("peak-queue", "Largest queue", caption, panels)


def _sure(grouping: Grouping) -> str:
    counts = [len(rows) for rows in grouping.cells.values()]
    if max(counts) == 1:
        return "one seed"
    seeds = stats.counted(min(counts), max(counts))
    return f"mean of {seeds} with 95 % confidence intervals"


def _measured(
    grouping: Grouping,
    column: str,
    title: str,
    scale: float,
    bound: str | None = None,
    log: bool = False,
) -> tuple[Panel, ...]:
    """A scalar of the runs: lines over a numeric x, else bars over the categories."""
    y = Axis(title, log=log)
    numbers = grouping.numeric_x()
    if numbers is not None:
        panels = [
            Panel(facet, _over_x(grouping, facet, numbers, column, scale, bound, y))
            for facet in evenly(grouping.facets)
        ]
        return fit(panels)
    if len(grouping.categories) == 1:
        return fit([Panel("", _by_scheme(grouping, column, scale, bound, y))])
    return fit([Panel("", _by_category(grouping, column, scale, bound, y))])


def _over_x(
    grouping: Grouping,
    facet: str,
    numbers: dict[str, float],
    column: str,
    scale: float,
    bound: str | None,
    y: Axis,
) -> Lines:
    categories = [category for category in grouping.categories if category.facet == facet]
    categories.sort(key=lambda category: numbers[category.x])
    styles = palette.styles(grouping.series)
    curves = []
    for series in chosen(grouping.series):
        cells = [(category, grouping.rows(category, series)) for category in categories]
        means = [(numbers[c.x], _mean(rows, column, scale)) for c, rows in cells if rows]
        points = {x: mean for x, mean in means if mean is not None}
        curves.append(
            Curve(
                series,
                styles[series],
                tuple(points),
                tuple(mean.value for mean in points.values()),
                tuple(mean.half for mean in points.values()),
                markers=True,
            )
        )
    if bound is not None:
        levels = [(numbers[c.x], _level(grouping, c, bound, scale)) for c in categories]
        xs, ys = zip(*((x, level) for x, level in levels if level is not None), strict=True)
        curves.append(Curve("lower bound", palette.BOUND, xs, ys))
    ticks = tuple((numbers[category.x], category.x) for category in categories)
    values = [value for value, _ in ticks]
    x = Axis(
        categories[0].x_name, log=min(values) > 0 and max(values) / min(values) > 8, ticks=ticks
    )
    return Lines(tuple(curves), x, y)


def _by_scheme(grouping: Grouping, column: str, scale: float, bound: str | None, y: Axis) -> Bars:
    """One category only: the schemes themselves are the bars."""
    category = grouping.categories[0]
    styles = palette.styles(grouping.series)
    means = [_mean(grouping.rows(category, series), column, scale) for series in grouping.series]
    bars = BarSeries(
        "",
        tuple(styles[series] for series in grouping.series),
        tuple(mean.value if mean else None for mean in means),
        tuple(mean.half if mean else None for mean in means),
    )
    level = _level(grouping, category, bound, scale) if bound else None
    levels = (level,) * len(grouping.series) if level is not None else ()
    # A logarithmic axis is for comparing categories; here bars start at zero.
    return Bars(tuple(grouping.series), (bars,), Axis(""), replace(y, log=False), levels)


def _by_category(grouping: Grouping, column: str, scale: float, bound: str | None, y: Axis) -> Bars:
    styles = palette.styles(grouping.series)
    categories = grouping.categories
    bars = []
    for series in chosen(grouping.series):
        means = [_mean(grouping.rows(category, series), column, scale) for category in categories]
        bars.append(
            BarSeries(
                series,
                (styles[series],) * len(categories),
                tuple(mean.value if mean else None for mean in means),
                tuple(mean.half if mean else None for mean in means),
            )
        )
    levels = tuple(_level(grouping, c, bound, scale) for c in categories) if bound else ()
    only_x = all(not category.facet for category in categories)
    labels = tuple(category.x if only_x else category.label for category in categories)
    x = Axis(categories[0].x_name if only_x else "")
    return Bars(labels, tuple(bars), x, y, levels)


def _mean(rows: Sequence[Row], column: str, scale: float) -> stats.Mean | None:
    return stats.mean([row[column] / scale for row in rows]) if rows else None


def _level(grouping: Grouping, category: Category, column: str, scale: float) -> float | None:
    """The bound of a category: that of the first series that finished there."""
    cells = (grouping.rows(category, series) for series in grouping.series)
    rows = next((rows for rows in cells if rows), None)
    mean = _mean(rows, column, scale) if rows else None
    return mean.value if mean else None


def _fct(grouping: Grouping, flows: pl.LazyFrame) -> list[Figure]:
    """How long messages took: one curve a scheme, all seeds together."""
    panels = []
    for category in evenly(grouping.categories):
        samples = {
            series: _times(flows, grouping.rows(category, series))
            for series in chosen(grouping.series)
        }
        panels.append(Panel(category.label, _cdf(grouping, samples)))
    caption = "Share of messages that completed within a time, all seeds together."
    caption += remark(grouping)
    return [Figure("fct", "Flow completion times", caption, fit(panels))]


def _times(flows: pl.LazyFrame, rows: Sequence[Row]) -> list[float]:
    """At most `_CDF_POINTS` quantiles of the completion times, in seconds, ends included."""
    import polars as pl

    runs = [row["run"] for row in rows]
    times = flows.filter(pl.col("run").is_in(runs)).select("fct_s").collect()["fct_s"].sort()
    count = len(times)
    if count <= _CDF_POINTS:
        return times.to_list()
    picks = [round(i * (count - 1) / (_CDF_POINTS - 1)) for i in range(_CDF_POINTS)]
    return times.gather(picks).to_list()


def _cdf(grouping: Grouping, samples: dict[str, list[float]]) -> Lines:
    everything = [time for times in samples.values() for time in times]
    scale, unit = time_unit(everything)
    styles = palette.styles(grouping.series)
    curves = []
    for series, times in samples.items():
        if times:
            shares = tuple((i + 1) / len(times) for i in range(len(times)))
            x = (times[0] / scale, *(time / scale for time in times))
            curves.append(Curve(series, styles[series], x, (0.0, *shares)))
    # A few messages that finish at once (within a rack) are no reason to bend the axis.
    low = min((times[len(times) // 20] for times in samples.values() if times), default=0.0)
    log = min(everything) > 0 and wide([low, max(everything)])
    x_axis = Axis(f"flow completion time [{unit}]", log=log)
    return Lines(tuple(curves), x_axis, Axis("share of messages", limits=(0.0, 1.0)))
