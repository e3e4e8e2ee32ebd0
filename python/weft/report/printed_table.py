"""The table of printed and measured numbers, for the terminal and the report."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from weft.report import column_text, printed_comparison
from weft.report.printed_comparison import Comparison
from weft.report.views import View
from weft.study import stats

HEADS = ("source", "result", "printed", "measured", "sd", "difference", "verdict")
_BESIDE = ("source", "result", "nccl-tests", "simulated", "sd", "difference", "verdict")
"""The same where all that is printed was measured by nccl-tests."""
_TEXT = {"source", "result", "verdict"}
"""Columns that start at the left."""
_INDENT = " " * 4


@dataclass(frozen=True)
class Line:
    """A printed result and what came out, as text in the order of `HEADS`."""

    cells: tuple[str, ...]
    agrees: bool | None


@dataclass(frozen=True)
class PrintedTable:
    """All printed results of an experiment."""

    lines: list[Line]
    basis: str
    """What holds for all: seeds, how many agree, what was left out."""
    title: str = "compared with the paper"
    heads: tuple[str, ...] = HEADS


def of(view: View) -> PrintedTable | None:
    """The table of a view; None for an experiment without printed results."""
    if not view.settings.printed and not view.settings.left_out:
        return None
    lines = [Line(_cells(one), one.agrees) for one in view.comparisons]
    is_measured = view.settings.printed and all(one.optional for one in view.settings.printed)
    if is_measured:
        return PrintedTable(lines, _basis(view), "compared with nccl-tests", _BESIDE)
    return PrintedTable(lines, _basis(view))


def text(table: PrintedTable, width: int) -> str:
    """The table for a terminal; where it is too wide, a paragraph for each line."""
    rows = [line.cells for line in table.lines]
    if not rows:
        return f"{table.title}: {table.basis}"
    # An order fills what the columns of numbers leave free, or it would widen them all.
    usual = [table.heads, *(row for row in rows if row[3])]
    widths = [max(map(len, column)) for column in zip(*usual, strict=True)]
    whole = sum(widths) + 2 * len(widths) - 2
    rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * min(width, whole)
    if whole > width:
        drawn = [part for row in rows for part in _paragraph(table.heads, row, width)]
    else:
        drawn = [*_row(table.heads, widths, width), rule]
        drawn += [part for row in rows for part in _row(row, widths, width)]
    return "\n".join([table.title, rule, *drawn, rule, table.basis])


def _row(row: Sequence[str], widths: Sequence[int], width: int) -> list[str]:
    """A line of the table; cells that do not fit into their columns go below."""
    cells, long = [], []
    for head, cell, size in zip(HEADS, row, widths, strict=True):
        fits = cell if len(cell) <= size else ""
        cells.append(f"{fits:<{size}}" if head in _TEXT else f"{fits:>{size}}")
        long += [cell] if cell != fits else []
    return ["  ".join(cells).rstrip(), *(part for cell in long for part in _below(cell, width))]


def _paragraph(heads: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    source, what, *numbers, verdict = row
    said = [f"{head} {cell}" for head, cell in zip(heads[2:-1], numbers, strict=True) if cell]
    first = textwrap.wrap(f"{source}  {what}", width, subsequent_indent=_INDENT)
    return [*first, *_below("; ".join([*said, verdict]), width)]


def _below(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _cells(one: Comparison) -> tuple[str, ...]:
    what = ": ".join(part for part in (one.name, one.what) if part)
    if one.statement.kind == "order":
        what = f"order of {what}"
    if one.measured is None:
        return (one.statement.source, what, one.printed, "", "", "", one.words)
    mean, column = one.measured, "" if one.statement.kind == "ratio" else one.statement.column
    sd = "" if mean.sd is None else column_text.deviation(column, mean.value, mean.sd)
    measured = printed_comparison.shown(one.statement, mean.value, mean.half)
    return (one.statement.source, what, one.printed, measured, sd, _difference(one), one.words)


def _difference(one: Comparison) -> str:
    """Signed, and in per cent of what is printed."""
    mean = one.measured
    if one.difference is None or mean is None:
        return ""
    sign = "+" if one.difference > 0 else "\N{MINUS SIGN}" if one.difference < 0 else ""
    column = "" if one.statement.kind == "ratio" else one.statement.column
    text = sign + column_text.deviation(column, mean.value, abs(one.difference), mean.half)
    nearest = one.statement.high if one.difference > 0 else one.statement.low
    if one.statement.kind == "difference" or not nearest or not one.difference:
        return text
    return f"{text} ({sign}{abs(100 * one.difference / nearest):.1f} %)"


def _basis(view: View) -> str:
    counts = [one.measured.samples for one in view.comparisons if one.measured is not None]
    parts = []
    if counts and max(counts) > 1:
        seeds = stats.seeds_text(min(counts), max(counts))
        parts.append(f"mean of {seeds}, ± 95 % confidence")
        if any(one.statement.sd for one in view.comparisons):
            parts.append("printed ± is a standard deviation")
    elif counts:
        parts.append("1 seed")
    parts.append(printed_comparison.agreement(view.comparisons))
    if view.settings.left_out:
        many = view.settings.left_out
        what = "1 printed result has" if many == 1 else f"{many} printed results have"
        parts.append(f"{what} no runs here")
    return "; ".join(part for part in parts if part)
