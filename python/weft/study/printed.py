"""`[[printed]]`: results that a paper prints, as statements about runs of an experiment.

A statement is about one column and one selection of runs (a value), two (a ratio or a difference),
or several in an order. `weft.report.printed_comparison` compares them with results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from weft._types import RunSpec
from weft.errors import ExperimentError
from weft.study import nccl_tests
from weft.study.fields import Fields, suggestion
from weft.study.selection import combination, matching, same, value_of, values_of
from weft.study.store import text_of

Kind = Literal["value", "ratio", "difference", "order"]


@dataclass(frozen=True)
class Selection:
    """Runs that differ in their seeds only, or also in the value that a search is over."""

    where: dict[str, Any]
    combination: str = ""
    """The combination of these runs (`selection.combination`)."""
    at_best: bool = False
    """Whether `combination` leaves out the key that is searched: the best value is meant."""
    values: tuple[tuple[str, str], ...] = ()
    """What tells these runs from others of the experiment: swept keys and values."""


@dataclass(frozen=True)
class Statement:
    """One printed result."""

    place: str
    """The table in the experiment file, for messages: `printed 2`."""
    source: str
    """Where it is printed: "table 2"."""
    column: str
    kind: Kind
    selections: tuple[Selection, ...]
    """One; two of a ratio or a difference; or all of an order, the best first."""
    levels: tuple[int, ...] = ()
    """For an order: selections with the same level count as equal."""
    low: float = 0.0
    high: float = 0.0
    """The printed number, or the ends of a printed range."""
    sd: float | None = None
    """The printed standard deviation."""
    within: float | None = None
    """Tolerance of agreement, in the unit of the column."""
    sds: float | None = None
    """The same, in printed standard deviations."""
    falling: bool = False
    """For an order: whether the largest comes first."""
    optional: bool = False
    """Whether it is left out where no run has its values: a size that is not simulated."""


def read(tables: object, column: str, source: str) -> list[Statement]:
    """The statements in `[[printed]]`, one for each number and each order.

    `column` is the one that is meant where none is named.
    """
    listed = tables if isinstance(tables, list) else [tables]
    found: list[Statement] = []
    for number, table in enumerate(listed, 1):
        fields = Fields(source, f"printed {number}", table)
        found += _read_one(fields, number, column, Path(source).parent)
    return found


def _read_one(fields: Fields, number: int, column: str, folder: Path) -> list[Statement]:
    where, by = fields.table("where"), fields.text("by")
    base = Statement(
        place=f"printed {number}",
        source=fields.text("source") or "",
        column=fields.text("column") or column,
        kind="value",
        selections=(Selection(where),),
        within=fields.number("within", 0),
        sds=fields.number("sds", 0),
    )
    if fields.has("order"):
        found = [_order(fields, base, where, by)]
    elif fields.has("of"):
        found = [_pair(fields, base, where)]
    elif fields.has("nccl_tests"):
        found = _measured(fields, base, where, folder)
    elif fields.has("values"):
        found = _values(fields, base, where, by)
    else:
        found = [_number(fields, base, "value", fields.get("value"), fields.number("sd", 0))]
    fields.finish()
    return found


def _number(
    fields: Fields, base: Statement, key: str, value: object, sd: float | None
) -> Statement:
    if value is None:
        what = "is missing; write value = 1.5, value = [1.2, 1.3], values, or order"
        raise fields.wrong(key, what)
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2:
        raise fields.wrong(key, f"{value!r} is not a range; write [1.2, 1.3]")
    low, high = (fields.as_number(key, end) for end in ends)
    if low > high:
        raise fields.wrong(key, f"{value!r} is not a range; write the smaller end first")
    if base.sds is not None and sd is None:
        raise fields.wrong("sds", "there is no sd to count in; give sd, or use within")
    return replace(base, low=low, high=high, sd=sd)


def _values(
    fields: Fields, base: Statement, where: dict[str, Any], by: str | None
) -> list[Statement]:
    values, sds = fields.table("values"), fields.get("sd")
    if by is None:
        raise fields.wrong("by", 'is missing; say whose values these are: by = "balance.scheme"')
    own = fields.as_table("sd", sds) if isinstance(sds, dict) else {}
    stray = next((name for name in own if name not in values), None)
    if stray is not None:
        raise fields.wrong("sd", f"{stray} has no value; {suggestion(stray, values)}")
    found = []
    for name, value in values.items():
        sd = own.get(name) if isinstance(sds, dict) else sds
        deviation = None if sd is None else fields.as_number("sd", sd, 0)
        # Within one table some values may have no deviation, and then no tolerance in its units.
        mine = replace(base, sds=base.sds if deviation is not None or not own else None)
        mine = replace(mine, selections=(Selection(where | {by: name}),))
        found.append(_number(fields, mine, f"values.{name}", value, deviation))
    return found


def _measured(
    fields: Fields, base: Statement, where: dict[str, Any], folder: Path
) -> list[Statement]:
    """A statement for each size in the output of nccl-tests; `workload.size` tells the runs."""
    path = folder / (fields.text("nccl_tests") or "")
    column = base.column if fields.has("column") else "busbw_gb_s"
    try:
        table = nccl_tests.read(path)
    except ExperimentError as error:
        raise fields.wrong("nccl_tests", str(error)) from None
    base = replace(
        base, column=column, source=base.source or f"nccl-tests, {path.name}", optional=True
    )
    found = []
    for size, value in sorted(table.column(column).items()):
        mine = replace(base, selections=(Selection(where | {"workload.size": f"{size}B"}),))
        found.append(_number(fields, mine, "nccl_tests", value, None))
    return found


def _pair(fields: Fields, base: Statement, where: dict[str, Any]) -> Statement:
    of, over, minus = fields.table("of"), fields.get("over"), fields.get("minus")
    if (over is None) == (minus is None):
        raise fields.wrong("of", "needs one other selection: give over (a ratio) or minus")
    against = fields.as_table("over" if minus is None else "minus", over or minus)
    pair = (Selection(where | of), Selection(where | against))
    kind: Kind = "ratio" if minus is None else "difference"
    base = replace(base, kind=kind, selections=pair)
    return _number(fields, base, "value", fields.get("value"), fields.number("sd", 0))


def _order(fields: Fields, base: Statement, where: dict[str, Any], by: str | None) -> Statement:
    order, first = fields.get("order"), fields.text("first") or "smallest"
    if first not in ("smallest", "largest"):
        raise fields.wrong("first", f'"{first}" is unknown; use smallest or largest')
    if not isinstance(order, list) or len(order) < 2:
        raise fields.wrong("order", 'is not an order; write order = ["best", "second", ...]')
    selections, levels = [], []
    for level, entry in enumerate(order):
        for one in entry if isinstance(entry, list) else [entry]:
            if not isinstance(one, dict) and by is None:
                what = 'is missing; say whose values are in order: by = "balance.scheme"'
                raise fields.wrong("by", what)
            own = fields.as_table("order", one) if by is None else {by: one}
            selections.append(Selection(where | own))
            levels.append(level)
    return replace(
        base,
        kind="order",
        selections=tuple(selections),
        levels=tuple(levels),
        falling=first == "largest",
    )


def resolve(
    statements: Sequence[Statement],
    runs: Sequence[RunSpec],
    ended: Sequence[str],
    over: str | None,
    source: str,
    changed: bool,
) -> tuple[Statement, ...]:
    """The statements with the combinations that they are about.

    `over` is the key that a search is over, which a selection may leave open. One that is about
    no run is refused, or left out if the runs were `changed` by options.
    """
    found = []
    for statement in statements:
        may_lack = changed or statement.optional
        selections = [
            _resolved(one, runs, ended, over, f"{source}: {statement.place}", may_lack)
            for one in statement.selections
        ]
        chosen = [one for one in selections if one is not None]
        if len(chosen) == len(selections):
            found.append(replace(statement, selections=tuple(chosen)))
    for place in {one.place for one in statements if one.optional}:
        if not changed and not any(one.place == place for one in found):
            what = "no run has a size that was measured; sweep workload.size over some of them"
            raise ExperimentError(f"{source}: {place}: nccl_tests: {what}")
    return tuple(found)


def _resolved(
    selection: Selection,
    runs: Sequence[RunSpec],
    ended: Sequence[str],
    over: str | None,
    place: str,
    changed: bool,
) -> Selection | None:
    chosen = matching(runs, selection.where)
    if not chosen:
        missing = _why_none(selection, runs, ended, place)
        if changed:
            return None
        raise ExperimentError(missing)
    but = over if over not in selection.where else None
    combinations = {combination(spec["swept"], but) for spec in chosen}
    if len(combinations) > 1:
        open_keys = {
            key: values_of(chosen, key)
            for key in chosen[0]["swept"]
            if key != but and len(values_of(chosen, key)) > 1
        }
        key, values = next(iter(open_keys.items()), ("", []))
        listed = ", ".join(text_of(value) for value in values)
        raise ExperimentError(f"{place}: where: leaves {key} open; say which of {listed}")
    telling = _distinguishing(runs, chosen[0], but)
    return Selection(selection.where, combinations.pop(), but is not None, telling)


def _why_none(
    selection: Selection, runs: Sequence[RunSpec], ended: Sequence[str], place: str
) -> str:
    """Why no run has these values; refuses keys that no run has at all."""
    for key, value in selection.where.items():
        values = values_of(runs, key)
        if not values and key not in ended:
            swept = list(dict.fromkeys(name for spec in runs for name in spec["swept"]))
            near = suggestion(key, swept)
            raise ExperimentError(f'{place}: where: "{key}" is not a key of the experiment; {near}')
        if not any(same(one, value) for one in values):
            near = suggestion(text_of(value), map(text_of, values))
            return f"{place}: where: no run has {key} = {text_of(value)}; {near}"
    pairs = ", ".join(f"{key} = {text_of(value)}" for key, value in selection.where.items())
    return f"{place}: where: no run has {pairs} together; look at [sweep]"


def _distinguishing(
    runs: Sequence[RunSpec], one: RunSpec, but: str | None
) -> tuple[tuple[str, str], ...]:
    """The values of the swept keys that vary, in the order of the sweep."""
    varying = [key for key in one["swept"] if key != but and len(values_of(runs, key)) > 1]
    return tuple((key, text_of(value_of(one, key))) for key in varying)
