"""The table of `--check`: runs that skipped packets beside the same ones packet by packet."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Callable, Sequence

from weft._types import Row
from weft.report import column_text, text_table
from weft.report.usual_columns import Cell
from weft.study.check import COUNTERS, Check
from weft.units import format_time, significant

TITLE = "check by packets"
_PLACES, _LEAST = 2, 0.01
_SPARE = ((4,), (8, 9), (3,))
"""Columns that a narrow terminal leaves out, the first ones first."""
TEXT_COLUMNS = (0, 1, 3)
"""Columns that start at the left."""
_COUNTERS = {
    **{f"{counter}_difference": counter for counter in COUNTERS},
    "link_bytes_difference_pct": "bytes on links",
}

HEADS = (
    *("run", "scheme", "seed", "fidelity", "skipped", "time", "by packets", "difference"),
    *("core time", "by packets", "times as fast"),
)


def cells(check: Check) -> list[list[Cell]]:
    """The rows, in the order of `HEADS`."""
    several = len({row["experiment"] for row in check.rows}) > 1
    return [_cells(row, several) for row in check.rows]


def text(check: Check, width: int) -> str:
    """The table for a terminal of `width` columns; of a check without runs one line."""
    if not check.rows:
        return "\n".join(below(check))
    grid = [list(HEADS), *([cell.text for cell in row] for row in cells(check))]
    columns = list(range(len(HEADS)))
    for spare in _SPARE:
        if len(_drawn(grid, columns)[0]) > width:
            columns = [column for column in columns if column not in spare]
    heads, *rows = ([row[column] for column in columns] for row in grid)
    wrapped = [part for line in below(check) for part in textwrap.wrap(line, width)]
    return text_table.ruled(TITLE, heads, rows, _right(columns), wrapped)


def _drawn(grid: Sequence[Sequence[str]], columns: Sequence[int]) -> list[str]:
    picked = [[row[column] for column in columns] for row in grid]
    return text_table.aligned(picked, _right(columns))


def _right(columns: Sequence[int]) -> list[int]:
    return [place for place, column in enumerate(columns) if column not in TEXT_COLUMNS]


def below(check: Check) -> list[str]:
    """The lines below the table: what the sample says."""
    runs = _many(check.skipped + check.exact, "run")
    if not check.rows:
        hint = "" if check.asked else "; --fidelity fast skips packets where nothing is lost by it"
        return [f"check: {runs}, all packet by packet (exact): nothing to check{hint}"]
    exact = f"; {check.exact} of {runs} went packet by packet (exact)" if check.exact else ""
    drawn = _many(len(check.compared), "run")
    lines = [f"{drawn} checked of {check.skipped} that skipped packets{exact}"]
    errors = check.errors_pct
    if errors:
        median, largest = statistics.median(errors), errors[-1]
        said = f"difference: median {median:.{_PLACES}f} %, largest {largest:.{_PLACES}f} %"
        lines.append("; ".join([said, *_of_others(check)]))
        lines.append(_counters(check))
    return lines if errors else [*lines, *_of_others(check)]


def _of_others(check: Check) -> list[str]:
    most, others = check.most_larger, check.others
    if most is None:
        failed = _many(len(check.rows) - len(check.compared), "drawn run")
        told = ", so nothing is known of those not drawn" if others else ""
        return [f"{failed} without a result by packets{told}"]
    if others == 0:
        return []
    if most == others:
        return [f"too few for a statement about the {others} not checked (95 % confidence)"]
    if most == 0:
        return [f"with 95 % confidence none of the {others} not checked differs by more than that"]
    return [
        f"with 95 % confidence at most {most} of the {others} not checked "
        f"({100 * most / others:.0f} %) differ by more than that"
    ]


def _counters(check: Check) -> str:
    """Which counters are not those of packets, and in how many runs."""
    known, differ = [], []
    for column, name in _COUNTERS.items():
        off = [row[column] for row in check.compared if row[column] is not None]
        known += [name] if off else []
        runs = sum(value != 0 for value in off)
        if runs:
            most = max(map(abs, off))
            size = f"at most {most:,}"
            if column.endswith("_pct"):
                size = (
                    f"at most {most:.{_PLACES}f} %" if most >= _LEAST else f"less than {_LEAST} %"
                )
            differ.append(f"{name} in {_many(runs, 'run')} (by {size})")
    if differ:
        return f"counters that differ: {', '.join(differ)}"
    return f"counters that are the same: {', '.join(known)}"


def _cells(row: Row, several: bool) -> list[Cell]:
    swept = [row["case"]] if row["case"] else []
    name = ", ".join([row["experiment"], *swept] if several or not swept else swept)
    difference, packets = row["difference_pct"], row["packet_cct_s"]
    return [
        Cell(name, None),
        Cell(row["scheme"], None),
        Cell(str(row["seed"]), row["seed"]),
        Cell(row["fidelity"], None),
        _cell(row["skipped_pct"], lambda share: f"{share:.0f} %"),
        _cell(row["cct_s"], format_time),
        _cell(packets, format_time),
        _cell(difference, lambda share: column_text.signed_percent(share / 100, _PLACES)),
        _cell(row["core_s"], format_time),
        _cell(row["packet_core_s"], format_time),
        _cell(row["times_as_fast"], lambda times: significant(times, 2)),
    ]


def _cell(value: float | None, words: Callable[[float], str]) -> Cell:
    return Cell(column_text.UNKNOWN, math.inf) if value is None else Cell(words(value), value)


def _many(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
