"""What a comparison says: the best scheme, what it needs, what the reference loses, who stalls.

As fields, and as two sentences of the same (`text`). The numbers are those of the table: means over
seeds, differences of completion times paired by seed, with 95 % confidence intervals
(`weft.study.averages`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft._types import Loss, Needs, Row, Verdict, VerdictCase
from weft.report import job_kinds
from weft.report.grouping import Category, Grouping, group
from weft.report.usual_columns import AGAINST, NOT_SIGNIFICANT, NOTHING, against, is_significant
from weft.report.views import View
from weft.study import averages, stats
from weft.units import format_time, significant

_ALIKE = 0.0005
"""Smaller differences are zero in tables."""
_DOUBLE = 2.0
"""From here on a ratio says more than a percentage."""


@dataclass(frozen=True)
class _Case:
    """A combination of swept values in which two series or more ran, all of the same job."""

    category: Category
    cells: Mapping[str, Sequence[Row]]
    """The rows of each series, the fastest first; those that finished fewer seeds come after."""
    reference: str
    stalled: Mapping[str, int]
    """In how many seeds a series stalled, where it did."""

    @property
    def best(self) -> str:
        return next(iter(self.cells))

    @property
    def slowdown(self) -> float:
        """That of the best; not a number where runs do not tell."""
        return averages.of("slowdown", self.cells[self.best]).value

    @property
    def equals(self) -> list[str]:
        """What seeds do not tell apart from the best; one seed tells only what is the same."""
        found = {other: self.ratio(other) for other in list(self.cells)[1:]}
        return [
            other
            for other, own in found.items()
            if own is not None and (own.value == 1.0 or self.is_sure(other) is False)
        ]

    @property
    def loser(self) -> str:
        """The reference, or the slowest where that is the best."""
        others = [*list(self.cells)[1:], *(one for one in self.stalled if one not in self.cells)]
        return self.reference if self.reference in others else others[-1]

    @property
    def seeds(self) -> int:
        """The number of seeds, finished or not."""
        names = {*self.cells, *self.stalled}
        return max(len(self.cells.get(one, ())) + self.stalled.get(one, 0) for one in names)

    def ratio(self, series: str) -> stats.Mean | None:
        """The completion time of a series over the best; None where they have other seeds."""
        return against(self.cells.get(series, ()), self.cells[self.best])

    def pair(self, series: str) -> tuple[str, str]:
        """The best and another in the order of the table: the reference second.

        Intervals are of the first order: the other way round they may tell something else.
        """
        return (series, self.best) if self.best == self.reference else (self.best, series)

    def is_sure(self, series: str) -> bool | None:
        """Whether the table tells another from the best; None where it does not know."""
        rows, base = (self.cells.get(one, ()) for one in self.pair(series))
        found = against(rows, base)
        return None if found is None else is_significant(found)

    def compared(self, series: str) -> str:
        """What the table says of both: `reps vs ecmp -27.6 ± 2.4 %`."""
        one, other = self.pair(series)
        cell = AGAINST.cell(self.cells[one], self.cells[other])
        return f"{one} vs {other} {cell.text.removesuffix(f' {NOT_SIGNIFICANT}')}"


def of(view: View) -> Verdict | None:
    """What a view says; None if there is nothing to compare."""
    grouping = view.grouping
    cases = list(_cases(grouping))
    if not cases:
        grouping = _within_jobs(view)
        cases = list(_cases(grouping))
    if not cases:
        return None
    ranked = _ranked(cases)
    one = cases[0] if len(cases) == 1 else _most_lost(cases)
    return {
        "text": _text(cases, ranked, grouping),
        "best": ranked[0],
        "slowdown": _known(max(case.slowdown for case in cases if case.best == ranked[0])),
        "needs": _needs(_row(cases, ranked[0])),
        **_loss(one),
        "cases": [_fields(case) for case in cases],
    }


def _text(cases: Sequence[_Case], ranked: Sequence[str], grouping: Grouping) -> str:
    text, told = _of_one(cases[0]) if len(cases) == 1 else _of_several(cases, ranked)
    left = [one.label for one in grouping.all_categories if one not in grouping.categories]
    parts = [*told, *([f"nothing finished in {_list(left)}"] if left else [])]
    return f"{text} {'; '.join(parts)}."


def _within_jobs(view: View) -> Grouping:
    """The same runs where series are not called after what is done, but each job is a case."""
    rows = [row for own in view.grouping.cells.values() for row in own]
    ways = [key for key in view.settings.series if not job_kinds.depend_on(key, rows)]
    if not ways:
        return view.grouping
    # With a searched value it is not known which of them would be shown.
    stalled = view.stalled if view.curve is None else ()
    return group([*rows, *stalled], view.grouping.x_key, ways)


def _cases(grouping: Grouping) -> Iterator[_Case]:
    for category in grouping.categories:
        rows = {series: grouping.rows(category, series) for series in grouping.series}
        present = {series: own for series, own in rows.items() if own}
        stalled = {
            series: count
            for (where, series), count in grouping.stalled.items()
            if where == category
        }
        is_fair = job_kinds.are_alike(row for own in present.values() for row in own)
        if is_fair and len({*present, *stalled}) > 1:
            # As `best_value` chooses: who stalls in some seeds is not the best of the others.
            ordered = sorted(present.items(), key=lambda item: (-len(item[1]), _time(item[1])))
            yield _Case(category, dict(ordered), grouping.reference, stalled)


def _time(rows: Sequence[Row]) -> float:
    return averages.of("cct_s", rows).value


def _ranked(cases: Sequence[_Case]) -> list[str]:
    """The series that are best somewhere, the most often best first."""
    wins = Counter(case.best for case in cases)
    return [series for series, _ in wins.most_common()]


def _fields(case: _Case) -> VerdictCase:
    return {
        "case": case.category.label,
        "best": case.best,
        "cct_s": _time(case.cells[case.best]),
        "slowdown": _known(case.slowdown),
        "equals": case.equals,
        "stalled": dict(case.stalled),
        **_loss(case),
    }


def _loss(case: _Case | None) -> Loss:
    """What the loser of a case loses."""
    if case is None:
        return {"loser": None, "loss": None, "half_95": None, "significant": None}
    found = case.ratio(case.loser)
    if found is None:
        return {"loser": case.loser, "loss": None, "half_95": None, "significant": None}
    return {
        "loser": case.loser,
        "loss": found.value - 1,
        "half_95": found.half,
        "significant": case.is_sure(case.loser),
    }


def _most_lost(cases: Sequence[_Case]) -> _Case | None:
    """Where the reference loses most; None if nothing is faster anywhere."""
    lost = [(found.value, case) for case, found in _lost(cases)]
    return max(lost, key=lambda one: one[0], default=(0.0, None))[1]


def _lost(cases: Sequence[_Case]) -> list[tuple[_Case, stats.Mean]]:
    """The cases in which the reference takes longer than the best, and how much."""
    found = [(case, case.ratio(case.loser)) for case in cases if case.loser == case.reference]
    return [(case, ratio) for case, ratio in found if ratio is not None]


def _of_one(case: _Case) -> tuple[str, Iterator[str]]:
    rows = case.cells[case.best]
    beside = f", not told apart from {_list(case.equals)}" if case.equals else ""
    return (
        f"Best is {case.best} with {format_time(_time(rows))}, {_above(case.slowdown)}{beside}; "
        f"it asks {_asks(rows[0])}.",
        _told_loss(case),
    )


def _of_several(cases: Sequence[_Case], ranked: Sequence[str]) -> tuple[str, Iterator[str]]:
    told = [f"{series} in {sum(case.best == series for case in cases)}" for series in ranked]
    worst = max(cases, key=lambda case: case.slowdown)
    asks = [f"{series} asks {_asks(_row(cases, series))}" for series in ranked[:2]]
    return (
        f"Best of {len(cases)} cases: {_list(told)}, and there {_above(worst.slowdown)} at most "
        f"({worst.category.label}); {'; '.join(asks)}.",
        _told_losses(cases),
    )


def _told_losses(cases: Sequence[_Case]) -> Iterator[str]:
    """How much the reference loses where it is not the best, and who stalled."""
    reference = cases[0].reference
    lost = _lost(cases)
    if lost:
        yield _told_most(cases, lost)
    elif not any(reference in case.stalled for case in cases):
        yield f"Nothing is faster than {reference}"
    for series in dict.fromkeys(series for case in cases for series in case.stalled):
        where = [case for case in cases if series in case.stalled]
        most = max(where, key=lambda case: case.stalled[series])
        worst = " at worst" if len(where) > 1 else ""
        yield (
            f"{series} stalled in {len(where)}, with {_finished(most, series)} seeds finished"
            f"{worst} ({most.category.label})"
        )


def _told_most(cases: Sequence[_Case], lost: Sequence[tuple[_Case, stats.Mean]]) -> str:
    """Where the reference loses most."""
    reference = cases[0].reference
    sure = sum(case.is_sure(case.loser) is True for case, _ in lost)
    case, most = max(lost, key=lambda one: one[1].value)
    several = any(found.half is not None for _, found in lost)
    how = f"significantly in {sure} of {len(cases)}" if several else "with one seed each"
    where = case.category.label + (f": {case.compared(reference)}" if most.half else "")
    return f"{reference} takes longer in {len(lost)}, {how}, {_longer(most)} at most ({where})"


def _row(cases: Sequence[_Case], series: str) -> Row:
    return next(case.cells[series][0] for case in cases if series in case.cells)


def _told_loss(case: _Case) -> Iterator[str]:
    """How much longer one takes, and who stalled."""
    if case.loser not in case.stalled:
        yield _told_ratio(case)
    counts: dict[str, list[str]] = {}
    for series in case.stalled:
        counts.setdefault(_finished(case, series), []).append(series)
    for count, who in counts.items():
        yield f"{_list(who)} finished in {count} seeds"


def _finished(case: _Case, series: str) -> str:
    """`2 of 8`."""
    return f"{len(case.cells.get(series, ()))} of {case.seeds}"


def _told_ratio(case: _Case) -> str:
    """How much longer one takes, and what the table says of both."""
    loser, found = case.loser, case.ratio(case.loser)
    if found is None:
        return f"{loser} ran under other seeds"
    if abs(found.value - 1) < _ALIKE:
        return f"{loser} takes as long"
    told = f"{loser} takes {_longer(found)}"
    told += " longer" if told.endswith("%") else ""
    if found.half is None:
        return f"{told}; one seed does not tell whether that is chance (--seeds 5)"
    surely = "" if case.is_sure(loser) else "not "
    return f"{told}, {case.compared(loser)}, which is {surely}significant"


def _longer(found: stats.Mean) -> str:
    """A ratio without its interval: `41.0 %`, or `2.50 times as long`."""
    if found.value >= _DOUBLE:
        return f"{significant(found.value, 3)} times as long"
    return f"{significant(100 * (found.value - 1), 3)} %"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _above(slowdown: float) -> str:
    """How far from the bound: `1.8 % above the lower bound`."""
    if math.isnan(slowdown):
        return "with an unknown lower bound"
    above = 100 * (slowdown - 1)
    return (
        "at the lower bound" if above < 0.05 else f"{significant(above, 2)} % above the lower bound"
    )


def _needs(row: Row) -> Needs:
    """What a scheme asks of switches and NICs; None for nothing."""
    switches, nics = (row.get(f"{whose}_changes") for whose in ("switch", "nic"))
    return {
        "switches": None if switches == NOTHING else switches,
        "nics": None if nics == NOTHING else nics,
    }


def _asks(row: Row) -> str:
    """The same in words."""
    needs = _needs(row)
    asked = (("switches", needs["switches"]), ("NICs", needs["nics"]))
    told = [f'of {name} "{what}"' for name, what in asked if what is not None]
    return " and ".join(told) or "nothing of switches and NICs"


def _list(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
