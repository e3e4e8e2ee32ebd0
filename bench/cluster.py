"""What a run costs beside its simulation on workers of Dask: thousands of runs of 0.1 ms.

The scheduler and the command are one process here, the workers processes of their own. Processor
time tells more than elapsed time where other programs run too.

    python bench/cluster.py --runs 10000 --workers 2
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from weft._types import RunSpec
from weft.study import inputs, store
from weft.study.cluster import places
from weft.study.executor import Parallelism
from weft.study.progress import Silent
from weft.study.sweep import execute

EXPERIMENT = {
    "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    "workload": {"pattern": "all-to-all", "size": "16KB"},
    "sweep": {"balance.scheme": ["ecmp", "spray", "reps", "ethereal"]},
}


def main() -> None:
    """Measure with scalars alone, and with all tables on disk."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--runs", type=int, default=10_000)
    words.add_argument("--workers", type=int, default=2)
    told = words.parse_args()
    runs = inputs.from_dict(EXPERIMENT, seeds=told.runs // 4).runs
    with tempfile.TemporaryDirectory() as folder:
        for what, kept in (
            ("scalars", store.RowStore()),
            ("tables", store.DirectoryStore(Path(folder))),
        ):
            _measure(what, runs, kept, told.workers)


def _measure(what: str, runs: list[RunSpec], kept: store.Store, workers: int) -> None:
    place = places.Place("local", {"workers": str(workers)}, "local")
    before = _processor_s(resource.RUSAGE_CHILDREN)
    with places.opened(place, None, None) as dispatcher:
        parallelism = Parallelism(elsewhere=lambda: dispatcher)
        # Workers load what they need with the first run.
        execute(runs[:workers], kept, parallelism, Silent())
        began, used = time.monotonic(), time.process_time()
        execute(runs, kept, parallelism, Silent())
        elapsed, used = time.monotonic() - began, time.process_time() - used
    theirs = _processor_s(resource.RUSAGE_CHILDREN) - before
    count = len(runs) - workers
    simulated = sum(kept.record(spec["key"])["timing"]["wall_s"] for spec in runs)
    print(
        f"{what}: {count} runs on {workers} workers in {elapsed:.1f} s; processor time of a run: "
        f"{1e3 * used / count:.2f} ms here with the scheduler, {1e3 * theirs / count:.2f} ms on "
        f"workers with their start; simulated: {1e3 * simulated / len(runs):.2f} ms"
    )


def _processor_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
