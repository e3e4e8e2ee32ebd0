"""Running what is missing of a set of runs, side by side.

Each run is put into the store the moment it ends, so that nothing finished is ever lost. The
order of the results is that of the runs, whatever the number of workers: nothing here may
let timing decide what ends up in a result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from weft import _native
from weft._types import Row, RunSpec
from weft.errors import ExperimentError, StallError
from weft.study.forecast import ActiveRun, Forecast, kind_of
from weft.study.progress import ProgressReporter
from weft.study.store import Store

_POLL_S = 0.25
"""Seconds between looks at runs under way."""
_TRIAL_S = 0.5
"""Seconds after which the speed of a run is known well enough."""


@dataclass(frozen=True)
class Parallelism:
    """How many cores to use; None: Weft chooses. No result depends on it."""

    jobs: int | None = None
    """Simulations side by side."""
    threads: int | None = None
    """Cores for each of them."""

    def side_by_side(self, runs: int, cores: int) -> int:
        """How many of `runs` simulations run at the same time."""
        return min(runs, self.jobs or max(1, cores // (self.threads or 1)))

    def share(self, runs: int, cores: int) -> int:
        """The most threads for a simulation that may choose its number.

        Runs side by side gain more from cores than one run does: only what they leave idle
        is shared out.
        """
        return max(1, cores // self.side_by_side(runs, cores))


@dataclass
class SweepResult:
    """How a sweep ended."""

    total: int
    done: int = 0
    stalls: list[str] = field(default_factory=list)
    """One line a run that stalled, or was refused where that ends nothing; in run order."""
    interrupted: bool = False


def run_name(spec: RunSpec) -> str:
    """What tells a run from the others of its experiment."""
    return f"{spec['label']} seed {spec['seed']}"


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
        self._cores = _native.cores()
        self._workers = self._used = 1
        self._forecast: Forecast | None = None
        self.interrupted = False

    def round(self, runs: Sequence[RunSpec], expected: int) -> None:
        """Simulate what is missing of `runs`; so many are `expected` after them."""
        for spec in runs:
            self._wanted.setdefault(spec["key"], spec)
        missing = self._missing()
        if not missing:
            return
        self._workers = workers = self._parallelism.side_by_side(len(missing), self._cores)
        first, self._forecast = self._forecast is None, self._forecast or Forecast(workers)
        self._forecast.add(missing, expected)
        cancel = _native.Cancel()
        # The reporter inside the pool: after an error it is gone before the pool waits.
        with ThreadPoolExecutor(workers) as pool, self._reporter:
            if first:
                total = len(self._wanted) + expected
                self._reporter.start(total, len(self._wanted) - len(missing))
            try:
                self._run(missing, pool, cancel)
            except BaseException as error:
                cancel.cancel()
                pool.shutdown(wait=False, cancel_futures=True)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                self.interrupted = True

    def _missing(self) -> list[RunSpec]:
        """What is neither there nor stalled, seed by seed: see `Forecast`."""
        missing = [
            spec
            for key, spec in self._wanted.items()
            if key not in self._stalls and not self._store.has(key)
        ]
        ranks = {seed: rank for rank, seed in enumerate(dict.fromkeys(s["seed"] for s in missing))}
        return sorted(missing, key=lambda spec: ranks[spec["seed"]])

    def _run(
        self, missing: Sequence[RunSpec], pool: ThreadPoolExecutor, cancel: _native.Cancel
    ) -> None:
        share, threads = (
            self._parallelism.share(len(missing), self._cores),
            self._parallelism.threads,
        )
        self._used = min(self._cores, (threads or share) * min(len(missing), self._workers))
        left: dict[Future[tuple[Row, float]], tuple[RunSpec, _native.Progress]] = {}
        for spec in missing:
            progress = _native.Progress()
            future = pool.submit(_one, spec, self._store, cancel, threads, share, progress)
            left[future] = spec, progress
        while left:
            done, _ = wait(left, _POLL_S, FIRST_COMPLETED)
            for future in [future for future in left if future in done]:
                self._ended(future, left.pop(future)[0])
            self._look(left.values())

    def _look(self, left: Iterable[tuple[RunSpec, _native.Progress]]) -> None:
        """Tell the reporter how far the runs are that have begun."""
        if self._forecast is None:
            return
        states = [(spec, progress.state()) for spec, progress in left]
        begun = [ActiveRun(kind_of(spec), *state) for spec, state in states if state is not None]
        self._forecast.update(begun)
        line = self._forecast.announcement(self._used)
        if line is not None:
            self._reporter.announce(line)
        self._reporter.expect(self._forecast.time_left())
        self._reporter.under_way(sum(run.share for run in begun))

    def _ended(self, future: Future[tuple[Row, float]], spec: RunSpec) -> None:
        called = self._name(spec)
        row, seconds = _finish(future, spec["key"], called, self._stalls, self._past_refused)
        if row is not None and self._on_row is not None:
            self._on_row(row)
        if self._forecast is not None:
            self._forecast.ended(spec, seconds)
            self._reporter.expect(self._forecast.time_left())
        self._reporter.finished(called, row)

    def result(self) -> SweepResult:
        """How it ended."""
        done = sum(self._store.has(key) for key in self._wanted)
        stalls = [self._stalls[key] for key in self._wanted if key in self._stalls]
        return SweepResult(len(self._wanted), done, stalls, self.interrupted)


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


def _one(
    spec: RunSpec,
    store: Store,
    cancel: _native.Cancel,
    threads: int | None,
    share: int,
    progress: _native.Progress,
) -> tuple[Row, float]:
    """Simulate and store one run; its row, and the seconds that it took."""
    began = time.monotonic()
    experiment, seed = json.dumps(spec["experiment"]), spec["seed"]
    outcome = _native.run(experiment, seed, cancel, threads=threads, share=share, progress=progress)
    store.put(spec, outcome)
    return outcome["row"], time.monotonic() - began


def _finish(
    future: Future[tuple[Row, float]],
    key: str,
    called: str,
    stalls: dict[str, str],
    past_refused: bool,
) -> tuple[Row | None, float]:
    """What `_one` gave, or no row and a line in `stalls`."""
    try:
        return future.result()
    except StallError as error:
        stalls[key] = f"{called}: {error}"
        return None, 0.0
    except ExperimentError as error:
        if past_refused:
            stalls[key] = f"{called}: {error}"
            return None, 0.0
        # What only a run can tell: say which one.
        raise ExperimentError(f"{called}: {error}") from None
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt):
            error.add_note(f"in {called}")
        raise
