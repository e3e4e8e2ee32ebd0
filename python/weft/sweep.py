"""Running what is missing of a set of runs, side by side.

Each run is put into the store the moment it ends, so that nothing finished is ever lost. The
order of the results is that of the runs, whatever the number of workers: nothing here may
let timing decide what ends up in a result.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from weft import _native
from weft._types import Row, RunSpec
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


def execute(runs: Sequence[RunSpec], store: Store, jobs: int | None, watcher: Watcher) -> Tally:
    """Simulate those of `runs` that `store` does not have, `jobs` at a time (default: cores).

    Ctrl-C stops the running simulations and returns with `interrupted` set. A stalled run is
    noted and the others go on; any other failure stops everything and is raised.
    """
    wanted = {spec["key"]: spec for spec in runs}
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
                    _note(future, futures[future], tally, stalls, watcher)
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


def _note(
    future: Future[Row],
    spec: RunSpec,
    tally: Tally,
    stalls: dict[str, str],
    watcher: Watcher,
) -> None:
    try:
        row = future.result()
    except _native.StallError as error:
        stalls[spec["key"]] = f"{spec['label']} seed {spec['seed']}: {error}"
        watcher.finished(spec, None)
        return
    tally.done += 1
    watcher.finished(spec, row)
