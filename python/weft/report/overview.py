"""One table and one heat map of all scenarios: one row a series, one column a scenario.

An experiment asks for it with `overview` in `[report]`. Cells are means over seeds of the first of
`report.columns`; the last columns are their geometric mean and, for each column that `overview`
names, the largest value over all scenarios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft._types import Row
from weft.report import column_text, tables
from weft.report.figures.axes import case_axis
from weft.report.figures.model import Axis, Figure, HeatMap, Panel
from weft.report.grouping import Category, Grouping
from weft.report.tables import Line, Section, Table
from weft.report.usual_columns import Cell
from weft.report.views import View
from weft.study import averages
from weft.units import significant

_WORST = 10.0
"""Beyond this all colours of the heat map are the same."""
_TICKS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_MISSING = "\N{EN DASH}"


def table_of(view: View, wanted: int) -> Table:
    """The table of an experiment that has `wanted` runs: this one if it asks for it."""
    usual = view.settings.overview is None or not view.grouping.cells
    return tables.of(view, wanted) if usual else table(view, wanted)


def table(view: View, wanted: int) -> Table:
    """One line a series; `wanted` is the number of runs that the experiment has."""
    grouping, column = view.grouping, _column(view)
    extras = view.settings.overview or ()
    name = column_text.name_of(column)
    heads = [(c.label or name, f"{name}: {c.label}") for c in grouping.categories]
    heads += [("mean", f"Geometric mean of {name} over all scenarios")]
    heads += [(column_text.title_of(one), f"{one}: maximum over all scenarios") for one in extras]
    lines = []
    for series in grouping.series:
        means = _means(grouping, series, column)
        cells = [_cell(mean) for mean in [*means, _geometric(means)]]
        rows = [row for category in grouping.categories for row in grouping.rows(category, series)]
        lines.append(Line(series, cells + [_most(one, rows) for one in extras]))
    everything = [row for cell in grouping.cells.values() for row in cell]
    counts = [len(cell) for cell in grouping.cells.values()]
    hosts = max(row["hosts"] for row in everything)
    ranks = max(row.get("ranks") or 0 for row in everything)
    stalled = tables.stalled_in(grouping)
    section = Section(Category(""), hosts, ranks, (min(counts), max(counts)), None, lines, stalled)
    return Table(
        columns=[title for title, _ in heads],
        meanings=[meaning for _, meaning in heads],
        sections=[section],
        runs=len(everything),
        wanted=wanted,
        series_name=grouping.series_name,
        notes=_notes(column, extras, len(grouping.categories)),
        fidelities=tables.fidelities_of(everything),
    )


def _notes(column: str, extras: Sequence[str], mean: int) -> dict[int, str]:
    """What the numbers are, by a column that has them: `mean` is the place of that of means."""
    name = column_text.name_of(column)
    what = f"{name} (completion time / lower bound)" if column == "slowdown" else name
    notes = {0: f"in each scenario: {what}", mean: "mean: geometric mean over all scenarios"}
    titles = ", ".join(map(column_text.title_of, extras))
    return notes | ({mean + 1: f"{titles}: largest of all scenarios"} if extras else {})


def figure(view: View) -> Figure:
    """The heat map: light is good, on a logarithmic scale."""
    grouping, column = view.grouping, _column(view)
    name = column_text.name_of(column)
    values = tuple(tuple(_means(grouping, series, column)) for series in grouping.series)
    texts = tuple(tuple(_text(value) for value in row) for row in values)
    known = [value for row in values for value in row if value is not None]
    top = min(_WORST, max(known, default=1.0))
    low = min([1.0, *known])
    ticks = tuple((tick, f"{tick:g}") for tick in _TICKS if low <= tick <= top)
    keys, scenarios = case_axis(grouping)
    plot = HeatMap(
        rows=tuple(grouping.series),
        columns=scenarios,
        values=values,
        x=Axis(keys),
        y=Axis(grouping.series_name),
        scale=Axis(name, log=True, limits=(low, max(top, 1.01 * low)), ticks=ticks),
        texts=texts,
    )
    seeds = max(len(cell) for cell in grouping.cells.values())
    over = "one seed" if seeds == 1 else f"mean of {seeds} seeds"
    caption = f"{name.capitalize()} of every {grouping.series_name} in every scenario, {over}."
    if max(known, default=1.0) > _WORST:
        caption += f" Colours end at {_WORST:g}."
    return Figure("overview", f"{name.capitalize()} of all schemes", caption, (Panel("", plot),))


def _column(view: View) -> str:
    return view.settings.columns[0] if view.settings.columns else "slowdown"


def _means(grouping: Grouping, series: str, column: str) -> list[float | None]:
    cells = (grouping.rows(category, series) for category in grouping.categories)
    return [averages.of(column, rows).value if rows else None for rows in cells]


def _geometric(means: Sequence[float | None]) -> float | None:
    """Over the scenarios of a series; None if it misses one, or a value is not positive."""
    known = [mean for mean in means if mean is not None and mean > 0]
    if len(known) < len(means):
        return None
    return math.exp(math.fsum(map(math.log, known)) / len(known))


def _text(value: float | None) -> str:
    return _MISSING if value is None else significant(value, 3)


def _cell(value: float | None) -> Cell:
    return Cell(_text(value), math.inf if value is None else value)


def _most(column: str, rows: Sequence[Row]) -> Cell:
    """The largest value that some run tells; of words all that there are."""
    values = [row[column] for row in rows if row[column] is not None]
    if any(isinstance(value, str) for value in values):
        return Cell(", ".join(dict.fromkeys(map(str, values))), None)
    if not values and rows:
        return Cell(column_text.UNKNOWN, math.inf)
    most = max(values, default=0.0)
    return Cell(column_text.shown(column, most), most)
