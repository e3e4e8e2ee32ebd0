"""What a comparison says, in two sentences: which scheme is best, and what the reference loses.

The numbers are those of the table: means over seeds, differences of completion times paired by
seed, with 95 % confidence intervals (`weft.study.averages`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft._types import Row
from weft.report.grouping import Category, Grouping
from weft.report.usual_columns import AGAINST, NOT_SIGNIFICANT, NOTHING
from weft.report.views import View
from weft.study import averages, stats
from weft.units import format_time, significant

Cells = Mapping[str, Sequence[Row]]


def of(view: View) -> str:
    """Two sentences on a view of at least two series; empty if there is nothing to compare."""
    grouping = view.grouping
    cases = {category: _cells(grouping, category) for category in grouping.categories}
    cases = {category: cells for category, cells in cases.items() if len(cells) > 1}
    if not cases:
        return ""
    if len(cases) == 1:
        (cells,) = cases.values()
        return _of_one(cells, grouping.reference)
    return _of_several(cases, grouping.reference)


def _cells(grouping: Grouping, category: Category) -> dict[str, Sequence[Row]]:
    """The series that ran in a case, the fastest first."""
    rows = {series: grouping.rows(category, series) for series in grouping.series}
    present = {series: own for series, own in rows.items() if own}
    return dict(sorted(present.items(), key=lambda item: _time(item[1])))


def _time(rows: Sequence[Row]) -> float:
    return averages.of("cct_s", rows).value


def _of_one(cells: Cells, reference: str) -> str:
    best, *others = cells
    equals = [other for other in others if _is_equal(cells[other], cells[best])]
    beside = f", not told apart from {_list(equals)}" if equals else ""
    first = (
        f"Best is {best} with {format_time(_time(cells[best]))}, {_above(cells[best])}{beside}; "
        f"it asks {_asks(cells[best][0])}."
    )
    loser = reference if reference in others else others[-1]
    return f"{first} {_loss(loser, best, cells)}."


def _of_several(cases: Mapping[Category, Cells], reference: str) -> str:
    wins: dict[str, int] = {}
    for cells in cases.values():
        best = next(iter(cells))
        wins[best] = wins.get(best, 0) + 1
    ranked = sorted(wins, key=lambda series: -wins[series])
    told = [f"{series} in {wins[series]}" for series in ranked]
    worst = max(cases, key=lambda case: _slowdown(next(iter(cases[case].values()))))
    rows = next(iter(cases[worst].values()))
    asks = [f"{series} asks {_asks(_row(cases, series))}" for series in ranked[:2]]
    first = (
        f"Best of {len(cases)} cases: {_list(told)}, and there {_above(rows)} at most "
        f"({worst.label}); {'; '.join(asks)}."
    )
    return f"{first} {_lost_cases(cases, reference)}."


def _lost_cases(cases: Mapping[Category, Cells], reference: str) -> str:
    """How much the reference loses where it is not the best."""
    lost = []
    for case, cells in cases.items():
        best = next(iter(cells))
        if reference in cells and best != reference:
            found = averages.ratio("cct_s", cells[reference], cells[best])
            if found is not None:
                lost.append((found.value, found, case))
    if not lost:
        return f"Nothing is faster than {reference}"
    sure = sum(_is_sure(found) for _, found, _ in lost)
    _, most, case = max(lost, key=lambda one: one[0])
    several = any(found.half is not None for _, found, _ in lost)
    how = f"significantly in {sure} of {len(cases)}" if several else "with one seed each"
    return (
        f"{reference} takes longer in {len(lost)}, {how}, {_percent(most)} at most ({case.label})"
    )


def _row(cases: Mapping[Category, Cells], series: str) -> Row:
    return next(cells[series][0] for cells in cases.values() if series in cells)


def _loss(loser: str, best: str, cells: Cells) -> str:
    """How much longer one takes, and the comparison that the table has the other way round."""
    slow, fast = cells[loser], cells[best]
    found = averages.ratio("cct_s", slow, fast) if averages.same_seeds(slow, fast) else None
    if found is None:
        return f"{loser} ran under other seeds"
    if found.value == 1.0:
        return f"{loser} takes as long"
    told = f"{loser} takes {significant(100 * (found.value - 1), 3)} % longer"
    if found.half is None:
        return f"{told}; one seed does not tell whether that is chance (--seeds 5)"
    against = AGAINST.cell(fast, slow).text.removesuffix(f" {NOT_SIGNIFICANT}")
    surely = "" if _is_sure(found) else "not "
    return f"{told}, {best} vs {loser} {against}, which is {surely}significant"


def _percent(found: stats.Mean) -> str:
    """A ratio as what it is above one, with its interval: `41 ± 6 %`."""
    change = 100 * (found.value - 1)
    half = None if found.half is None else 100 * found.half
    return f"{significant(change, 3)}{f' ± {significant(half, 2)}' if half else ''} %"


def _is_equal(rows: Sequence[Row], best: Sequence[Row]) -> bool:
    """Whether seeds do not tell two apart; one seed tells only what is the same."""
    found = averages.ratio("cct_s", rows, best) if averages.same_seeds(rows, best) else None
    return found is not None and (found.value == 1.0 or found.includes(1.0))


def _is_sure(found: stats.Mean) -> bool:
    return found.half is not None and not found.includes(1.0)


def _slowdown(rows: Sequence[Row]) -> float:
    return averages.of("slowdown", rows).value


def _above(rows: Sequence[Row]) -> str:
    """How far from the bound: `1.8 % above the lower bound`."""
    above = 100 * (_slowdown(rows) - 1)
    return (
        "at the lower bound" if above < 0.05 else f"{significant(above, 2)} % above the lower bound"
    )


def _asks(row: Row) -> str:
    """What a scheme asks of switches and NICs."""
    asked = (("switches", row.get("switch_changes")), ("NICs", row.get("nic_changes")))
    told = [f'of {name} "{what}"' for name, what in asked if what not in (None, NOTHING)]
    return " and ".join(told) or "nothing of switches and NICs"


def _list(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
