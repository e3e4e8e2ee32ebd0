"""Means over seeds and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def student_t95(freedom: int) -> float:
    """The factor on the standard error of a mean, for `freedom` = samples - 1, at least 1."""
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    # First terms of the Cornish-Fisher series around the normal quantile: right to 1e-3 here.
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def counted(fewest: int, most: int) -> str:
    """How many seeds means are made of: `3 seeds`, or `2 to 3 seeds`."""
    return f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"


@dataclass(frozen=True)
class Mean:
    """A mean, the half width of its 95 % confidence interval, and the standard deviation.

    The latter two are None for a single sample.
    """

    value: float
    half: float | None
    samples: int
    sd: float | None = None
    """Of the samples, as an estimate for all there could be (n - 1)."""


def mean(samples: Sequence[float]) -> Mean:
    """The mean over seeds of at least one sample."""
    count = len(samples)
    value = math.fsum(samples) / count
    if count < 2:
        return Mean(value, None, count)
    variance = math.fsum((sample - value) ** 2 for sample in samples) / (count - 1)
    half = student_t95(count - 1) * math.sqrt(variance / count)
    return Mean(value, half, count, math.sqrt(variance))
