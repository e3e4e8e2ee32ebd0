"""Running what is missing of a set of runs, side by side.

Each run is put into the store the moment it ends, so that nothing finished is ever lost. The
order of the results is that of the runs, whatever the number of workers: nothing here may
let timing decide what ends up in a result.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from weft import _native
from weft._types import Row, RunSpec
from weft.errors import ExperimentError, StallError
from weft.progress import Watcher
from weft.store import Store


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
    jobs: int | None,
    watcher: Watcher,
    name: Callable[[RunSpec], str] = plain_name,
) -> Tally:
    """Simulate those of `runs` that `store` does not have, `jobs` at a time (default: cores).

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
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        futures: dict[Future[Row], RunSpec] = {}
        # Entered inside the pool: after an error the watcher is gone before the pool waits.
        with watcher:
            watcher.start(tally.total, tally.done)
            try:
                futures |= {pool.submit(_one, spec, store, cancel): spec for spec in missing}
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


def _one(spec: RunSpec, store: Store, cancel: _native.Cancel) -> Row:
    outcome = _native.run(json.dumps(spec["experiment"]), spec["seed"], cancel)
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
