"""Progress of a sweep, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from weft._types import Row
from weft.study.forecast import ActiveRun
from weft.units import bytes_unit, format_duration, format_time, significant

_NAME, _BAR = 22, 10
"""Columns: a line of the bar fits a terminal of 80."""
_SOON = 5.0
"""Seconds between two lines, at least: short runs have a line each anyway."""
_FEW = 20
"""So many runs have a line each; of more there is one for each tenth."""


class ProgressReporter(Protocol):
    """Shows the progress of a sweep. Called from the main thread only."""

    def start(self, total: int, kept: int) -> None:
        """`total` runs are wanted, `kept` of them are on disk already."""

    def expect(self, seconds: float | None) -> None:
        """Expect so many seconds until the end; None if unknown."""

    def announce(self, line: str) -> None:
        """Print how much work there is, before it is done."""

    def under_way(self, runs: Sequence[ActiveRun]) -> None:
        """How far the active runs are."""

    def finished(self, name: str, row: Row | None) -> None:
        """A run ended; `row` is None if it has no result: it stalled, or was refused or lost."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Silent:
    """Says nothing."""

    def start(self, total: int, kept: int) -> None:
        """Nothing to say."""

    def expect(self, seconds: float | None) -> None:
        """Nothing to say."""

    def announce(self, line: str) -> None:
        """Nothing to say."""

    def under_way(self, runs: Sequence[ActiveRun]) -> None:
        """Nothing to say."""

    def finished(self, name: str, row: Row | None) -> None:
        """Nothing to say."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Lines(Silent):
    """For logs and pipes: one line a run, or one for each tenth of many runs.

    Of work that takes long there is one for each ten percent, too.
    """

    def __init__(self) -> None:
        self._total = self._done = self._tenths = 0
        self._began = self._said = time.monotonic()
        self._left: float | None = None

    def start(self, total: int, kept: int) -> None:
        """Says how much there is to do."""
        self._total, self._done, self._tenths = total, kept, 10 * kept // total
        if kept:
            print(f"{kept} of {total} runs are done already", file=sys.stderr)

    def expect(self, seconds: float | None) -> None:
        """Keeps it for the next line of a minute."""
        self._left = seconds

    def announce(self, line: str) -> None:
        """Says it."""
        print(line, file=sys.stderr, flush=True)

    def under_way(self, runs: Sequence[ActiveRun]) -> None:
        """Says how far it all is, once for each ten percent."""
        now = time.monotonic()
        share = (self._done + sum(run.share for run in runs)) / self._total
        tenths = int(10 * share)
        if tenths <= self._tenths or now - self._said < _SOON or self._left is None:
            return
        arrived = f"{delivered(runs)} delivered, " if delivered(runs) else ""
        so_far = f"{arrived}{now - self._began:.0f} s"
        line = f"[{self._done}/{self._total}] {100 * share:.0f} % of the work ({so_far})"
        print(f"{line}, about {format_duration(self._left)} left", file=sys.stderr, flush=True)
        self._said, self._tenths = now, tenths

    def finished(self, name: str, row: Row | None) -> None:
        """Says what came out, and the time since the start; of many runs how many are done."""
        self._done += 1
        tenths = 10 * self._done // self._total
        if row is None or self._total <= _FEW:
            result = f"CCT {format_time(row['cct_s'])}" if row else "no result"
            self._say(f"{name}: {result}", tenths)
        elif tenths > self._tenths or self._done == self._total:
            self._say("runs are done", tenths, self._left)
            self._left = None  # Until there is a newer one.

    def _say(self, what: str, tenths: int, left: float | None = None) -> None:
        self._said, self._tenths = time.monotonic(), tenths
        more = f", about {format_duration(left)} left" if left and left >= _SOON else ""
        line = f"[{self._done}/{self._total}] {what} ({self._said - self._began:.1f} s){more}"
        print(line, file=sys.stderr, flush=True)


class Bar(Silent):
    """A bar with the time left, for a terminal."""

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(_BAR),
            progress.TextColumn("{task.fields[runs]}"),
            progress.TaskProgressColumn(),
            progress.TextColumn("[dim]{task.fields[delivered]}"),
            progress.TimeElapsedColumn(),
            progress.TextColumn("[dim]left"),
            progress.TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("simulating", total=None, left="?", runs="", delivered="")
        self._done = self._total = 0

    def start(self, total: int, kept: int) -> None:
        """Draws the bar, what is kept counted as done."""
        self._total = total
        self._bar.update(self._task, total=total)
        # Kept runs must not make the remaining ones look fast: restart the clock behind them.
        self._bar.update(self._task, completed=kept)
        self._bar.reset(self._task, completed=kept, total=total)
        self._done = kept
        self._bar.update(self._task, runs=f"{kept}/{total} runs")

    def expect(self, seconds: float | None) -> None:
        """Shows the time left."""
        self._bar.update(self._task, left="?" if seconds is None else clock(seconds))

    def announce(self, line: str) -> None:
        """Says it above the bar."""
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def under_way(self, runs: Sequence[ActiveRun]) -> None:
        """Moves the bar by what is done of runs that go on, and says what has arrived in them."""
        share = sum(run.share for run in runs)
        self._bar.update(self._task, completed=self._done + share, delivered=delivered(runs))

    def finished(self, name: str, row: Row | None) -> None:
        """Moves the bar."""
        self._done += 1
        # The end of a long name tells runs apart better than its beginning.
        shown = name if len(name) <= _NAME else f"\N{HORIZONTAL ELLIPSIS}{name[1 - _NAME :]}"
        runs = f"{self._done}/{self._total} runs"
        self._bar.update(
            self._task, completed=self._done, runs=runs, description=f"{shown:{_NAME}s}"
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def delivered(runs: Sequence[ActiveRun]) -> str:
    """How much of the payload of the active runs has arrived: `1.20 of 4.00 GB`."""
    total = sum(run.payload for run in runs)
    if not total:
        return ""
    scale, unit = bytes_unit([total])
    done = sum(run.share * run.payload for run in runs)
    return f"{significant(done / scale, 3)} of {significant(total / scale, 3)} {unit}"


def clock(seconds: float) -> str:
    """`0:07`, `12:34`, `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def reporter(quiet: bool) -> ProgressReporter:
    """The reporter for standard error: none, a bar in a terminal, else lines."""
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()
