"""The figure of goodput over time: payload that all hosts together receive, from `probe.goodput`.

Long series are cut into bins of which the mean is shown.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report.figures.model import Figure
from weft.report.figures.queues import GOODPUT
from weft.report.figures.subset import of_one_run, omitted
from weft.report.figures.time_series import panels
from weft.report.grouping import Grouping
from weft.units import rate_unit

if TYPE_CHECKING:
    import polars as pl

_POINTS = 300


def figures(grouping: Grouping, series: pl.LazyFrame) -> list[Figure]:
    """One panel a category, one curve a scheme; nothing where nothing was sampled."""
    drawn = panels(grouping, partial(_rates, series), "goodput", rate_unit)
    if not drawn:
        return []
    caption = f"Payload that all hosts together receive; {of_one_run(grouping)}."
    return [Figure("goodput", "Total goodput over time", caption, drawn, omitted(grouping))]


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
