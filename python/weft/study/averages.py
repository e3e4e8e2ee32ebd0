"""How a result column is averaged over seeds, and how two averages are compared.

An average is a sum over seeds over another. Of most columns it is the arithmetic mean. Of a time
over one of the run's own (`slowdown`, `normalised`) it is the mean time over the mean of what it is
compared with, and of a bandwidth all bytes over all time: a mean of ratios may order two schemes
otherwise than their mean times do. So columns of one table agree, and a comparison of two averages
is of the numbers shown.

Comparisons are paired, since the same seed gives every scheme the same traffic. Confidence
intervals are Student's t over the deviations of each seed, to the first order (the ratio estimator:
Cochran, Sampling Techniques, 3rd edition, chapter 6; of a mean the usual interval).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weft._types import Row
from weft.study import stats

_OVER_OWN_TIME = ("slowdown", "normalised")
"""Completion times over a time that the run has of its own."""
_RATES = ("busbw_gb_s", "algbw_gb_s", "bus_bytes_per_s", "of_bound")
"""The same bytes, or the same bound, over a time."""


@dataclass(frozen=True)
class Average:
    """An average, and the influence of each seed on it."""

    value: float
    deviations: Mapping[int, float]

    def mean(self) -> stats.Mean:
        """The average with its confidence interval."""
        return stats.around(self.value, list(self.deviations.values()))


def of(column: str, rows: Sequence[Row]) -> stats.Mean:
    """The average of a column over the rows of a cell, one a seed; there is at least one.

    Not a number where a run does not tell.
    """
    values = [number(row, column) for row in rows]
    if any(map(math.isnan, values)):
        return stats.Mean(math.nan, None, len(rows))
    return replace(_average(column, rows).mean(), sd=stats.mean(values).sd)


def number(row: Row, column: str) -> float:
    """A value of a row; not a number where the run does not tell (`run.fidelity`)."""
    value: float | None = row[column]
    return math.nan if value is None else value


def ratio(column: str, rows: Sequence[Row], base: Sequence[Row]) -> stats.Mean | None:
    """The average of some rows over that of others, of the seeds that both have.

    None if they have none in common, or there is nothing to divide by.
    """
    both = _common(column, rows, base)
    if both is None or both[1].value == 0:
        return None
    over, under = both
    value = over.value / under.value
    off = {
        seed: (own - value * under.deviations[seed]) / under.value
        for seed, own in over.deviations.items()
    }
    return Average(value, off).mean()


def difference(column: str, rows: Sequence[Row], base: Sequence[Row]) -> stats.Mean | None:
    """The average of some rows less that of others, of the seeds that both have, if any."""
    both = _common(column, rows, base)
    if both is None:
        return None
    left, right = both
    off = {seed: own - right.deviations[seed] for seed, own in left.deviations.items()}
    return Average(left.value - right.value, off).mean()


def same_seeds(rows: Sequence[Row], base: Sequence[Row]) -> bool:
    """Whether two cells are of the same seeds: else their averages are of other traffic."""
    return {row["seed"] for row in rows} == {row["seed"] for row in base}


def _common(
    column: str, rows: Sequence[Row], base: Sequence[Row]
) -> tuple[Average, Average] | None:
    seeds = {row["seed"] for row in rows} & {row["seed"] for row in base}
    if not seeds:
        return None
    mine, theirs = ([row for row in some if row["seed"] in seeds] for some in (rows, base))
    return _average(column, mine), _average(column, theirs)


def _average(column: str, rows: Sequence[Row]) -> Average:
    parts = _parts(column, rows)
    count = len(rows)
    under = math.fsum(own for _, own in parts) / count
    value = math.fsum(own for own, _ in parts) / count / under
    return Average(
        value,
        {
            row["seed"]: (over - value * own) / under
            for row, (over, own) in zip(rows, parts, strict=True)
        },
    )


def _parts(column: str, rows: Sequence[Row]) -> list[tuple[float, float]]:
    """For each row, the summand of the numerator and that of the denominator."""
    if all(number(row, column) > 0 for row in rows):
        if column in _OVER_OWN_TIME:
            return [(row["cct_s"], row["cct_s"] / row[column]) for row in rows]
        if column in _RATES:
            return [(1.0, 1.0 / row[column]) for row in rows]
    return [(number(row, column), 1.0) for row in rows]
