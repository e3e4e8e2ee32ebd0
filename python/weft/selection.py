"""What to leave out of a figure so that it stays readable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from weft.groups import Grouping

MOST_SERIES = 8
MOST_PANELS = 4

T = TypeVar("T")


def chosen(series: Sequence[str]) -> list[str]:
    """The series that a figure of curves or grouped bars shows: the first ones."""
    return list(series[:MOST_SERIES])


def evenly(items: Sequence[T], most: int = MOST_PANELS) -> list[T]:
    """At most `most` items, the first and the last among them, evenly apart."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def one_run(grouping: Grouping) -> str:
    """For captions of figures of single runs, which readers compare with means over seeds."""
    seed = f"seed {grouping.sample_seed}"
    several = max(map(len, grouping.cells.values())) > 1
    return f"one run, {seed}" + (", where the table has means over seeds" if several else "")


def remark(grouping: Grouping) -> str:
    """What a figure of panels leaves out, as a further sentence of its caption."""
    parts = []
    if len(grouping.series) > MOST_SERIES:
        parts.append(f"the first {MOST_SERIES} of {len(grouping.series)} schemes")
    if len(grouping.categories) > MOST_PANELS:
        parts.append(f"{MOST_PANELS} of {len(grouping.categories)} combinations")
    return f" Shown: {' and '.join(parts)}." if parts else ""
