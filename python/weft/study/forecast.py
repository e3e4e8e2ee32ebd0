"""How long a sweep will still take, estimated from the runs that have ended and the active ones."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from weft._types import RunSpec
from weft.units import format_duration

_SOON = 0.1
"""Seconds after which the speed of a simulation is a useful estimate."""
_LONG = 30.0
"""Seconds of work from which on it is announced."""


@dataclass(frozen=True)
class ActiveRun:
    """A run that has begun, as `_native.Progress` reports it."""

    kind: str
    hops: int
    """Packet-hops at least."""
    share: float
    """Share of the data packets that have arrived."""
    seconds: float
    """Running time so far."""
    first: tuple[float, float] = (0.0, 0.0)
    """Seconds and share when packets were first seen: a job may compute for long before."""
    payload: int = 0
    """Bytes of all messages."""

    def total_time(self) -> float | None:
        """Expected seconds of the whole run; None while unknown."""
        began, share = self.first
        took, gained = self.seconds - began, self.share - share
        return began + took / gained * (1 - share) if took >= _SOON and gained > 0 else None


@dataclass(frozen=True)
class _Times:
    """How long some runs took: sums, since thousands of runs are asked about again and again."""

    total: float = 0.0
    count: int = 0

    def and_one(self, seconds: float) -> _Times:
        return _Times(self.total + seconds, self.count + 1)

    @property
    def mean(self) -> float:
        return self.total / self.count


class Forecast:
    """Seconds left, if runs that differ in their seed only take equally long.

    Runs under way are expected to go on as they have begun. Of a combination that has not begun yet
    the mean of all is expected, so this gets right once the first seed of every combination has
    run; sweeps run seed by seed for that reason.
    """

    def __init__(self, side_by_side: int) -> None:
        self.side_by_side = side_by_side
        """How many runs go on at the same time."""
        self._left: dict[str, int] = {}
        self._took: dict[str, _Times] = {}
        self._all = _Times()
        self._under_way: list[ActiveRun] = []
        self._later = 0
        self._told = False

    def add(self, runs: Iterable[RunSpec], later: int = 0) -> None:
        """Expect these runs, and so many `later` ones that are not known yet."""
        for spec in runs:
            kind = kind_of(spec)
            self._left[kind] = self._left.get(kind, 0) + 1
        self._later = later

    def ended(self, spec: RunSpec, seconds: float) -> None:
        """A run that was expected took so long."""
        kind = kind_of(spec)
        self._left[kind] -= 1
        self._took[kind] = self._took.get(kind, _Times()).and_one(seconds)
        self._all = self._all.and_one(seconds)

    def expected(self, spec: RunSpec) -> float | None:
        """Seconds that a run should take; None before any has ended."""
        times = self._took.get(kind_of(spec), self._all)
        return times.mean if times.count else None

    def update(self, under_way: Iterable[ActiveRun]) -> None:
        """Set the runs that are active."""
        self._under_way = list(under_way)

    def time_left(self) -> float | None:
        """Seconds until all have ended; None before any has, or tells how long it will take."""
        took, everything = dict(self._took), self._all
        rest = [0.0]
        for run in self._under_way:
            whole = run.total_time()
            if whole is not None:
                took[run.kind] = took.get(run.kind, _Times()).and_one(whole)
                everything = everything.and_one(whole)
                rest.append(whole - run.seconds)
        if not everything.count:
            return None
        total = self._later * everything.mean - math.fsum(run.seconds for run in self._under_way)
        for kind, count in self._left.items():
            total += count * took.get(kind, everything).mean
        return max(total / self.side_by_side, *rest)

    def announcement(self, cores: int) -> str | None:
        """One line about work that takes long, once; None if there is nothing to announce."""
        left = None if self._told or not self._under_way else self.time_left()
        if left is None or left < _LONG:
            return None
        self._told = True
        hops = max(run.hops for run in self._under_way)
        runs = sum(self._left.values()) + self._later
        size = f"about {format_hops(hops)}" if runs == 1 else f"{runs} runs of {format_hops(hops)}"
        on = f"{cores} core{'s' * (cores > 1)}"
        return f"{size}, about {format_duration(left)} on {on}"


def format_hops(hops: int) -> str:
    """`3.1e9 packet-hops`."""
    digits, _, power = f"{hops:.1e}".partition("e")
    return f"{hops} packet-hops" if hops < 10_000 else f"{digits}e{int(power)} packet-hops"


def kind_of(spec: RunSpec) -> str:
    """A key that is equal for runs that differ only in their seed."""
    return json.dumps(spec["experiment"])
