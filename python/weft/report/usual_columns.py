"""The usual columns of the table, where an experiment names no others.

Jobs have columns of their own: bus bandwidth where ranks only communicate, and exposed
communication where they also compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft._types import Row
from weft.report import column_text, job_kinds
from weft.report.grouping import Grouping
from weft.study import averages, stats
from weft.units import format_bytes, format_count, format_time, significant, time_unit

MINUS = "\N{MINUS SIGN}"
NOT_SIGNIFICANT = "n.s."
"""Follows a difference that may be chance."""
OTHER_SEEDS = "other seeds"
"""Shown instead of a comparison with runs of other seeds."""
OTHER_JOB = "other job"
"""Shown instead of a comparison with runs of another workload."""
NOTHING = "nothing"
"""What a scheme asks of switches or NICs that do all it needs as they are."""
_OWN_UNIT = 1e-3
"""A half width of less has a unit of its own: `2.631 ms ± 80 ns`."""
_SMALLEST = 0.005
"""In percent: smaller half widths are not shown."""


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and the number that sorts it; None: its text does."""

    text: str
    value: float | None
    unsure: bool = False
    """Whether it is a difference that may be chance."""


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    title: str
    """May contain `{reference}`: the series that others are compared with."""
    meaning: str
    cell: Callable[[Sequence[Row], Sequence[Row]], Cell]
    """From the rows of a series and those of the reference."""
    note: str = ""
    """A definition for the line under the table; empty for none."""
    noted: str = ""
    """What a cell has to contain for that."""
    spare: bool = False
    """Whether a narrow terminal leaves it out."""
    minor: bool = False
    """Whether one that is still too narrow then leaves it out, too."""
    words: bool = False
    """Whether its cells are words."""


def columns_of(grouping: Grouping) -> list[Column]:
    """The columns for the rows of an experiment."""
    rows = [row for cell in grouping.cells.values() for row in cell]
    communicate, compute = job_kinds.communicate_only(rows), job_kinds.compute(rows)
    own = [_BUSBW] if communicate else [_EXPOSED] if compute else []
    return [
        _ITERATION if compute else _CCT,
        *([] if grouping.shares_bounds else [_BOUND]),
        _SLOWDOWN,
        *([AGAINST] if _are_compared(grouping) else []),
        *own,
        # In a job, nobody waits for the slowest of all its messages.
        Column(
            "p99 FCT",
            _P99,
            _mean("fct_p99_s", format_time),
            spare=communicate or compute,
            minor=True,
        ),
        *[
            one
            for one in _LOAD
            if one is _MOST_QPS or any(row["drops"] is not None for row in rows)
        ],
        *[one for column, one in _ASKS if any(row.get(column, NOTHING) != NOTHING for row in rows)],
    ]


def _are_compared(grouping: Grouping) -> bool:
    """Whether some series does what the reference does."""
    first = grouping.reference
    return any(
        job_kinds.are_alike([*grouping.rows(category, one), *grouping.rows(category, first)])
        for category in grouping.categories
        for one in grouping.series
        if one != first
    )


def _completion(rows: Sequence[Row], _: Sequence[Row]) -> Cell:
    mean = averages.of("cct_s", rows)
    if mean.half is None:
        return Cell(format_time(mean.value), mean.value)
    scale, unit = time_unit([mean.value])
    value, half = significant(mean.value / scale), significant(mean.half / scale, 2)
    if 0 < mean.half < _OWN_UNIT * scale:
        small, its_unit = time_unit([mean.half])
        half = significant(mean.half / small, 2)
        return Cell(f"{value} {unit} ± {half} {its_unit}", mean.value)
    return Cell(f"{value} ± {half} {unit}", mean.value)


def _against(rows: Sequence[Row], base: Sequence[Row]) -> Cell:
    """The mean of one over the mean of the other, minus one: means as in the table."""
    if not job_kinds.are_alike([*rows, *base]):
        return Cell(OTHER_JOB, math.inf)
    # No comparison with runs that took no time.
    if not any(row["cct_s"] for row in base):
        return Cell("", 0.0)
    found = against(rows, base)
    if found is None:
        return Cell(OTHER_SEEDS, math.inf)
    unsure = found.includes(1.0)
    text = _percent(100 * (found.value - 1), None if found.half is None else 100 * found.half)
    return Cell(f"{text} {NOT_SIGNIFICANT}" if unsure else text, 100 * (found.value - 1), unsure)


def against(rows: Sequence[Row], base: Sequence[Row]) -> stats.Mean | None:
    """The mean completion time over that of others; None if of other seeds, or of another job."""
    is_fair = averages.same_seeds(rows, base) and job_kinds.are_alike([*rows, *base])
    return averages.ratio("cct_s", rows, base) if is_fair else None


def is_significant(found: stats.Mean) -> bool | None:
    """Whether a ratio is surely not one; None for one seed, which does not tell."""
    return None if found.half is None else found.value != 1.0 and not found.includes(1.0)


def _percent(change: float, half: float | None) -> str:
    """Signed, with two digits of the half width of its confidence interval."""
    off = half if half and half >= _SMALLEST else None
    places = 1 if off is None else min(2, max(0, 1 - math.floor(math.log10(off))))
    size = f"{abs(change):.{places}f}"
    sign = "" if not float(size) else "+" if change > 0 else MINUS
    return f"{sign}{size} %" if off is None else f"{sign}{size} ± {off:.{places}f} %"


def _mean(column: str, show: Callable[[float], str]) -> Callable[[Sequence[Row], object], Cell]:
    """A column's mean over seeds."""

    def cell(rows: Sequence[Row], _: object) -> Cell:
        value = _average(rows, column)
        return _unknown() if math.isnan(value) else Cell(show(value), value)

    return cell


def _words(column: str) -> Callable[[Sequence[Row], object], Cell]:
    """A column of words, the same in all rows of a series."""

    def cell(rows: Sequence[Row], _: object) -> Cell:
        return Cell(rows[0].get(column, column_text.UNKNOWN), None)

    return cell


def _unknown() -> Cell:
    return Cell(column_text.UNKNOWN, math.inf)


def _average(rows: Sequence[Row], column: str) -> float:
    return averages.of(column, rows).value


def _retransmits(rows: Sequence[Row], _: Sequence[Row]) -> Cell:
    retransmits, spurious = _average(rows, "retransmits"), _average(rows, "spurious_retransmits")
    if math.isnan(retransmits):
        return _unknown()
    unneeded = f" ({format_count(spurious)})" if spurious else ""
    return Cell(format_count(retransmits) + unneeded, retransmits)


def _exposed(rows: Sequence[Row], _: Sequence[Row]) -> Cell:
    exposed = _average(rows, "exposed_s")
    share = 100 * exposed / _average(rows, "cct_s")
    return Cell(f"{format_time(exposed)} ({share:.0f} %)", exposed)


def _busbw(value: float) -> str:
    return column_text.shown("busbw_gb_s", value)


_CCT = Column(
    "CCT",
    "Collective completion time: mean over seeds, with the 95 % confidence interval",
    _completion,
)
_ITERATION = Column(
    "iteration",
    "Time until the last rank has finished: mean over seeds, with the 95 % confidence interval",
    _completion,
)
_BOUND = Column("lower bound", "Lower bound of the completion time", _mean("bound_s", format_time))
_SLOWDOWN = Column(
    "slowdown",
    "Completion time / lower bound (ratio of means); the bound follows from capacity and delays",
    _mean("slowdown", "{:.3f}".format),
    note="slowdown: completion time / lower bound",
)
AGAINST = Column(
    "vs {reference}",
    "Mean completion time compared with that of {reference}, with the 95 % confidence interval of "
    f"paired seeds; {NOT_SIGNIFICANT}: not significant, the interval includes zero",
    _against,
)
_BUSBW = Column(
    "busbw",
    "Bus bandwidth as nccl-tests define it; of several collectives, all bytes over all times",
    _mean("busbw_gb_s", _busbw),
)
_EXPOSED = Column(
    "exposed",
    "Exposed communication: the time of the iteration minus the computation of the rank that "
    "computes longest",
    _exposed,
)
_P99 = "99th percentile of flow completion times"
_MOST_QPS = Column(
    "max QPs",
    "Largest number of queue pairs that are active at the same time at one NIC",
    _mean("max_qps", format_count),
    spare=True,
)
_LOAD = (
    Column("drops", "Packets dropped per run", _mean("drops", format_count), minor=True),
    Column(
        "retransmits",
        "Retransmissions of data packets per run (in parentheses: spurious ones)",
        _retransmits,
        note="retransmits in parentheses: spurious ones",
        noted="(",
        minor=True,
    ),
    _MOST_QPS,
    Column(
        "peak queue",
        "Largest queue of any port",
        _mean("peak_queue_bytes", format_bytes),
        spare=True,
    ),
)
_ASKS = (
    (
        "switch_changes",
        Column(
            "asks of switches",
            "What switches must do beyond hashing flows",
            _words("switch_changes"),
            spare=True,
            words=True,
        ),
    ),
    (
        "nic_changes",
        Column(
            "asks of NICs",
            "What NICs must do beyond going back to a lost packet",
            _words("nic_changes"),
            spare=True,
            words=True,
        ),
    ),
)
