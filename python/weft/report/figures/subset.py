"""Which series and panels a figure shows, so that it stays readable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from weft.report.grouping import Grouping

MOST_SERIES = 12
MOST_PANELS = 4
MOST_MEASURED = 6
"""Panels of a figure that shows means: its curves are simpler than those of single runs."""

T = TypeVar("T")


def first_series(series: Sequence[str]) -> list[str]:
    """The series that a figure of curves or grouped bars shows: the first ones."""
    return list(series[:MOST_SERIES])


def evenly_spaced(items: Sequence[T], most: int = MOST_PANELS) -> list[T]:
    """At most `most` items, the first and the last among them, evenly apart."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def of_one_run(grouping: Grouping) -> str:
    """For captions of figures of single runs, which readers compare with means over seeds."""
    seed = f"seed {grouping.sample_seed}"
    several = max(map(len, grouping.cells.values())) > 1
    return f"one run, {seed}" + ("; the table shows means over seeds" if several else "")


def omitted(grouping: Grouping) -> str:
    """Of what a figure of panels shows a part: its `Figure.shown`."""
    return _shown(grouping, len(grouping.categories), MOST_PANELS, "combinations")


def omitted_means(grouping: Grouping) -> str:
    """The same for a figure of means: curves in a panel a facet, or bars side by side."""
    lines = grouping.numeric_x() is not None
    if not lines and len(grouping.categories) == 1:
        return ""
    return _shown(grouping, len(grouping.facets) if lines else 1, MOST_MEASURED, "cases")


def _shown(grouping: Grouping, panels: int, most: int, what: str) -> str:
    parts = []
    if len(grouping.series) > MOST_SERIES:
        many = "schemes" if grouping.series_name == "scheme" else "series"
        parts.append(f"the first {MOST_SERIES} of {len(grouping.series)} {many}")
    if panels > most:
        parts.append(f"{most} of {panels} {what}")
    return shown(parts)


def shown(parts: Sequence[str]) -> str:
    """The sentence that says of which parts a figure is; empty if it is of all."""
    return f"Shown: {' and '.join(parts)}." if parts else ""
