"""Running what is missing of a set of runs, side by side.

Each run is put into the store the moment it ends, so that nothing finished is ever lost. The
order of the results is that of the runs, whatever the number of workers: nothing here may
let timing decide what ends up in a result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from weft import _native
from weft._types import Row, RunSpec
from weft.errors import ExperimentError, StallError
from weft.progress import Watcher
from weft.store import Store


@dataclass(frozen=True)
class Crew:
    """What a user says about cores; None leaves it to us. No result depends on it."""

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
class Tally:
    """How a sweep ended."""

    total: int
    done: int = 0
    stalls: list[str] = field(default_factory=list)
    """One line a stalled run, in run order."""
    interrupted: bool = False


def plain_name(spec: RunSpec) -> str:
    """What tells a run from the others of its experiment."""
    return f"{spec['label']} seed {spec['seed']}"


def execute(
    runs: Sequence[RunSpec],
    store: Store,
    crew: Crew,
    watcher: Watcher,
    name: Callable[[RunSpec], str] = plain_name,
) -> Tally:
    """Simulate those of `runs` that `store` does not have, side by side as `crew` says.

    `name` says what a run is called in progress lines and in the tally.
    Ctrl-C stops the running simulations and returns with `interrupted` set. A stalled run is
    noted and the others go on; any other failure stops everything and is raised.
    """
    wanted: dict[str, RunSpec] = {}
    for spec in runs:
        wanted.setdefault(spec["key"], spec)
    missing = [spec for key, spec in wanted.items() if not store.has(key)]
    tally = Tally(len(wanted), len(wanted) - len(missing))
    if not missing:
        return tally
    stalls: dict[str, str] = {}
    cancel = _native.Cancel()
    cores = _native.cores()
    share = crew.share(len(missing), cores)
    with ThreadPoolExecutor(crew.side_by_side(len(missing), cores)) as pool:
        futures: dict[Future[Row], RunSpec] = {}
        # Entered inside the pool: after an error the watcher is gone before the pool waits.
        with watcher:
            watcher.start(tally.total, tally.done)
            try:
                for spec in missing:
                    futures[pool.submit(_one, spec, store, cancel, crew.threads, share)] = spec
                for future in as_completed(futures):
                    key, called = futures[future]["key"], name(futures[future])
                    row = _finish(future, key, called, stalls)
                    tally.done += row is not None
                    watcher.finished(called, row)
            except BaseException as error:
                cancel.cancel()
                pool.shutdown(wait=False, cancel_futures=True)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                tally.interrupted = True
    tally.done = sum(store.has(key) for key in wanted)
    tally.stalls = [stalls[key] for key in wanted if key in stalls]
    return tally


def _one(
    spec: RunSpec, store: Store, cancel: _native.Cancel, threads: int | None, share: int
) -> Row:
    experiment, seed = json.dumps(spec["experiment"]), spec["seed"]
    outcome = _native.run(experiment, seed, cancel, threads=threads, share=share)
    store.put(spec, outcome)
    return outcome["row"]


def _finish(future: Future[Row], key: str, called: str, stalls: dict[str, str]) -> Row | None:
    """The row of a run that has ended, or None and a line in `stalls`."""
    try:
        return future.result()
    except StallError as error:
        stalls[key] = f"{called}: {error}"
        return None
    except ExperimentError as error:
        # What only a run can tell: say which one.
        raise ExperimentError(f"{called}: {error}") from None
