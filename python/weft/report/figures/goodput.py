"""The figure of goodput over time: payload that all hosts together receive, from `probe.goodput`.

Long series are cut into bins of which the mean is shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report.figures import palette
from weft.report.figures.axes import fit
from weft.report.figures.model import Axis, Curve, Figure, Lines, Panel
from weft.report.figures.queues import GOODPUT
from weft.report.figures.subset import chosen, evenly, one_run, remark
from weft.report.figures.time_series import with_units
from weft.report.grouping import Category, Grouping
from weft.units import rate_unit

if TYPE_CHECKING:
    import polars as pl

_POINTS = 300


def figures(grouping: Grouping, series: pl.LazyFrame) -> list[Figure]:
    """One panel a category, one curve a scheme; nothing where nothing was sampled."""
    panels = []
    for category in evenly(grouping.categories):
        curves = _curves(grouping, category, series)
        if curves:
            panels.append(Panel(category.label, Lines(tuple(curves), Axis(""), Axis(""))))
    if not panels:
        return []
    caption = f"Payload that all hosts together receive; {one_run(grouping)}." + remark(grouping)
    return [
        Figure(
            "goodput",
            "Total goodput over time",
            caption,
            fit(with_units(panels, "goodput", rate_unit)),
        )
    ]


def _curves(grouping: Grouping, category: Category, series: pl.LazyFrame) -> list[Curve]:
    styles = palette.styles(grouping.series)
    curves = []
    for name in chosen(grouping.series):
        run = grouping.sample(category, name)
        times, rates = _rates(series, run) if run else ([], [])
        if times:
            # Solid: a dash pattern over a jagged line reads as noise.
            style = replace(styles[name], dash="solid")
            curves.append(Curve(name, style, tuple(times), tuple(rates)))
    return curves


def _rates(series: pl.LazyFrame, row: Row) -> tuple[list[float], list[float]]:
    """Seconds and bits per second, in at most `_POINTS` bins.

    A sample is what came in the interval before it, so a bin is shown where it ends.
    """
    import polars as pl

    mine = series.filter((pl.col("run") == row["run"]) & (pl.col("kind") == GOODPUT))
    samples = mine.select("time_s", "bytes").sort("time_s").collect()
    if len(samples) < 2:
        return [], []
    interval = samples["time_s"][1] - samples["time_s"][0]
    # The first sample, at time zero, has no interval before it.
    samples = samples.slice(1)
    size = -(-len(samples) // _POINTS)
    bins = pl.int_range(pl.len()) // size
    binned = samples.group_by(bins.alias("bin"), maintain_order=True).agg(
        pl.col("time_s").last(), (8 * pl.col("bytes").mean() / interval).alias("rate")
    )
    return [0.0, *binned["time_s"].to_list()], [0.0, *binned["rate"].to_list()]
