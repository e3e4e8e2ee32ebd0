"""Which figures an experiment gets, and what they show.

Figures hold at most `selection.MOST_SERIES` series and `MOST_PANELS` panels; where a sweep has
more, a figure shows a choice and its caption says so. The table has everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report import overview
from weft.report.figures import collectives, goodput, link_load, metrics, palette, queues
from weft.report.figures.axes import fit, wide
from weft.report.figures.model import Axis, Curve, Figure, Lines, Panel
from weft.report.figures.subset import chosen, evenly, remark
from weft.report.grouping import Grouping
from weft.units import time_unit

if TYPE_CHECKING:
    import polars as pl

    from weft.report.views import View
    from weft.study.inputs import Experiment
    from weft.study.study import Results

_CDF_POINTS = 400


def of_experiment(experiment: Experiment, results: Results, view: View) -> list[Figure]:
    """All figures of an experiment, their names made distinct by the experiment's."""
    grouping, wanted = view.grouping, view.settings.figures
    figures = metrics.figures(view) if view.settings.overview is None else [overview.figure(view)]
    figures += _fct(grouping, results.flows) if "fct" in wanted else []
    figures += collectives.figures(grouping, results.collectives) if "collectives" in wanted else []
    figures += queues.figures(grouping, results.series) if "queues" in wanted else []
    figures += goodput.figures(grouping, results.series) if "goodput" in wanted else []
    figures += link_load.figures(grouping, results.links) if "links" in wanted else []
    return [replace(figure, name=f"{experiment.name}-{figure.name}") for figure in figures]


def _fct(grouping: Grouping, flows: pl.LazyFrame) -> list[Figure]:
    """How long messages took: one curve a scheme, all seeds together.

    Nothing where no message crossed the fabric, or there are too many to keep each.
    """
    panels = []
    for category in evenly(grouping.categories):
        samples = {
            series: _times(flows, grouping.rows(category, series))
            for series in chosen(grouping.series)
        }
        if any(samples.values()):
            panels.append(Panel(category.label, _cdf(grouping, samples)))
    if not panels:
        return []
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
