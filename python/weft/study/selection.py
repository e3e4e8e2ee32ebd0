"""Which runs an experiment means by `where = { "balance.scheme" = "ecmp", ... }`.

A key is a swept one, or any other key of the experiment with all defaults written out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from weft._types import RunSpec
from weft.study.store import text_of
from weft.units import parse

Where = Mapping[str, Any]
"""Values by dotted key."""


def combination(swept: Mapping[str, Any], but: str | None = None) -> str:
    """What runs that differ in nothing but their seed (and the key `but`) have in common."""
    return json.dumps({key: value for key, value in swept.items() if key != but})


def same(one: object, other: object) -> bool:
    """Whether two values mean the same: 1 and 1.0, "32KB" and "0.032MB", 0.9 and "0.9"."""
    first, second = _number(one), _number(other)
    if first is None or second is None:
        return text_of(one) == text_of(other)
    return first[1] == second[1] and math.isclose(first[0], second[0], rel_tol=1e-12)


def value_of(spec: RunSpec, key: str) -> Any:
    """What a run has at a dotted key: as swept, or else as resolved; None if it has no such."""
    if key in spec["swept"]:
        return spec["swept"][key]
    found: Any = spec["experiment"]
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found


def matching(runs: Sequence[RunSpec], where: Where) -> list[RunSpec]:
    """The runs that have all these values."""
    return [
        spec
        for spec in runs
        if all(same(value_of(spec, key), value) for key, value in where.items())
    ]


def values_of(runs: Sequence[RunSpec], key: str) -> list[Any]:
    """The different values of a key, in run order; empty if no run has it."""
    values: dict[str, Any] = {}
    for spec in runs:
        value = value_of(spec, key)
        if value is not None:
            values.setdefault(text_of(value), value)
    return list(values.values())


def _number(value: object) -> tuple[float, str] | None:
    """A value and its dimension, empty for a bare number; None for a name."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value), ""
    if not isinstance(value, str):
        return None
    try:
        return float(value), ""
    except ValueError:
        return parse(value)
