"""Which figures an experiment gets, and what they show.

Figures hold at most `selection.MOST_SERIES` series and `MOST_PANELS` panels; where a sweep has
more, a figure shows a choice and its caption says so. The table has everything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.report import overview
from weft.report.figures import collectives, fct, goodput, link_load, metrics, queues
from weft.report.figures.fabric import of_results
from weft.report.figures.model import Figure

if TYPE_CHECKING:
    from weft.report.views import View
    from weft.study.inputs import Experiment
    from weft.study.study import Results


def of_experiment(experiment: Experiment, results: Results, view: View) -> list[Figure]:
    """All figures of an experiment, their names made distinct by the experiment's."""
    grouping, wanted = view.grouping, view.settings.figures
    figures = metrics.figures(view) if view.settings.overview is None else [overview.figure(view)]
    figures += fct.figures(grouping, results.flows) if "fct" in wanted else []
    figures += collectives.figures(grouping, results.collectives) if "collectives" in wanted else []
    figures += queues.figures(grouping, results.series) if "queues" in wanted else []
    figures += goodput.figures(grouping, results.series) if "goodput" in wanted else []
    figures += of_results.figures(experiment, grouping, results.links) if "fabric" in wanted else []
    figures += link_load.figures(grouping, results.links) if "links" in wanted else []
    return [replace(figure, name=f"{experiment.name}-{figure.name}") for figure in figures]
