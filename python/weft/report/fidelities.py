"""Runs of one traffic at several fidelities, side by side: what the cheaper ones are off by.

The most exact fidelity of the runs is the one that others are compared with.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from weft._types import Row
from weft.report import column_text, text_table
from weft.study.stats import times_as_fast
from weft.study.store import text_of
from weft.units import format_time, significant

EXACT_FIRST = ("packet", "fast", "fluid")
"""Fidelities, the most exact first."""
_ORDERED = 0.1
"""Schemes that differ by more than this share ought to keep their order."""
_PERCENTILE = 0.9


@dataclass(frozen=True)
class Pair:
    """One run at two fidelities."""

    label: str
    """The swept values, and the seed where there are several."""
    place: tuple[object, ...]
    """All swept values but the scheme, and the seed: runs whose schemes compete."""
    exact: float
    """Completion time in seconds."""
    cheap: float
    times_as_fast: float
    """Time of the exact simulation over that of the cheap one."""

    @property
    def error(self) -> float:
        """Of the completion time, as a share of the exact one."""
        return self.cheap / self.exact - 1.0


@dataclass(frozen=True)
class Between:
    """All runs that were simulated at both of two fidelities."""

    exact: str
    cheap: str
    pairs: list[Pair]

    @property
    def errors(self) -> list[float]:
        """Sizes of all errors, the smallest first."""
        return sorted(abs(pair.error) for pair in self.pairs)

    @property
    def order(self) -> tuple[int, int]:
        """Pairs of schemes on one traffic that differ enough: whose order is kept, and all."""
        kept = among = 0
        for one, two in combinations(self.pairs, 2):
            if one.place == two.place and _differ(one.exact, two.exact):
                among += 1
                kept += (one.exact < two.exact) == (one.cheap < two.cheap)
        return kept, among


def _differ(one: float, two: float) -> bool:
    return max(one, two) > (1.0 + _ORDERED) * min(one, two)


def of(rows: Sequence[Row]) -> list[Between] | None:
    """Each cheaper fidelity against the most exact one; None for runs of one fidelity."""
    found = {row["fidelity"] for row in rows if "fidelity" in row}
    exact, *cheaper = [one for one in EXACT_FIRST if one in found] or EXACT_FIRST[:1]
    return [_between(exact, cheap, rows) for cheap in cheaper] or None


def _between(exact: str, cheap: str, rows: Sequence[Row]) -> Between:
    keys = [key for key in rows[0]["swept"] if key != "run.fidelity"]
    several = len({row["seed"] for row in rows}) > 1
    runs: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in rows:
        swept = tuple(text_of(row["swept"][key]) for key in keys)
        runs.setdefault((*swept, row["seed"]), {})[row["fidelity"]] = row
    pairs = []
    for (*values, seed), both in runs.items():
        if exact not in both or cheap not in both or both[exact]["cct_s"] <= 0:
            continue
        label = ", ".join([*map(str, values), *([f"seed {seed}"] if several else [])])
        place = [v for key, v in zip(keys, values, strict=True) if key != "balance.scheme"]
        faster = times_as_fast(both[exact]["wall_s"], both[cheap]["wall_s"])
        times = both[exact]["cct_s"], both[cheap]["cct_s"]
        pairs.append(Pair(label, (*place, seed), *times, faster))
    return Between(exact, cheap, pairs)


def text(found: Sequence[Between]) -> str:
    """Tables for a terminal."""
    return "\n\n".join(_table(between) for between in found)


def _table(between: Between) -> str:
    heads = ("run", between.exact, between.cheap, "difference", "times as fast")
    lines = [
        (
            pair.label,
            format_time(pair.exact),
            format_time(pair.cheap),
            column_text.signed_percent(pair.error),
            significant(pair.times_as_fast, 2),
        )
        for pair in between.pairs
    ]
    title = f"{between.cheap} against {between.exact}: completion times"
    return text_table.ruled(title, heads, lines, range(1, len(heads)), [_below(between)])


def _below(between: Between) -> str:
    errors = between.errors
    if not errors:
        return "no run finished at both"
    high = errors[min(len(errors) - 1, int(_PERCENTILE * len(errors)))]
    words = (
        f"difference: median {100 * statistics.median(errors):.1f} %, "
        f"90th percentile {100 * high:.1f} %, largest {100 * errors[-1]:.1f} %"
    )
    kept, among = between.order
    if among:
        words += (
            f"; order kept in {kept} of {among} pairs of schemes that differ by more than "
            f"{100 * _ORDERED:.0f} %"
        )
    return words
