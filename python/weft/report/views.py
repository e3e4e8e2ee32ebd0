"""The results of one experiment in the shape that tables, figures and summaries share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report import printed_comparison
from weft.report.figures.model import Mark
from weft.report.grouping import Category, Grouping, group
from weft.report.printed_comparison import Comparison
from weft.study import best_value
from weft.study.inputs import Experiment
from weft.study.selection import combination
from weft.study.settings import Settings

if TYPE_CHECKING:
    from weft.study.study import Study

Marks = Mapping[tuple[Category, str], Mark]


@dataclass(frozen=True)
class View:
    """The results of one experiment in the shape in which they are shown."""

    settings: Settings
    grouping: Grouping
    """The rows of the table; with `[best]` only the best value of each combination."""
    curve: Grouping | None = None
    """With `[best]`: all values, with the searched key on the x axis."""
    comparisons: list[Comparison] = field(default_factory=list)
    stalled: Sequence[Row] = ()
    """The runs that stalled: their `scheme`, `seed` and `swept`, and why (`stalled`)."""

    def marks(self, column: str, grouping: Grouping) -> Marks:
        """Where printed values of a column belong among the measured ones."""
        values = [one for one in self.settings.printed if one.kind == "value"]
        printed = {
            one.selections[0].combination: one
            for one in values
            # At the best value: that is a place in the table, but none on the curve.
            if one.column == column and (grouping is self.grouping or not one.selections[0].at_best)
        }
        marks = {}
        for cell, rows in grouping.cells.items():
            one = printed.get(combination(rows[0]["swept"]))
            if one is not None:
                half = one.sd if one.sd is not None else (one.high - one.low) / 2
                marks[cell] = Mark((one.low + one.high) / 2, half)
        return marks


def of_study(
    whole: Study, rows_of: Callable[[Experiment], Sequence[Row]]
) -> Iterator[tuple[Experiment, Sequence[Row], View]]:
    """Each experiment of a study, with its rows and their view.

    Those are left out of which nothing has finished, and nothing has stalled.
    """
    for experiment in whole.experiments:
        rows, stalled = rows_of(experiment), whole.stalled_runs(experiment)
        if rows or stalled:
            yield experiment, rows, of(experiment, rows, stalled)


def of(experiment: Experiment, rows: Sequence[Row], stalled: Sequence[Row] = ()) -> View:
    """The view of an experiment's rows, and of its runs that stalled."""
    settings = experiment.settings
    if not rows:
        return View(settings, group(stalled, settings.x, settings.series), stalled=stalled)
    settings.check(rows[0])
    everything = _in_run_order(experiment, rows, stalled) if stalled else rows
    if settings.best is None:
        grouping = group(everything, settings.x, settings.series)
        compared = printed_comparison.compare(settings, rows, {})
        return View(settings, grouping, None, compared, stalled)
    over = settings.best.over
    choice = best_value.choose(rows, settings.best)
    shown = best_value.at_best(everything, choice, settings.best)
    x = None if settings.x == over else settings.x
    return View(
        settings,
        group(shown, x, tuple(key for key in settings.series if key != over)),
        group(everything, over, settings.series),
        printed_comparison.compare(settings, rows, choice),
        stalled,
    )


def _in_run_order(experiment: Experiment, rows: Sequence[Row], stalled: Sequence[Row]) -> list[Row]:
    """Both, so that a stall does not change which scheme and which case come first."""
    places = {
        (combination(spec["swept"]), spec["seed"]): place
        for place, spec in enumerate(experiment.runs)
    }
    return sorted([*rows, *stalled], key=lambda row: places[combination(row["swept"]), row["seed"]])
