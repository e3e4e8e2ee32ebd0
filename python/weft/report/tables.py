"""The table of results: one line for each scheme, one section for each case.

`summarise` makes lines that the console and the report both show; `text` is the console's form.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from weft._types import Row
from weft.report import column_text
from weft.report.grouping import Category, Grouping, key_name
from weft.report.usual_columns import NOT_SIGNIFICANT, Cell, Column, columns_of
from weft.study import averages, stats
from weft.study.store import text_of
from weft.units import format_time, magnitude

if TYPE_CHECKING:
    from weft.report.views import View


@dataclass(frozen=True)
class Line:
    """One series in one category."""

    series: str
    cells: list[Cell]


@dataclass(frozen=True)
class Section:
    """The lines of one category."""

    category: Category
    hosts: int
    ranks: int
    """Of jobs; 0 where hosts send messages of their own."""
    seeds: tuple[int, int]
    """The smallest and the largest number of seeds of a line."""
    bound: float | None
    """Lower bound of the completion time, in seconds; None where nothing finished, and where some
    category has lines of several bounds: those are a column."""
    lines: list[Line]
    stalled: tuple[tuple[str, str], ...] = ()
    """Series of which runs stalled, and in how many seeds: what comes after the lines."""


@dataclass(frozen=True)
class Table:
    """The results of one experiment, in a few columns."""

    columns: list[str]
    """Column titles; the name of the series comes before them."""
    meanings: list[str]
    """The meaning of each column, shown when the pointer is over it."""
    sections: list[Section]
    runs: int
    """Number of runs in the table."""
    wanted: int
    """Number of runs of the experiment; more than `runs` if some stalled or did not run."""
    series_name: str = "scheme"
    """What a line is: a scheme, or a value of another key."""
    fidelities: tuple[str, ...] = ()
    """How closely the runs were simulated: the values of `run.fidelity`."""
    spare: tuple[int, ...] = ()
    """Columns that a narrow terminal may leave out."""
    others: tuple[int, ...] = ()
    """Columns of less weight: a narrow terminal leaves out those of zeros first."""
    words: tuple[int, ...] = ()
    """Columns of words, which begin under each other; numbers end so."""
    notes: Mapping[int, str] = field(default_factory=dict)
    """Definitions of columns, for the line under the table."""

    @property
    def basis(self) -> str:
        """What the numbers are means of, for a line under or over the table."""
        if not self.runs:
            return f"0 of {self.wanted} runs"
        fewest = min(section.seeds[0] for section in self.sections if section.lines)
        most = max(section.seeds[1] for section in self.sections)
        sure = f"mean of {stats.seeds_text(fewest, most)}" if most > 1 else "1 seed"
        cells = [cell for section in self.sections for line in section.lines for cell in line.cells]
        if any("±" in cell.text for cell in cells):
            sure += ", ± 95 % confidence"
        if self.runs < self.wanted:
            sure += f"; only {self.runs} of {self.wanted} runs"
        if any(cell.unsure for cell in cells):
            sure += f"; {NOT_SIGNIFICANT}: not significant"
        if self.fidelities:
            sure += f"; fidelity: {', '.join(self.fidelities)}"
        return sure

    @property
    def hosts(self) -> str:
        """The number of hosts, and that of ranks where there are some, as text."""
        finished = [section for section in self.sections if section.lines]
        if not finished:
            return "no run finished"
        hosts = _counted([section.hosts for section in finished], "host")
        ranks = [section.ranks for section in finished]
        return f"{_counted(ranks, 'rank')} on {hosts}" if any(ranks) else hosts


def _counted(counts: Sequence[int], what: str) -> str:
    """`16 hosts`, `1 host`, `4 to 16 hosts`."""
    low, high = min(counts), max(counts)
    if low == high:
        return f"{low} {what}{'s' * (low != 1)}"
    return f"{low} to {high} {what}s"


def of(view: View, wanted: int) -> Table:
    """The table of a view of an experiment that has `wanted` runs."""
    best, settings = view.settings.best, view.settings
    missing = wanted - sum(map(len, (view.curve or view.grouping).cells.values()))
    shown = sum(map(len, view.grouping.cells.values()))
    return summarise(view.grouping, shown + missing, settings.columns, best.over if best else None)


def summarise(
    grouping: Grouping,
    wanted: int | None = None,
    columns: Sequence[str] = (),
    over: str | None = None,
) -> Table:
    """One section a category, one line a series: means over seeds.

    `wanted` is the number of runs that the experiment has, where some may be missing; `columns`
    are result columns to show instead of the usual ones; `over` is the key whose best value
    the rows have (`weft.study.best_value`).
    """
    titles = _titles(grouping, columns)
    everything = [row for cell in grouping.cells.values() for row in cell]
    shared = grouping.shares_bounds
    usual = columns_of(grouping) if everything and not titles else []
    reference = grouping.reference if everything else ""
    sections = []
    for category in grouping.all_categories:
        stalled = stalled_in(grouping, category)
        if category not in grouping.categories:
            sections.append(Section(category, 0, 0, (0, 0), None, [], stalled))
            continue
        present = [series for series in grouping.series if grouping.rows(category, series)]
        base = grouping.rows(category, reference)
        cells = {series: grouping.rows(category, series) for series in present}
        lines = [
            Line(
                series,
                _best(rows, over) + _chosen(rows, titles) + [one.cell(rows, base) for one in usual],
            )
            for series, rows in cells.items()
        ]
        rows = [row for group_rows in cells.values() for row in group_rows]
        seeds = (min(map(len, cells.values())), max(map(len, cells.values())))
        bound = grouping.bound(category) if shared else None
        hosts, ranks = rows[0]["hosts"], rows[0].get("ranks") or 0
        sections.append(Section(category, hosts, ranks, seeds, bound, lines, stalled))
    runs = sum(map(len, grouping.cells.values()))
    heads = [(title, meaning, title == _SD) for _, title, meaning in titles]
    heads += [(one.title, one.meaning, one.spare) for one in usual]
    words = {one.title for one in usual if one.words}
    others = {one.title for one in usual if one.minor}
    if over is not None:
        heads = [(f"best {key_name(over)}", f"The best value of {over}", False), *heads]
    return Table(
        columns=[title.format(reference=reference) for title, _, _ in heads],
        meanings=[meaning.format(reference=reference) for _, meaning, _ in heads],
        sections=sections,
        runs=runs,
        wanted=runs if wanted is None else wanted,
        series_name=grouping.series_name,
        spare=tuple(i for i, (_, _, spare) in enumerate(heads) if spare),
        others=tuple(i for i, (title, _, _) in enumerate(heads) if title in others),
        words=tuple(i for i, (title, _, _) in enumerate(heads) if title in words),
        notes=_notes(usual, sections, len(heads) - len(usual)),
        fidelities=fidelities_of(everything),
    )


def stalled_in(grouping: Grouping, category: Category | None = None) -> tuple[tuple[str, str], ...]:
    """Each series of which runs stalled, and how many: in a category, or in all."""
    stalled: Counter[str] = Counter()
    for (where, series), count in grouping.stalled.items():
        stalled[series] += count if category in (None, where) else 0
    finished = Counter(
        series
        for (where, series), rows in grouping.cells.items()
        for _ in rows
        if category in (None, where)
    )
    what = "run" if category is None else "seed"
    return tuple(
        (series, f"stalled ({count} of {_counted([count + finished[series]], what)})")
        for series, count in stalled.items()
        if count
    )


def fidelities_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """How closely the runs were simulated, each word once; of `fast`, how many took packets."""
    words = dict.fromkeys(row["fidelity"] for row in rows if "fidelity" in row)
    fast = [row["skipped_pct"] for row in rows if row.get("fidelity") == "fast"]
    packets = sum(share == 0 for share in fast)
    said = {"fast": f"fast (packets in {packets} of {len(fast)} runs)"}
    fluid = [row.get("full_buffers") for row in rows if row.get("fidelity") == "fluid"]
    if full := sum(bool(switches) for switches in fluid):
        said["fluid"] = f"fluid (buffers would be full in {full} of {len(fluid)} runs)"
    return tuple(said.get(word, word) for word in words)


def _notes(usual: Sequence[Column], sections: Sequence[Section], first: int) -> dict[int, str]:
    """Definitions of columns, where there is something that needs them; `first` is the first's."""
    lines = [line for section in sections for line in section.lines]
    return {
        i: column.note
        for i, column in enumerate(usual, first)
        if column.note and any(column.noted in line.cells[i].text for line in lines)
    }


_SD = "sd"
Title = tuple[str, str, str]
"""A result column, its title, and its meaning."""


def _titles(grouping: Grouping, columns: Sequence[str]) -> list[Title]:
    """Each of the columns, with one for its deviation where there are several seeds."""
    several = max(map(len, grouping.cells.values()), default=0) > 1
    titles = []
    for column in columns:
        name = column_text.title_of(column)
        meaning = f"{column}: mean over seeds, with the 95 % confidence interval"
        titles.append((column, name, meaning))
        if several:
            titles.append((column, _SD, f"Standard deviation of {name} over seeds"))
    return titles


def _chosen(rows: Sequence[Row], titles: Sequence[Title]) -> list[Cell]:
    cells = []
    for column, title, _ in titles:
        mean = averages.of(column, rows)
        if title != _SD:
            cells.append(Cell(column_text.shown(column, mean.value, mean.half), mean.value))
        elif mean.sd is None:
            cells.append(Cell("", 0.0))
        else:
            cells.append(Cell(column_text.deviation(column, mean.value, mean.sd), mean.sd))
    return cells


def _best(rows: Sequence[Row], over: str | None) -> list[Cell]:
    if over is None:
        return []
    value = rows[0]["best"]
    return [Cell(text_of(value), magnitude(value))]


def text(table: Table, title: str, width: int) -> str:
    """A table for a terminal of `width` columns: titles over numbers, a line a series."""
    kept, heads, grid, widths = _fitting(table, width)
    gap = "  " if sum(widths) + 2 * len(widths) <= width else " "
    rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * (sum(widths) + len(gap) * (len(widths) - 1))

    def row(cells: Sequence[str]) -> str:
        marks = ["<", *("<" if i in table.words else ">" for i in kept)]
        return "\n".join(
            gap.join(
                f"{cell:{mark}{size}}" for cell, mark, size in zip(line, marks, widths, strict=True)
            ).rstrip()
            for line in zip_longest(*(cell.split("\n") for cell in cells), fillvalue="")
        )

    above = [row([head[0] for head in heads])] if any(head[0] for head in heads) else []
    drawn = [*textwrap.wrap(title, width), rule, *above, row([head[1] for head in heads])]
    rows = iter(grid)
    for section in table.sections:
        drawn += [rule, *_above(table, section)]
        drawn += [row(next(rows)) for _ in section.lines]
        drawn += [f"{series}: {how}" for series, how in section.stalled]
    missing = [name for i, name in enumerate(table.columns) if i not in kept and name != _SD]
    shown = {i: note for i, note in table.notes.items() if i in kept}
    said = [below(replace(table, notes=shown))]
    said += [f"not shown for lack of room: {', '.join(missing)}"] * bool(missing)
    return "\n".join([*drawn, rule, *textwrap.wrap("; ".join(said), width)])


def _fitting(table: Table, width: int) -> tuple[list[int], Heads, Grid, list[int]]:
    """The columns for a terminal, as numbers, titles, cells and widths."""
    left_out: list[int] = []
    words_width = _UNBROKEN
    for more, words_width in _savings(table):
        left_out += more
        kept = [i for i in range(len(table.columns)) if i not in left_out]
        heads, grid = _grid(table, kept, words_width)
        widths = _widths(heads, grid)
        if sum(widths) + len(widths) <= width + 1:
            break
    return kept, heads, grid, widths


_UNBROKEN = 1000
_BROKEN = (24, 16)
"""Widths at which words go on in the next line, where there is little room."""


def _savings(table: Table) -> Iterator[tuple[Sequence[int], int]]:
    """Columns to leave out, and the width of words, one after the other until a table fits.

    What says least goes first: columns of zeros, and words last.
    """
    lines = [line for section in table.sections for line in section.lines]
    zeros = [i for i in table.others if all(line.cells[i].text == "0" for line in lines)]
    deviations = [i for i in table.spare if table.columns[i] == _SD]
    numbers = [i for i in table.spare if i not in (*deviations, *table.words)]
    others = [i for i in table.others if i not in zeros]
    yield [], _UNBROKEN
    yield deviations, _BROKEN[0]
    yield zeros, _BROKEN[0]
    yield from (([one], _BROKEN[0]) for one in reversed(numbers))
    yield [], _BROKEN[1]
    words = [i for i in table.spare if i in table.words]
    yield from (([one], _BROKEN[1]) for one in (*reversed(others), *words))


Heads = list[tuple[str, str]]
Grid = list[list[str]]


def _grid(table: Table, columns: Sequence[int], words_width: int) -> tuple[Heads, Grid]:
    """Titles in two lines, and the cells; those of words in lines of so many characters."""
    heads = [("", table.series_name), *(_two_lines(table.columns[i]) for i in columns)]
    lines = [line for section in table.sections for line in section.lines]

    def shown(line: Line, column: int) -> str:
        cell = line.cells[column].text
        return textwrap.fill(cell, words_width) if column in table.words else cell

    return heads, [[line.series, *(shown(line, i) for i in columns)] for line in lines]


def _widths(heads: Heads, grid: Grid) -> list[int]:
    columns = zip(*zip(*heads, strict=True), *grid, strict=True)
    return [max(len(part) for cell in column for part in cell.split("\n")) for column in columns]


def _two_lines(column: str) -> tuple[str, str]:
    above, _, below = column.rpartition(" ")
    return above, below


def _bounds(table: Table) -> list[str]:
    bounds = [section.bound for section in table.sections if section.bound is not None]
    return list(dict.fromkeys(map(format_time, bounds)))


def _above(table: Table, section: Section) -> list[str]:
    """The title of a section, if it is not the only one."""
    if not section.category.label:
        return []
    own = section.bound if len(_bounds(table)) > 1 else None
    bound = "" if own is None else f" (lower bound {format_time(own)})"
    return [section.category.label + bound]


def below(table: Table) -> str:
    """What stands under the table: hosts, seeds, bound, definitions of columns."""
    bounds = _bounds(table)
    bound = f"; lower bound {bounds[0]}" if len(bounds) == 1 else ""
    return "; ".join([f"{table.hosts}; {table.basis}{bound}", *table.notes.values()])
