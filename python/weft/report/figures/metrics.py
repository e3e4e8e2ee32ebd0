"""Figures of result columns: completion times, losses, queues, any column of numbers.

Lines over a numeric x, else bars over the categories; means over seeds with their confidence
intervals, and printed values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft._types import Row
from weft.report import column_text, job_kinds
from weft.report.figures import palette
from weft.report.figures.axes import case_axis, key_axis, needs_log, runs_off, with_limits
from weft.report.figures.model import Axis, Bars, BarSeries, Curve, Figure, Lines, Mark, Panel, Spot
from weft.report.figures.subset import MOST_MEASURED, evenly_spaced, first_series, omitted_means
from weft.report.grouping import Category, Grouping, key_name
from weft.report.views import View
from weft.study import averages, best_value, stats
from weft.study.store import text_of
from weft.units import bytes_unit, time_unit


@dataclass(frozen=True)
class _Measure:
    """What a figure shows of each row."""

    column: str
    y: Axis
    scale: float = 1.0
    level: Callable[[Row], float] | None = None
    """A lower bound of it."""
    marks: Mapping[tuple[Category, str], Mark] = field(default_factory=dict)
    """Printed values."""

    def mean(self, rows: Sequence[Row]) -> stats.Mean | None:
        """Over seeds, in the unit of the axis; None without rows."""
        known = [row for row in rows if row[self.column] is not None]
        return averages.of(self.column, known).over(self.scale) if known else None

    def bound(self, grouping: Grouping, category: Category) -> float | None:
        """The bound of a category: that of the first series that finished there."""
        cells = (grouping.rows(category, series) for series in grouping.series)
        rows = next((rows for rows in cells if rows), None)
        if rows is None or self.level is None:
            return None
        return stats.mean([self.level(row) / self.scale for row in rows]).value

    def mark(self, category: Category, series: str) -> Mark | None:
        """The printed value of a cell."""
        found = self.marks.get((category, series))
        return None if found is None else Mark(found.value / self.scale, found.half / self.scale)


def figures(view: View) -> list[Figure]:
    """The figures of scalars that an experiment asks for, or the usual ones."""
    grouping, columns = view.grouping, view.settings.columns
    drawn = [_column(view, column) for column in columns]
    if not columns:
        drawn = [completion_times(grouping, view.marks("cct_s", grouping)), *_slowdown(view)]
        drawn += [_column(view, column) for column in _of_jobs(grouping)]
        drawn += [peak_queues(grouping)]
    if view.curve is not None and view.settings.best is not None:
        drawn += [_choice(view, view.settings.best.over)]
        searched = columns or (view.settings.best.of,)
        drawn += [_curve_of(view, view.curve, column) for column in searched]
    return [_told(figure) for figure in drawn if figure.panels]


def _told(figure: Figure) -> Figure:
    """With a word on intervals that run off the edge: they look as if they ended there."""
    if not runs_off(figure.panels):
        return figure
    return replace(figure, caption=f"{figure.caption} Intervals that meet the edge end beyond it.")


def _of_jobs(grouping: Grouping) -> list[str]:
    """The columns that tell most of jobs."""
    rows = [row for cell in grouping.cells.values() for row in cell]
    if job_kinds.communicate_only(rows):
        return ["busbw_gb_s"]
    return ["exposed_s"] if job_kinds.compute(rows) else []


def completion_times(
    grouping: Grouping, marks: Mapping[tuple[Category, str], Mark] | None = None
) -> Figure:
    """Completion times, with the bound."""
    values = [row["cct_s"] for rows in grouping.cells.values() for row in rows]
    scale, unit = time_unit(values)
    y = Axis(f"completion time [{unit}]", log=needs_log(values))
    iterations = job_kinds.compute([row for rows in grouping.cells.values() for row in rows])
    what = "Time of an iteration" if iterations else "Collective completion time"
    level = _levels("cct_s", grouping)
    bound = "; the dashed line is the lower bound" if level else ""
    caption = f"{what}, {_basis(grouping)}{bound}."
    measure = _Measure("cct_s", y, scale, level, marks or {})
    panels = _panels(grouping, measure)
    return Figure("cct", "Completion time", caption, panels, omitted_means(grouping))


def peak_queues(grouping: Grouping) -> Figure:
    """Peak queues; without panels if no packet ever waited."""
    told = [row["peak_queue_bytes"] for rows in grouping.cells.values() for row in rows]
    values = [] if None in told else told
    scale, unit = bytes_unit(values)
    measure = _Measure("peak_queue_bytes", Axis(f"peak queue [{unit}]"), scale)
    caption = f"The longest queue of any port, {_basis(grouping)}."
    panels = _panels(grouping, measure) if any(values) else ()
    return Figure("peak-queue", "Peak queue", caption, panels, omitted_means(grouping))


def _slowdown(view: View) -> list[Figure]:
    """Only where the bound differs: else it is the first figure again."""
    grouping = view.grouping
    bounds = {row["bound_s"] for rows in grouping.cells.values() for row in rows}
    marks = view.marks("slowdown", grouping)
    if len(bounds) < 2 and not marks:
        return []
    caption = f"Completion time / lower bound, {_basis(grouping)}; 1 is optimal."
    measure = _Measure("slowdown", Axis("slowdown"), marks=marks)
    panels = _panels(grouping, measure)
    return [Figure("slowdown", "Slowdown", caption, panels, omitted_means(grouping))]


def _column(view: View, column: str) -> Figure:
    """Any column of numbers, with what is printed of it; without panels if no run tells it."""
    grouping = view.grouping
    title = _capital(column_text.name_of(column))
    at = ""
    if view.settings.best is not None:
        at = f" at the best {key_name(view.settings.best.over)}"
    caption = f"{title}{at}, {_basis(grouping)}."
    if all(row[column] is None for rows in grouping.cells.values() for row in rows):
        return Figure(_file_name(column), title, caption, ())
    measure = _measure(grouping, column, view.marks(column, grouping))
    caption += _explained(measure)
    panels = _panels(grouping, measure)
    return Figure(_file_name(column), title + at, caption, panels, omitted_means(grouping))


def _curve_of(view: View, curve: Grouping, column: str) -> Figure:
    """A column over all values of the key that is searched."""
    title = f"{_capital(column_text.name_of(column))} over {key_name(curve.x_key or '')}"
    measure = _measure(curve, column, view.marks(column, curve))
    caption = f"{title}, {_basis(curve)}.{_explained(measure)}"
    panels = _panels(curve, measure)
    return Figure(f"{_file_name(column)}-curve", title, caption, panels, omitted_means(curve))


def _choice(view: View, over: str) -> Figure:
    """Which value was best; without panels if the values are no numbers."""
    grouping, name = view.grouping, key_name(over)
    title = f"Best {name}"
    rows = [row for cell in grouping.cells.values() for row in cell]
    if any(row[best_value.COLUMN] is None for row in rows):
        return Figure("best", title, "", ())
    column = column_text.name_of(view.settings.best.of if view.settings.best else "")
    caption = f"The {name} with the smallest mean {column}."
    places = sorted({(row[best_value.COLUMN], text_of(row["best"])) for row in rows})
    key, texts = key_axis(over, [text for _, text in places])
    ticks = tuple((value, text) for (value, _), text in zip(places, texts, strict=True))
    measure = _Measure(best_value.COLUMN, Axis(f"best {key}", ticks=ticks))
    panels = _panels(grouping, measure)
    return Figure("best", title, caption, panels, omitted_means(grouping))


def _measure(
    grouping: Grouping, column: str, marks: Mapping[tuple[Category, str], Mark]
) -> _Measure:
    told = (row[column] for rows in grouping.cells.values() for row in rows)
    values = [value for value in told if value is not None]
    scale, unit = column_text.unit_of(column, values)
    log = needs_log(values) and min(values) > 0
    y = Axis(column_text.axis_title(column, unit), log=log)
    return _Measure(column, y, scale, _levels(column, grouping), marks)


def _levels(column: str, grouping: Grouping) -> Callable[[Row], float] | None:
    """The lower bound, for completion times in some unit, where all series have the same."""
    if not grouping.shares_bounds:
        return None
    if column == "cct_s":
        return lambda row: float(row["bound_s"])
    if column == "normalised":
        return lambda row: float(row["normalised"] * row["bound_s"] / (row["cct_s"] or 1.0))
    return None


def _explained(measure: _Measure) -> str:
    parts = []
    if measure.level is not None:
        parts.append(" The dashed grey line is the lower bound.")
    if measure.marks:
        parts.append(" Stars are the values that the paper prints.")
    return "".join(parts)


def _basis(grouping: Grouping) -> str:
    counts = [len(rows) for rows in grouping.cells.values()]
    if max(counts) == 1:
        return "one seed"
    seeds = stats.seeds_text(min(counts), max(counts))
    return f"mean of {seeds} with 95 % confidence intervals"


def _panels(grouping: Grouping, measure: _Measure) -> tuple[Panel, ...]:
    """Lines over a numeric x, else bars over the categories."""
    numbers = grouping.numeric_x()
    if numbers is not None:
        panels = [
            Panel(facet, _over_x(grouping, facet, numbers, measure))
            for facet in evenly_spaced(grouping.facets, MOST_MEASURED)
        ]
        return with_limits(panels)
    if len(grouping.categories) == 1:
        return with_limits([Panel("", _by_series(grouping, measure))])
    return with_limits([Panel("", _by_category(grouping, measure))])


def _over_x(grouping: Grouping, facet: str, numbers: dict[str, float], measure: _Measure) -> Lines:
    categories = [category for category in grouping.categories if category.facet == facet]
    categories.sort(key=lambda category: numbers[category.x])
    styles = palette.styles(grouping.series)
    curves, spots = [], []
    for series in first_series(grouping.series):
        curve = _curve(grouping, categories, numbers, measure, series)
        curves.append(replace(curve, style=styles[series]))
        for category in categories:
            mark = measure.mark(category, series)
            if mark is not None:
                spots.append(Spot(series, styles[series], numbers[category.x], mark))
    if measure.level is not None:
        levels = [(numbers[c.x], measure.bound(grouping, c)) for c in categories]
        xs, ys = zip(*((x, level) for x, level in levels if level is not None), strict=True)
        curves.append(Curve("lower bound", palette.BOUND, xs, ys, markers="none"))
    title, texts = key_axis(grouping.x_key or "", [category.x for category in categories])
    values = [numbers[category.x] for category in categories]
    ticks = tuple(zip(values, texts, strict=True))
    log = min(values) > 0 and max(values) / min(values) > 8
    return Lines(tuple(curves), Axis(title, log=log, ticks=ticks), measure.y, tuple(spots))


def _curve(
    grouping: Grouping,
    categories: Sequence[Category],
    numbers: dict[str, float],
    measure: _Measure,
    series: str,
) -> Curve:
    cells = [(category, grouping.rows(category, series)) for category in categories]
    points = [(numbers[c.x], measure.mean(rows), _note(rows)) for c, rows in cells if rows]
    known = [(x, mean, note) for x, mean, note in points if mean is not None]
    return Curve(
        series,
        palette.BOUND,
        tuple(x for x, _, _ in known),
        tuple(mean.value for _, mean, _ in known),
        tuple(mean.half for _, mean, _ in known),
        markers="all",
        notes=tuple(note for _, _, note in known),
    )


def _by_series(grouping: Grouping, measure: _Measure) -> Bars:
    """One category only: the series themselves are the bars."""
    category = grouping.categories[0]
    styles = palette.styles(grouping.series)
    cells = [grouping.rows(category, series) for series in grouping.series]
    means = [measure.mean(rows) for rows in cells]
    bars = BarSeries(
        "",
        tuple(styles[series] for series in grouping.series),
        tuple(mean.value if mean else None for mean in means),
        tuple(mean.half if mean else None for mean in means),
        tuple(measure.mark(category, series) for series in grouping.series),
        tuple(_note(rows) for rows in cells),
    )
    level = measure.bound(grouping, category)
    levels = (level,) * len(grouping.series) if level is not None else ()
    # A logarithmic axis is for comparing categories; here bars start at zero.
    y = replace(measure.y, log=False)
    return Bars(tuple(grouping.series), (bars,), Axis(grouping.series_name), y, levels)


def _by_category(grouping: Grouping, measure: _Measure) -> Bars:
    styles = palette.styles(grouping.series)
    categories = grouping.categories
    bars = []
    for series in first_series(grouping.series):
        cells = [grouping.rows(category, series) for category in categories]
        means = [measure.mean(rows) for rows in cells]
        bars.append(
            BarSeries(
                series,
                (styles[series],) * len(categories),
                tuple(mean.value if mean else None for mean in means),
                tuple(mean.half if mean else None for mean in means),
                tuple(measure.mark(category, series) for category in categories),
                tuple(_note(rows) for rows in cells),
            )
        )
    bounds = tuple(measure.bound(grouping, category) for category in categories)
    levels = bounds if measure.level is not None else ()
    title, labels = case_axis(grouping)
    return Bars(labels, tuple(bars), Axis(title), measure.y, levels)


def _note(rows: Sequence[Row]) -> str:
    """What else is to be said of a cell: which value was best."""
    return f"at {text_of(rows[0]['best'])}" if rows and "best" in rows[0] else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _file_name(column: str) -> str:
    return {"cct_s": "cct", "peak_queue_bytes": "peak-queue"}.get(column, column)
