"""Runs of made-up experiments: specs and rows of every combination of some values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft._types import Row, RunSpec

Swept = Mapping[str, Sequence[Any]]


def specs(swept: Swept, seeds: int = 3, **resolved: Any) -> list[RunSpec]:
    """The runs of a sweep, seeds fastest; `resolved` is the rest of the experiment."""
    found: list[RunSpec] = []
    for values in itertools.product(*swept.values()):
        one = dict(zip(swept, values, strict=True))
        label = ", ".join(map(str, values))
        for seed in range(1, seeds + 1):
            key = f"{label} {seed}"
            found.append(
                {"experiment": resolved, "seed": seed, "key": key, "swept": one, "label": label}
            )
    return found


def row_of(spec: RunSpec, **columns: float) -> Row:
    """What a run might leave."""
    scheme = spec["swept"].get("balance.scheme", "ecmp")
    times = columns.get("normalised", 2.0)
    usual = {"cct_s": times * 1e-5, "bound_s": 1e-5, "slowdown": times, "normalised": times}
    usual |= {"drops": 0}
    who = {"scheme": scheme, "seed": spec["seed"], "hosts": 4, "swept": spec["swept"]}
    return who | usual | columns


def rows(runs: Sequence[RunSpec], normalised: Callable[[RunSpec], float]) -> list[Row]:
    """A row a run, with a normalised completion time."""
    return [row_of(spec, normalised=normalised(spec)) for spec in runs]
