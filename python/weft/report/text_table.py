"""Lines of text tables: cells under each other, two blanks between columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """A line for each row, the title row included; columns in `right` end under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def ruled(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int],
    below: Sequence[str] = (),
) -> str:
    """A table with rules under its title, its heads and its rows, and lines below it."""
    head, *lines = aligned([heads, *rows], right)
    rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * max(map(len, [head, *lines]))
    return "\n".join([title, rule, head, rule, *lines, rule, *below])
