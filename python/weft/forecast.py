"""How long a sweep will still take, told from the runs that have ended."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from weft._types import RunSpec


class Forecast:
    """Seconds left, if runs that differ in their seed only take equally long.

    Of a combination that has not run yet the mean of all is expected, so this gets right once
    the first seed of every combination has run; sweeps run seed by seed for that reason.
    """

    def __init__(self, side_by_side: int) -> None:
        self._workers = side_by_side
        self._left: dict[str, int] = {}
        self._took: dict[str, list[float]] = {}
        self._later = 0

    def add(self, runs: Iterable[RunSpec], later: int = 0) -> None:
        """Expect these runs, and so many `later` ones that are not known yet."""
        for spec in runs:
            kind = _kind(spec)
            self._left[kind] = self._left.get(kind, 0) + 1
        self._later = later

    def ended(self, spec: RunSpec, seconds: float) -> None:
        """A run that was expected took so long."""
        kind = _kind(spec)
        self._left[kind] -= 1
        self._took.setdefault(kind, []).append(seconds)

    def left(self) -> float | None:
        """Seconds until all have ended; None before any has."""
        everything = [seconds for took in self._took.values() for seconds in took]
        if not everything:
            return None
        usual = math.fsum(everything) / len(everything)
        total = self._later * usual
        for kind, count in self._left.items():
            took = self._took.get(kind)
            total += count * (math.fsum(took) / len(took) if took else usual)
        return total / self._workers


def _kind(spec: RunSpec) -> str:
    return json.dumps(spec["experiment"])
