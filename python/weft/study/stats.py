"""Means over seeds, what a sample tells of the rest, and how sure both are."""

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

DOUBT = 0.05
"""What confidence leaves open: one less 95 %."""
_ROUNDING = 1e-12
"""Samples that differ by this share of their mean are equal: the mean itself is rounded."""
_SHORTEST_S = 1e-6
"""A time below this counts as long as this where others are divided by it."""


def student_t95(freedom: int) -> float:
    """The factor on the standard error of a mean, for `freedom` = samples - 1, at least 1."""
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    # First terms of the Cornish-Fisher series around the normal quantile: right to 1e-3 here.
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def seeds_text(fewest: int, most: int) -> str:
    """The number of seeds of a mean as text: `3 seeds`, or `2 to 3 seeds`."""
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
    """Standard deviation of the samples (n - 1)."""

    def over(self, scale: float) -> Mean:
        """The mean in another unit: divided by `scale`."""
        half, sd = (None if own is None else own / scale for own in (self.half, self.sd))
        return Mean(self.value / scale, half, self.samples, sd)

    def includes(self, value: float) -> bool:
        """Whether the confidence interval includes a value; no for a single sample."""
        return bool(self.half) and abs(self.value - value) <= (self.half or 0.0)


def mean(samples: Sequence[float]) -> Mean:
    """The mean over seeds of at least one sample."""
    count = len(samples)
    value = math.fsum(samples) / count
    return around(value, [sample - value for sample in samples])


def around(value: float, deviations: Sequence[float]) -> Mean:
    """A value from which each sample deviates by so much."""
    count = len(deviations)
    if count < 2:
        return Mean(value, None, count)
    if max(map(abs, deviations)) <= _ROUNDING * abs(value):
        return Mean(value, 0.0, count, 0.0)
    sd = math.sqrt(math.fsum(one**2 for one in deviations) / (count - 1))
    return Mean(value, student_t95(count - 1) * sd / math.sqrt(count), count, sd)


def most_larger(total: int, drawn: int) -> int:
    """The most of `total` values that may be larger than the largest of `drawn` of them.

    With 95 % confidence and whatever the values are, if they were drawn at random without
    replacement. All that were not drawn (`total - drawn`) if so few tell nothing.
    """
    # More than k values are larger than the largest drawn one only if none of the k + 1 largest
    # was drawn, which has the probability C(total - k - 1, drawn) / C(total, drawn). That is the
    # one-sided tolerance limit of Wilks (Determination of sample sizes for setting tolerance
    # limits, Ann. Math. Stat. 12, 1941) for a finite population: for a large one k / total becomes
    # 1 - 0.05^(1 / drawn), and equal values only make it safer.
    missed = 1.0
    for larger in range(total - drawn):
        missed *= (total - drawn - larger) / (total - larger)
        if missed <= DOUBT:
            return larger
    return total - drawn


def times_as_fast(slow_s: float, fast_s: float) -> float:
    """How many times one time (seconds) goes into another one, however short they are."""
    return max(slow_s, _SHORTEST_S) / max(fast_s, _SHORTEST_S)
