"""Figures of queues over time, from the probes of a run.

Probes that are alike (the uplinks of the leaves) are shown as one: the largest of them at
every moment. Long series are cut into bins of which the largest sample is shown, so that no peak is
lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report.figures.model import Figure
from weft.report.figures.subset import of_one_run, omitted
from weft.report.figures.time_series import panels
from weft.report.grouping import Grouping
from weft.units import bytes_unit

if TYPE_CHECKING:
    import polars as pl

_POINTS = 600
_MOST_FIGURES = 4
GOODPUT = "goodput"
"""The kind of samples of what hosts receive."""
_QUEUES = ("port", "switch")
"""The kinds of samples of what waits somewhere."""


def figures(grouping: Grouping, series: pl.LazyFrame) -> list[Figure]:
    """One figure for each class of probes, one panel a category, one curve a scheme."""
    import polars as pl

    sampled = series.filter(pl.col("kind").is_in(_QUEUES))
    names = sampled.select("name", "kind").unique(maintain_order=True).collect()
    classes: dict[tuple[str, ...], list[str]] = {}
    for name, kind in names.iter_rows():
        classes.setdefault(_class(name, kind), []).append(name)
    drawn = []
    for number, probes in enumerate(list(classes.values())[:_MOST_FIGURES]):
        figure = _figure(grouping, sampled, probes)
        if figure is not None:
            drawn.append(replace(figure, name=f"queue-{number + 1}"))
    return drawn


def _class(name: str, kind: str) -> tuple[str, ...]:
    """Ports between the same two tiers are alike; so are switches of a tier."""
    return (kind, *(_tier(end) for end in name.split(" -> ")))


def _title(probes: Sequence[str]) -> str:
    """What the probes, all alike, are: by name if there is one, else by tier."""
    ends = [
        sorted(set(side)) for side in zip(*(name.split(" -> ") for name in probes), strict=True)
    ]
    names = [side[0] if len(side) == 1 else f"any {_tier(side[0])}" for side in ends]
    return f"Queue {names[0]} → {names[1]}" if len(names) == 2 else f"Buffer of {names[0]}"


def _tier(name: str) -> str:
    return re.sub(r"[-0-9#.]+$", "", re.sub(r"#.*$", "", name))


def _figure(grouping: Grouping, series: pl.LazyFrame, probes: Sequence[str]) -> Figure | None:
    drawn = panels(grouping, lambda row: _samples(series, row, probes), "queue", bytes_unit)
    if not drawn:
        return None
    what = "Over time" if len(probes) == 1 else f"The largest of {len(probes)} at every time"
    caption = f"{what}; {of_one_run(grouping)}. Short peaks are kept where samples are left out."
    return Figure("queue", _title(probes), caption, drawn, omitted(grouping))


def _samples(
    series: pl.LazyFrame, row: Row, probes: Sequence[str]
) -> tuple[list[float], list[float]]:
    """Seconds and bytes of the probes' largest, in at most `_POINTS` bins."""
    import polars as pl

    mine = series.filter((pl.col("run") == row["run"]) & pl.col("name").is_in(list(probes)))
    largest = mine.group_by("time_s").agg(pl.col("bytes").max()).sort("time_s").collect()
    size = -(-len(largest) // _POINTS) or 1
    bins = pl.int_range(pl.len()) // size
    thinned = largest.group_by(bins.alias("bin"), maintain_order=True).agg(
        pl.col("time_s").first(), pl.col("bytes").max().cast(pl.Float64)
    )
    return thinned["time_s"].to_list(), thinned["bytes"].to_list()
