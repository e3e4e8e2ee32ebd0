"""Where the runs of a sweep are simulated: on threads of this process, or elsewhere.

A sweep (`weft.study.sweep`) says which runs are missing and what becomes of those that ended. An
executor simulates them in any order, and has put a run into the store before it says that it has
ended. `weft.study.cluster` has the executor for workers of Dask.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Protocol, Self, TypeVar

from weft import _native
from weft._types import Row, RunSpec
from weft.study.forecast import ActiveRun, Forecast, kind_of
from weft.study.store import Store

T = TypeVar("T")


@dataclass(frozen=True)
class Ended:
    """A run that has ended: well, or with an error."""

    spec: RunSpec
    row: Row | None = None
    seconds: float = 0.0
    """What it took."""
    error: BaseException | None = None


class Executor(Protocol):
    """Simulates runs, some at the same time. All methods are called from one thread."""

    @property
    def side_by_side(self) -> int:
        """How many runs go on at the same time; it may change."""

    @property
    def cores(self) -> int:
        """How many cores they use."""

    def begin(self, runs: Sequence[RunSpec], store: Store, forecast: Forecast) -> None:
        """Simulate these, roughly in this order; `forecast` knows how long they may take."""

    def ended(self, patience_s: float) -> list[Ended]:
        """The runs that have ended since the last call; wait so long for one."""

    def active(self) -> Iterable[ActiveRun]:
        """How far the runs are that have begun."""

    def remarks(self) -> list[str]:
        """What the user should know, one line each; a line is told once."""

    def cancel(self) -> None:
        """End soon: finished runs are kept, no others."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


@dataclass(frozen=True)
class Parallelism:
    """How many cores to use, and where; None: Weft chooses. No result depends on it."""

    jobs: int | None = None
    """Simulations side by side."""
    threads: int | None = None
    """Cores for each of them."""
    elsewhere: Callable[[], Executor] | None = None
    """Gives what simulates if it is not this process; called when there is something to do."""

    def executor(self, runs: int) -> Executor:
        """What simulates so many runs."""
        return Local(self, runs) if self.elsewhere is None else self.elsewhere()

    def side_by_side(self, runs: int, cores: int) -> int:
        """How many of `runs` simulations run at the same time."""
        return min(runs, self.jobs or max(1, cores // (self.threads or 1)))

    def share(self, runs: int, cores: int) -> int:
        """The most threads for a simulation that may choose its number.

        Runs side by side gain more from cores than one run does: only what they leave idle
        is shared out.
        """
        return max(1, cores // self.side_by_side(runs, cores))


class Local:
    """Threads of this process: the native core lets others run while it simulates."""

    def __init__(self, parallelism: Parallelism, runs: int) -> None:
        cores = _native.cores()
        self.side_by_side = parallelism.side_by_side(runs, cores)
        self._threads, self._share = parallelism.threads, parallelism.share(runs, cores)
        self.cores = min(cores, (self._threads or self._share) * self.side_by_side)
        self._pool = ThreadPoolExecutor(self.side_by_side)
        self._stop = _native.Cancel()
        self._ended: SimpleQueue[Ended] = SimpleQueue()
        self._active: dict[str, tuple[RunSpec, _native.Progress]] = {}

    def begin(self, runs: Sequence[RunSpec], store: Store, forecast: Forecast) -> None:
        """Simulate these."""
        for spec in runs:
            self._pool.submit(self._one, spec, store)

    def _one(self, spec: RunSpec, store: Store) -> None:
        """Simulate and store one run."""
        progress = _native.Progress()
        self._active[spec["key"]] = spec, progress
        began = time.monotonic()
        try:
            outcome = _native.run(
                json.dumps(spec["experiment"]),
                spec["seed"],
                self._stop,
                threads=self._threads,
                share=self._share,
                progress=progress,
            )
            store.put(spec, outcome)
            ended = Ended(spec, outcome["row"], time.monotonic() - began)
        except BaseException as error:  # noqa: BLE001 - a panic of the native core is no Exception.
            ended = Ended(spec, error=error)
        del self._active[spec["key"]]
        self._ended.put(ended)

    def ended(self, patience_s: float) -> list[Ended]:
        """The runs that have ended since the last call; wait so long for one."""
        return taken(self._ended, patience_s)

    def active(self) -> list[ActiveRun]:
        """How far the runs are that have begun."""
        states = [(spec, progress.state()) for spec, progress in list(self._active.values())]
        return [ActiveRun(kind_of(spec), *state) for spec, state in states if state is not None]

    def remarks(self) -> list[str]:
        """Nothing to say."""
        return []

    def cancel(self) -> None:
        """End the simulations."""
        self._stop.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()


def taken(queue: SimpleQueue[T], patience_s: float) -> list[T]:
    """All that is in a queue, waiting so long for the first."""
    found: list[T] = []
    try:
        found.append(queue.get(timeout=patience_s))
        while True:
            found.append(queue.get_nowait())
    except Empty:
        return found
