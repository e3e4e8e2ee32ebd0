"""The figure of flow completion times: cumulative distributions, one curve a scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report.figures import palette
from weft.report.figures.axes import needs_log, with_limits
from weft.report.figures.model import Axis, Curve, Figure, Lines, Panel
from weft.report.figures.subset import evenly_spaced, first_series, omitted
from weft.report.grouping import Grouping
from weft.units import time_unit

if TYPE_CHECKING:
    import polars as pl

_CDF_POINTS = 400


def figures(grouping: Grouping, flows: pl.LazyFrame) -> list[Figure]:
    """One panel a category, all seeds together.

    Nothing where no message crossed the fabric, or there are too many to keep each.
    """
    panels = []
    for category in evenly_spaced(grouping.categories):
        samples = {
            series: _times(flows, grouping.rows(category, series))
            for series in first_series(grouping.series)
        }
        if any(samples.values()):
            panels.append(Panel(category.label, _cdf(grouping, samples)))
    if not panels:
        return []
    caption = "Share of messages that completed within a time, all seeds together."
    shown = omitted(grouping)
    return [Figure("fct", "Flow completion times", caption, with_limits(panels), shown)]


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
            curves.append(Curve(series, styles[series], x, (0.0, *shares), shape="steps"))
    # A few messages that finish at once (within a rack) are no reason to bend the axis.
    low = min((times[len(times) // 20] for times in samples.values() if times), default=0.0)
    log = min(everything) > 0 and needs_log([low, max(everything)])
    x_axis = Axis(f"flow completion time [{unit}]", log=log)
    return Lines(tuple(curves), x_axis, Axis("share of messages", limits=(0.0, 1.0)))
