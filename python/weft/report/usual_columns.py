"""The usual columns of the table, where an experiment names no others.

Jobs have some of their own: bus bandwidth where ranks only communicate, and where they compute,
what of the time is not computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft._types import Row
from weft.report import column_text
from weft.report.figures import collectives
from weft.study import averages
from weft.units import format_bytes, format_count, format_time, significant, time_unit

MINUS = "\N{MINUS SIGN}"
NOT_SURE = "n.s."
"""Behind a difference that may be chance: not significant."""
OTHER_SEEDS = "other seeds"
"""In place of a comparison with what ran under other seeds."""
_SMALLEST = 0.005
"""Percent: less is not worth a third place."""


@dataclass(frozen=True)
class Cell:
    """What a cell says, and the number that sorts it."""

    text: str
    value: float
    unsure: bool = False
    """Whether it is a difference that may be chance."""


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    title: str
    """With `{reference}` for the series that others are compared with."""
    meaning: str
    cell: Callable[[Sequence[Row], Sequence[Row]], Cell]
    """Of the rows of a series, and of those of the reference."""
    spare: bool = False
    """Whether a narrow terminal can do without."""


def columns_of(rows: Sequence[Row]) -> list[Column]:
    """The columns for these rows, all of an experiment."""
    communicate, compute = collectives.only_communicate(rows), collectives.compute(rows)
    own = [_BUSBW] if communicate else [_EXPOSED] if compute else []
    return [
        _ITERATION if compute else _CCT,
        _SLOWDOWN,
        _AGAINST,
        *own,
        # Of a job nobody waits for the slowest of all its messages.
        Column("p99 FCT", _P99, _mean("fct_p99_s", format_time), spare=communicate or compute),
        *_LOSSES,
    ]


def _completion(rows: Sequence[Row], _: Sequence[Row]) -> Cell:
    mean = averages.of("cct_s", rows)
    if mean.half is None:
        return Cell(format_time(mean.value), mean.value)
    scale, unit = time_unit([mean.value])
    value, half = significant(mean.value / scale), significant(mean.half / scale, 2)
    return Cell(f"{value} ± {half} {unit}", mean.value)


def _against(rows: Sequence[Row], base: Sequence[Row]) -> Cell:
    """The mean of one over the mean of the other, which stand in the table, less one."""
    # Nothing can be said beside runs that took no time.
    if not any(row["cct_s"] for row in base):
        return Cell("", 0.0)
    found = averages.ratio("cct_s", rows, base) if averages.same_seeds(rows, base) else None
    if found is None:
        return Cell(OTHER_SEEDS, math.inf)
    unsure = found.is_within_noise_of(1.0)
    text = _percent(100 * (found.value - 1), None if found.half is None else 100 * found.half)
    return Cell(f"{text} {NOT_SURE}" if unsure else text, 100 * (found.value - 1), unsure)


def _percent(change: float, half: float | None) -> str:
    """Signed, with two digits of what it may be off by."""
    off = half if half and half >= _SMALLEST else None
    places = 1 if off is None else min(2, max(0, 1 - math.floor(math.log10(off))))
    size = f"{abs(change):.{places}f}"
    sign = "" if not float(size) else "+" if change > 0 else MINUS
    return f"{sign}{size} %" if off is None else f"{sign}{size} ± {off:.{places}f} %"


def _mean(column: str, show: Callable[[float], str]) -> Callable[[Sequence[Row], object], Cell]:
    """A column's mean over seeds."""

    def cell(rows: Sequence[Row], _: object) -> Cell:
        value = _average(rows, column)
        return Cell(show(value), value)

    return cell


def _average(rows: Sequence[Row], column: str) -> float:
    return averages.of(column, rows).value


def _resent(rows: Sequence[Row], _: Sequence[Row]) -> Cell:
    retransmits, spurious = _average(rows, "retransmits"), _average(rows, "spurious_retransmits")
    needless = f" ({format_count(spurious)})" if spurious else ""
    return Cell(format_count(retransmits) + needless, retransmits)


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
    "Time until the last rank is done: mean over seeds, with the 95 % confidence interval",
    _completion,
)
_SLOWDOWN = Column(
    "÷ bound",
    "Mean completion time over the mean lower bound, which capacity and path delays set",
    _mean("slowdown", "{:.3f}".format),
)
_AGAINST = Column(
    "vs {reference}",
    "Mean completion time against that of {reference}, with the 95 % confidence interval of paired "
    f"seeds; {NOT_SURE}: not significant, the interval includes no difference",
    _against,
)
_BUSBW = Column(
    "busbw",
    "Bus bandwidth as nccl-tests define it; of several collectives, all bytes over all times",
    _mean("busbw_gb_s", _busbw),
)
_EXPOSED = Column(
    "exposed",
    "Exposed communication: what is left of the iteration without the computation of the rank "
    "that computes longest",
    _exposed,
)
_P99 = "Flow completion time that 99 % of messages stay within"
_LOSSES = (
    Column("drops", "Packets dropped, a run", _mean("drops", format_count)),
    Column(
        "resent",
        "Data packets sent more than once, a run (of those, needlessly)",
        _resent,
    ),
    Column(
        "max QPs",
        "Most queue pairs active at once at one NIC",
        _mean("max_qps", format_count),
        spare=True,
    ),
    Column(
        "peak queue",
        "Most bytes that ever stood in one port's queue",
        _mean("peak_queue_bytes", format_bytes),
        spare=True,
    ),
)
