"""How an experiment wants its results shown: `[report]`, `[best]` and `[[printed]]`.

The native core returns these tables as written. They are read before anything runs, so that a
mistake costs no simulation; whether a result column exists is known with the first result
(`Settings.check`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft._types import Row, RunSpec
from weft.errors import ExperimentError
from weft.study import printed
from weft.study.fields import Fields, suggestion
from weft.study.printed import Statement
from weft.study.selection import values_of

FIGURES = ("fct", "collectives", "queues", "goodput", "fabric", "links")
"""What a report may show beyond scalar columns."""
_USUAL = ("cct_s", "slowdown", "normalised")
"""Columns with statistics if the experiment names no others."""


@dataclass(frozen=True)
class Best:
    """`[best]`: only the best value of one swept key counts, each combination its own."""

    over: str
    """The swept key."""
    of: str
    """The column whose mean over seeds is least at the best value."""
    search_seeds: int | None
    """Search with so many seeds, and run only the best value with all; None for all with all."""


@dataclass(frozen=True)
class Settings:
    """What tables and figures show."""

    source: str
    """The experiment's file, for messages."""
    x: str | None = None
    series: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """Result columns to show instead of the usual ones."""
    figures: tuple[str, ...] = FIGURES
    overview: tuple[str, ...] | None = None
    """Result columns of the overview (`weft.report.overview`); None for the usual table."""
    best: Best | None = None
    printed: tuple[Statement, ...] = ()
    left_out: int = 0
    """Printed results of runs that `--quick` or `--set` left out."""

    def statistics(self) -> list[str]:
        """The columns of which a summary has means."""
        asked = [*(self.columns or _USUAL), *(one.column for one in self.printed)]
        if self.best is not None:
            asked.append(self.best.of)
        return list(dict.fromkeys(asked))

    def check(self, row: Row) -> None:
        """Refuse columns that a result does not have, or that are no numbers.

        What the run does not tell (`run.fidelity`) may be one.
        """
        numbers = [
            name
            for name, value in row.items()
            if isinstance(value, int | float | None) and name not in ("seed", "run")
        ]
        for column in self.overview or ():
            if column not in row:
                near = suggestion(column, row)
                what = f'"{column}" is not a result column; {near}'
                raise ExperimentError(f"{self.source}: report.overview: {what}")
        for place, column in self._asked():
            if column not in numbers:
                what = "is not a number" if column in row else "is not a result column"
                near = suggestion(column, numbers)
                raise ExperimentError(f'{self.source}: {place}: "{column}" {what}; {near}')

    def _asked(self) -> Iterator[tuple[str, str]]:
        yield from (("report.columns", column) for column in self.columns)
        if self.best is not None:
            yield "best.of", self.best.of
        yield from ((f"{one.place}.column", one.column) for one in self.printed)


def read(
    shown: Mapping[str, Any],
    runs: Sequence[RunSpec],
    ended: Sequence[str],
    source: str,
    changed: bool = False,
) -> Settings:
    """The settings of an experiment with these runs.

    `ended` are keys that are no longer swept. If the experiment was `changed` by options,
    printed results of runs that it no longer has are left out; otherwise they are a mistake.
    """
    fields = Fields(source, "report", shown.get("report", {}))
    x, series = fields.text("x"), fields.texts("series") or ()
    columns, figures = fields.texts("columns") or (), fields.texts("figures")
    overview = fields.texts("overview")
    fields.finish()
    for key in series:
        _swept(fields, "series", key, runs, ended)
    for figure in figures or ():
        if figure not in FIGURES:
            what = f'"{figure}" is not a kind of figure; {suggestion(figure, FIGURES)}'
            raise fields.wrong("figures", what)
    usual = columns[0] if columns else "normalised"
    best = _best(shown, usual, runs, ended, source)
    over = best.over if best else None
    statements = printed.read(shown.get("printed", []), usual, source)
    found = printed.resolve(statements, runs, ended, over, source, changed)
    return Settings(
        source=source,
        x=None if x in ended else x,
        series=tuple(key for key in series if key not in ended),
        columns=columns,
        figures=FIGURES if figures is None else figures,
        overview=overview,
        best=best,
        printed=found,
        left_out=sum(not one.optional for one in statements)
        - sum(not one.optional for one in found),
    )


def _best(
    shown: Mapping[str, Any],
    usual: str,
    runs: Sequence[RunSpec],
    ended: Sequence[str],
    source: str,
) -> Best | None:
    if "best" not in shown:
        return None
    fields = Fields(source, "best", shown["best"])
    over, of = fields.text("over"), fields.text("of") or usual
    seeds = fields.count("search_seeds")
    fields.finish()
    if over is None:
        raise fields.wrong("over", 'is missing; name a swept key: over = "workload.size"')
    _swept(fields, "over", over, runs, ended)
    return None if over in ended else Best(over, of, seeds)


def _swept(
    fields: Fields, place: str, key: str, runs: Sequence[RunSpec], ended: Sequence[str]
) -> None:
    swept = list(dict.fromkeys(name for spec in runs for name in spec["swept"]))
    if key not in swept and key not in ended:
        known = suggestion(key, swept) if swept else "there is no [sweep]"
        what = "is not swept" if values_of(runs, key) else "is not a swept key"
        raise fields.wrong(place, f'"{key}" {what}; {known}')
