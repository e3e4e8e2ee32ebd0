"""Printed results compared with measured ones, in numbers and in words.

Nothing here fails because of a disagreement. Ratios are of the means that are shown, and as
differences and doubts about an order they are paired seed by seed (`weft.study.averages`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from weft._types import Row
from weft.report import column_text
from weft.study import averages, best_value, stats
from weft.study.printed import Selection, Statement
from weft.study.selection import combination
from weft.study.settings import Settings

_ROUNDING = 1e-9
"""A difference that is a tolerance but for rounding is within it."""


@dataclass(frozen=True)
class Comparison:
    """A printed result and the measured one."""

    statement: Statement
    what: str
    """The runs, e.g. `large, ecmp`."""
    printed: str
    """The printed result as text."""
    measured: stats.Mean | None
    """None if nothing finished, and for an order."""
    difference: float | None
    """Measured minus printed; from the nearer end of a range, 0 within it."""
    agrees: bool | None
    """None without a tolerance, or without a result."""
    words: str
    means: tuple[float | None, ...] = field(default=())
    """For an order: the measured mean of each selection."""

    @property
    def name(self) -> str:
        """The title of the column."""
        return column_text.title_of(self.statement.column)

    def as_json(self) -> dict[str, Any]:
        """For `summary.json`; docs/experiments.md says what each key is."""
        one, mean = self.statement, self.measured
        found: dict[str, Any] = {
            "source": one.source,
            "kind": one.kind,
            "column": one.column,
            "of": [selection.where for selection in one.selections],
        }
        if one.kind == "order":
            found |= {"levels": list(one.levels), "measured": list(self.means)}
        else:
            found |= {
                "printed": one.low if one.low == one.high else [one.low, one.high],
                "printed_sd": one.sd,
                "measured": mean.value if mean else None,
                "sd": mean.sd if mean else None,
                "half_95": mean.half if mean else None,
                "seeds": mean.samples if mean else 0,
                "difference": self.difference,
            }
        return found | {"agrees": self.agrees, "words": self.words}


def compare(settings: Settings, rows: Sequence[Row], choice: best_value.Choice) -> list[Comparison]:
    """Compare every printed result of an experiment with its rows.

    `choice` are the best values of the key that is searched, if one is.
    """

    def of(selection: Selection) -> list[Row]:
        return [row for row in rows if _is_of(row, selection, settings, choice)]

    return [
        _comparison(one, [of(selection) for selection in one.selections])
        for one in settings.printed
    ]


def _is_of(row: Row, selection: Selection, settings: Settings, choice: best_value.Choice) -> bool:
    if not selection.at_best or settings.best is None:
        return combination(row["swept"]) == selection.combination
    mine = combination(row["swept"], settings.best.over) == selection.combination
    return mine and best_value.is_best(row["swept"], choice, settings.best)


def _comparison(one: Statement, cells: Sequence[Sequence[Row]]) -> Comparison:
    """`cells` are the rows of each of its selections."""
    if one.kind == "order":
        return _ordered(one, cells)
    what, names = labels(one)
    if one.kind == "value":
        return _against(one, what, averages.of(one.column, cells[0]) if cells[0] else None)
    is_ratio = one.kind == "ratio"
    sign = "/" if is_ratio else "\N{MINUS SIGN}"
    what = ", ".join(part for part in (f"{names[0]} {sign} {names[1]}", what) if part)
    compared = averages.ratio if is_ratio else averages.difference
    return _against(one, what, compared(one.column, cells[0], cells[1]))


def labels(one: Statement) -> tuple[str, list[str]]:
    """What the selections of a statement have in common, and what each is called apart from it."""
    listed = [dict(selection.values) for selection in one.selections]
    shared = {
        key: value
        for key, value in listed[0].items()
        if all(values.get(key) == value for values in listed)
    }
    names = [
        ", ".join(value for key, value in values.items() if len(listed) == 1 or key not in shared)
        for values in listed
    ]
    common = ", ".join(shared.values())
    return (common or "all runs" if len(listed) == 1 else common), names


def shown(one: Statement, value: float, half: float | None = None) -> str:
    """A number of a statement: in the unit of its column, a ratio without."""
    return column_text.shown("" if one.kind == "ratio" else one.column, value, half)


def _against(one: Statement, what: str, mean: stats.Mean | None) -> Comparison:
    column = "" if one.kind == "ratio" else one.column
    ends = [column_text.exact(column, end) for end in dict.fromkeys((one.low, one.high))]
    printed = " to ".join(ends) + (f" ± {column_text.exact(column, one.sd)}" if one.sd else "")
    if mean is None:
        return Comparison(one, what, printed, None, None, None, "not measured: no run finished")
    difference = mean.value - min(max(mean.value, one.low), one.high)
    agrees, words = _verdict(one, difference)
    return Comparison(one, what, printed, mean, difference, agrees, words)


def _verdict(one: Statement, difference: float) -> tuple[bool | None, str]:
    """Whether a difference is tolerable, and the words for it."""
    off = abs(difference)
    if one.within is not None:
        agrees = off <= one.within + _ROUNDING
        tolerance = column_text.exact("" if one.kind == "ratio" else one.column, one.within)
        return agrees, f"{_word(agrees)} (tolerance {tolerance})"
    if one.sd:
        most = 1.0 if one.sds is None else one.sds
        agrees = off <= most * one.sd + _ROUNDING
        many = f"{off / one.sd:.1f} printed sd away"
        return agrees, f"{_word(agrees)} ({many})"
    if one.low != one.high:
        agrees = off <= _ROUNDING
        return agrees, "agrees (within the range)" if agrees else "differs (outside the range)"
    return None, "no tolerance given"


def _word(agrees: bool) -> str:
    return "agrees" if agrees else "differs"


def _ordered(one: Statement, cells: Sequence[Sequence[Row]]) -> Comparison:
    """Every two of different levels: whether the one that comes first is the better one."""
    what, names = labels(one)
    means = tuple(averages.of(one.column, rows).value if rows else None for rows in cells)
    wrong, pairs = [], 0
    for left, right in combinations(range(len(names)), 2):
        before, after = means[left], means[right]
        if one.levels[left] == one.levels[right] or before is None or after is None:
            continue
        pairs += 1
        lead = before - after if one.falling else after - before
        if lead < -(one.within or 0.0) - _ROUNDING:
            doubt = _doubt(averages.difference(one.column, cells[left], cells[right]))
            wrong.append(f"{names[right]} before {names[left]}{doubt}")
    printed = _printed_order(one, names)
    if not pairs or None in means:
        missing = [name for name, mean in zip(names, means, strict=True) if mean is None]
        words = f"not measured: {', '.join(missing)}"
        return Comparison(one, what, printed, None, None, None, words, means)
    words = f"differs ({'; '.join(wrong)})" if wrong else "agrees (the same order)"
    return Comparison(one, what, printed, None, None, not wrong, words, means)


def _doubt(gap: stats.Mean | None) -> str:
    """A remark if the seeds leave open which of two is the smaller one."""
    unsure = gap is not None and gap.includes(0.0)
    return ", within the confidence interval" if unsure else ""


def _printed_order(one: Statement, names: Sequence[str]) -> str:
    levels: dict[int, list[str]] = {}
    for level, name in zip(one.levels, names, strict=True):
        levels.setdefault(level, []).append(name)
    return (" > " if one.falling else " < ").join(" = ".join(same) for same in levels.values())


def agreement(comparisons: Sequence[Comparison]) -> str:
    """How many agree, for a line under the table."""
    judged = [one for one in comparisons if one.agrees is not None]
    if not judged:
        return ""
    return f"{sum(bool(one.agrees) for one in judged)} of {len(judged)} agree"
