"""Running what is missing of a set of runs, side by side.

Each run is put into the store the moment it ends, so that nothing finished is ever lost. The
order of the results is that of the runs, whatever the number of workers: nothing here may
let timing decide what ends up in a result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from weft import _native
from weft._types import Row, RunSpec
from weft.errors import ExperimentError, LostRunError, StallError
from weft.study.executor import Ended, Executor, Parallelism
from weft.study.forecast import ActiveRun, Forecast
from weft.study.progress import ProgressReporter
from weft.study.store import Store

_POLL_S = 0.25
"""Seconds between looks at runs under way."""
_TRIAL_S = 0.5
"""Seconds after which the speed of a run is known well enough."""


@dataclass
class SweepResult:
    """How a sweep ended."""

    total: int
    done: int = 0
    stalls: list[str] = field(default_factory=list)
    """One line a run that stalled, or was refused where that ends nothing; in run order."""
    interrupted: bool = False
    lost: list[str] = field(default_factory=list)
    """One line a run whose workers ended, again and again."""
    stalled: dict[str, str] = field(default_factory=dict)
    """By key: what waits for what in a run that stalled; in run order."""


def run_name(spec: RunSpec) -> str:
    """What tells a run from the others of its experiment."""
    return f"{spec['label']} seed {spec['seed']}"


@dataclass(frozen=True)
class Shard:
    """One of several shares of the runs of a study."""

    number: int
    """From 1 on."""
    of: int

    def share(self, runs: Iterable[RunSpec]) -> list[RunSpec]:
        """Its runs: as many as in any other, or one more or less.

        Dealt out in turn, and every turn begins with another shard: else one of two shards might
        have all the runs of one of two schemes.
        """
        distinct = list({spec["key"]: spec for spec in runs}.values())
        return [
            spec
            for place, spec in enumerate(distinct)
            if (place + place // self.of) % self.of == self.number - 1
        ]


@dataclass(frozen=True)
class LaterRuns:
    """Runs that are known only when others have ended."""

    runs: Callable[[], Sequence[RunSpec]]
    """All runs that are wanted, the earlier ones among them; called once those have ended."""
    expected: int
    """How many they will add."""


def execute(
    runs: Sequence[RunSpec],
    store: Store,
    parallelism: Parallelism,
    reporter: ProgressReporter,
    name: Callable[[RunSpec], str] = run_name,
    later: LaterRuns | None = None,
    on_row: Callable[[Row], None] | None = None,
    past_refused: bool = False,
) -> SweepResult:
    """Simulate those of `runs` that `store` does not have, side by side as `parallelism` says.

    `name` says what a run is called in progress lines and in the result. `on_row` gets the row of
    every run that ends, and may refuse to go on by raising.
    Ctrl-C stops the running simulations and returns with `interrupted` set. A stalled run is
    noted and the others go on, and so, if `past_refused`, is one that cannot be simulated (an
    ExperimentError, as for lack of memory); any other failure stops everything and is raised.
    """
    sweep = _Sweep(store, parallelism, reporter, name, on_row, past_refused)
    sweep.round(runs, later.expected if later else 0)
    if later is not None and not sweep.interrupted:
        sweep.round(later.runs(), 0)
    return sweep.result()


class _Sweep:
    """One call of `execute`: what is wanted and how it went so far."""

    def __init__(
        self,
        store: Store,
        parallelism: Parallelism,
        reporter: ProgressReporter,
        name: Callable[[RunSpec], str],
        on_row: Callable[[Row], None] | None,
        past_refused: bool,
    ) -> None:
        self._store, self._parallelism, self._reporter = store, parallelism, reporter
        self._name, self._on_row, self._past_refused = name, on_row, past_refused
        self._wanted: dict[str, RunSpec] = {}
        self._stalls: dict[str, str] = {}
        self._stalled: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._forecast: Forecast | None = None
        self.interrupted = False

    def round(self, runs: Sequence[RunSpec], expected: int) -> None:
        """Simulate what is missing of `runs`; so many are `expected` after them."""
        for spec in runs:
            self._wanted.setdefault(spec["key"], spec)
        missing = self._missing()
        if not missing:
            return
        executor = self._parallelism.executor(len(missing))
        first, forecast = self._forecast is None, self._forecast or Forecast(1)
        self._forecast = forecast
        forecast.add(missing, expected)
        # The reporter inside the executor: after an error it is gone before the executor waits.
        with executor, self._reporter:
            if first:
                total = len(self._wanted) + expected
                self._reporter.start(total, len(self._wanted) - len(missing))
            try:
                self._run(missing, executor, forecast)
            except BaseException as error:
                executor.cancel()
                if not isinstance(error, KeyboardInterrupt):
                    raise
                self.interrupted = True

    def _missing(self) -> list[RunSpec]:
        """What is neither there nor given up, seed by seed: see `Forecast`."""
        missing = [
            spec
            for key, spec in self._wanted.items()
            if not (key in self._stalls or key in self._lost or self._store.has(key))
        ]
        ranks = {seed: rank for rank, seed in enumerate(dict.fromkeys(s["seed"] for s in missing))}
        return sorted(missing, key=lambda spec: ranks[spec["seed"]])

    def _run(self, missing: Sequence[RunSpec], executor: Executor, forecast: Forecast) -> None:
        executor.begin(missing, self._store, forecast)
        # Who simulates, before the first run that has ended.
        self._tell(executor)
        left, looked = len(missing), 0.0
        while left:
            some = executor.ended(_POLL_S)
            self._tell(executor)
            left -= len(some)
            for one in some:
                self._ended(one, forecast)
            if time.monotonic() - looked >= _POLL_S or not left:
                self._look(executor, forecast)
                looked = time.monotonic()

    def _tell(self, executor: Executor) -> None:
        for remark in executor.remarks():
            self._reporter.announce(remark)

    def _look(self, executor: Executor, forecast: Forecast) -> None:
        """Tell the reporter how far the runs are that have begun."""
        begun = list(executor.active())
        forecast.side_by_side = max(1, executor.side_by_side)
        forecast.update(begun)
        line = forecast.announcement(executor.cores)
        if line is not None:
            self._reporter.announce(line)
        self._reporter.expect(forecast.time_left())
        self._reporter.under_way(begun)

    def _ended(self, one: Ended, forecast: Forecast) -> None:
        called = self._name(one.spec)
        if one.error is not None:
            self._failed(one.spec["key"], called, one.error)
        elif one.row is not None and self._on_row is not None:
            self._on_row(one.row)
        forecast.ended(one.spec, one.seconds)
        self._reporter.finished(called, one.row)

    def _failed(self, key: str, called: str, error: BaseException) -> None:
        """Note what ends nothing; raise the others."""
        refused = isinstance(error, ExperimentError)
        if isinstance(error, StallError) or (refused and self._past_refused):
            self._stalls[key] = f"{called}: {error}"
            if not refused:
                self._stalled[key] = str(error)
        elif isinstance(error, LostRunError):
            self._lost[key] = f"{called}: {error}"
        elif refused:
            # What only a run can tell: say which one.
            raise ExperimentError(f"{called}: {error}") from None
        else:
            if not isinstance(error, KeyboardInterrupt):
                error.add_note(f"in {called}")
            raise error

    def result(self) -> SweepResult:
        """How it ended."""
        done = sum(self._store.has(key) for key in self._wanted)
        stalls, lost = (
            [lines[key] for key in self._wanted if key in lines]
            for lines in (self._stalls, self._lost)
        )
        stalled = {key: self._stalled[key] for key in self._wanted if key in self._stalled}
        return SweepResult(len(self._wanted), done, stalls, self.interrupted, lost, stalled)


def estimated_time(spec: RunSpec) -> float | None:
    """Seconds that a run takes on one core, estimated from its beginning; None if unknown."""
    progress, cancel = _native.Progress(), _native.Cancel()
    experiment = json.dumps(spec["experiment"])
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(
            _native.run, experiment, spec["seed"], cancel, threads=1, progress=progress
        )
        try:
            while not run.done():
                wait([run], _POLL_S)
                state = progress.state()
                if state is not None and state[2] >= _TRIAL_S:
                    seconds = ActiveRun("", *state).total_time()
                    if seconds is not None:
                        return seconds
        finally:
            cancel.cancel()
        return run.result()["timing"]["wall_s"]
