"""Whether a fabric carries a workload, for each combination of an experiment: `weft capacity`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from weft import _native
from weft._types import Capacity, CapacityAnswer, Inequality, RunSpec
from weft.report.grouping import key_name
from weft.study.inputs import Experiment
from weft.study.store import text_of
from weft.units import format_time

_RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
_INDENT = "    "
_MOST_DIGITS = 9


def of(experiment: Experiment, seed: int | None = None) -> list[CapacityAnswer]:
    """One answer a combination, in the order of the sweep, under `seed` or its first seed."""
    firsts: dict[str, RunSpec] = {}
    for spec in experiment.runs:
        firsts.setdefault(json.dumps(spec["swept"]), spec)
    known: dict[str, Capacity] = {}
    answers: list[CapacityAnswer] = []
    for spec in firsts.values():
        drawn = spec["seed"] if seed is None else seed
        matters = json.dumps([_what_matters(spec["experiment"]), drawn])
        if matters not in known:
            known[matters] = _native.capacity(json.dumps(spec["experiment"]), drawn)
        answers.append(
            {
                "experiment": experiment.name,
                "label": spec["label"],
                "swept": spec["swept"],
                "seed": drawn,
                **known[matters],
            }
        )
    return answers


def _what_matters(experiment: dict[str, Any]) -> dict[str, Any]:
    """An experiment without what changes neither capacities nor demands.

    So a sweep over schemes asks once.
    """
    parts = {
        key: part for key, part in experiment.items() if key not in ("balance", "probe", "run")
    }
    parts["fabric"] = {key: value for key, value in parts["fabric"].items() if key != "switch"}
    rates = ("congestion", "rate", "rate_coefficient")
    parts["transport"] = {key: experiment["transport"].get(key) for key in rates}
    return parts


def text(answers: Sequence[CapacityAnswer], title: str, width: int) -> str:
    """The answers for a terminal of `width` columns: a line each, bottlenecks below if need be."""
    columns = _columns(answers)
    heads = [head for head, _ in columns]
    grid = [[shown(one) for _, shown in columns] for one in answers]
    widths = [max(map(len, column)) for column in zip(heads, *grid, strict=True)]
    bottlenecks = [one["bottleneck"]["words"] if one["bottleneck"] else "" for one in answers]
    size = sum(widths) + 2 * len(widths) + max(map(len, ["bottleneck", *bottlenecks]))
    fits = size <= width
    body = []
    for cells, words in zip(grid, bottlenecks, strict=True):
        body.append(_row(cells, widths, words if fits else ""))
        body += [] if fits else [_INDENT + words]
    rule = _RULE * (size if fits else min(width, sum(widths) + 2 * (len(widths) - 1)))
    head = _row(heads, widths, "bottleneck" if fits else "")
    return "\n".join([title, rule, head, rule, *body, rule, *_below(answers)])


Column = tuple[str, Callable[[CapacityAnswer], str]]


def _columns(answers: Sequence[CapacityAnswer]) -> list[Column]:
    """What to show besides bottlenecks, under which title."""
    swept = [(key_name(key), _value_of(key)) for key in answers[0]["swept"]]
    columns: list[Column] = swept or [("scheme", lambda one: one["label"])]
    columns += [
        ("enough", lambda one: one["answer"]),
        ("carried", lambda one: _share(one["factor"])),
        ("limit", lambda one: _share(one["limit"])),
    ]
    if _changes(answers):
        columns.append(("from", lambda one: format_time(one["at_s"])))
    if _printed(answers):
        columns.append(("eq. 2", lambda one: _holds(one, lambda said: said["with_part_lost"])))
        columns.append(("p kept", lambda one: _holds(one, lambda said: said["with_part_kept"])))
    return columns


def _value_of(key: str) -> Callable[[CapacityAnswer], str]:
    return lambda one: text_of(one["swept"][key])


def _share(value: float) -> str:
    """With enough digits that what is less than all does not look like it."""
    digits = 4
    while value < 1 and round(value, digits) >= 1 and digits < _MOST_DIGITS:
        digits += 1
    return f"{value:.{digits}f}"


def _changes(answers: Sequence[CapacityAnswer]) -> bool:
    return any(len(one["times"]) > 1 for one in answers)


def _printed(answers: Sequence[CapacityAnswer]) -> bool:
    return any(one["inequality"] for one in answers)


def _holds(one: CapacityAnswer, how: Callable[[Inequality], bool]) -> str:
    said = one["inequality"]
    return "" if said is None else "yes" if how(said) else "no"


def _row(cells: Sequence[str], widths: Sequence[int], last: str) -> str:
    padded = [f"{cell:<{size}}" for cell, size in zip(cells, widths, strict=True)]
    return "  ".join([*padded, last]).rstrip()


def _below(answers: Sequence[CapacityAnswer]) -> list[str]:
    """What the columns mean."""
    seeds = sorted({one["seed"] for one in answers})
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    said = [
        f"{seed}; carried: share of all demands at the same time, split freely over shortest paths"
    ]
    if _changes(answers):
        said.append("from: the time from which the least is carried")
    if _printed(answers):
        said.append(
            "eq. 2: the inequality of McClure et al. (2025) as printed; p kept: with p the part "
            "of the bandwidth that is kept"
        )
    return said
