"""The picture of an experiment's fabric in its report: with the load of one of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.report.figures import link_load
from weft.report.figures.fabric import network, picture
from weft.report.figures.model import Figure
from weft.report.figures.subset import of_one_run
from weft.report.grouping import Grouping

if TYPE_CHECKING:
    import polars as pl

    from weft.study.inputs import Experiment

_MOST_PORTS = 1 << 21
"""A fabric of more takes longer to sum up than all other figures to draw."""


def figures(experiment: Experiment, grouping: Grouping, links: pl.LazyFrame) -> list[Figure]:
    """The fabric as the reference scheme leaves it, in the last case; none if it is too large."""
    import polars as pl

    category = grouping.categories[-1]
    row = grouping.sample(category, grouping.reference)
    specs = {spec["key"]: spec for spec in experiment.runs}
    if row is None or row["key"] not in specs:
        return []
    spec = specs[row["key"]]
    mine = links.filter(pl.col("run") == row["run"]).sort("port").select("utilisation")
    load = mine.collect()["utilisation"].to_numpy().astype(np.float64)
    if not len(load) or len(load) > _MOST_PORTS:
        return []
    net = network.of(spec["experiment"], spec["seed"], load)
    case = f", {category.label}" if category.label else ""
    caption = (
        f"Share of each link's capacity that was used until the last packet, in its busier "
        f"direction, under {grouping.reference}{case}; {of_one_run(grouping)}."
    )
    title = f"The fabric: {picture.size(net)}"
    return [picture.figure(net, "fabric", title, caption, link_load.scale_of(grouping, links))]
