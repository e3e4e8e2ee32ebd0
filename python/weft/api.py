"""Weft from Python: `simulate`, `capacity`, and lists of what can be simulated."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import WeftWarning, _native
from weft._types import CapacityAnswer, CatalogueEntry
from weft.errors import ExperimentError, StallError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Result:
    """What `simulate` returns: Polars data frames (`.to_pandas()` makes Pandas ones).

    Times are in seconds (`_s`), sizes in bytes; `run` joins the frames.
    """

    runs: pl.DataFrame
    """One row a run: swept keys, `cct_s`, `bound_s`, `slowdown`, drops, queue pairs, ..."""
    flows: pl.DataFrame
    """One row a message of each run: ends, bytes, start, finish, `fct_s`, retransmits."""
    links: pl.DataFrame
    """One row a port of each run: bytes, `utilisation`, drops, marks, `peak_queue_bytes`."""
    collectives: pl.DataFrame
    """One row a collective of each job: size, start, finish, `time_s`, `busbw_gb_s`."""
    nodes: pl.DataFrame
    """One row a node of each rank of each job, with `probe.timeline`."""
    messages: pl.DataFrame
    """One row a message between ranks over the fabric, with `probe.timeline`."""
    series: pl.DataFrame
    """One row a sample of each probe: `time_s`, `name`, `kind` ("port", "switch", "goodput"),
    `bytes`."""
    timing: pl.DataFrame
    """One row a run: `wall_s`, `build_s`, `events`, `threads`. Differs between machines."""
    warnings: list[str]
    """What is odd about the experiment though it runs; also issued as `weft.WeftWarning`."""
    summary: dict[str, Any]
    """Means over seeds, best values, and comparisons with printed results: what
    `weft run --summary` prints of an experiment."""

    def __str__(self) -> str:
        """The table that the command line prints."""
        from weft.report import tables

        return tables.plain(self.runs)


def simulate(
    experiment: Mapping[str, Any] | str | os.PathLike[str],
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    quick: bool = False,
) -> Result:
    """Run an experiment, with all runs of its sweep, and return its results.

    Args:
        experiment: The path of a TOML file, or a dict of the same shape.
        seeds: Runs for each swept combination, with seeds 1 to `seeds`; default: what the
            experiment says.
        jobs: Simulations side by side; default: as many as there are cores for.
        threads: Cores for one simulation; results do not depend on it. Default: an equal share
            of the cores for each of those side by side, if it is large enough to gain.
        quick: As short as the experiment's `[quick]` makes it; one seed, if it says nothing.

    Raises:
        ExperimentError: The experiment is wrong; one line says where and how to correct it.
        StallError: Some runs stopped making progress; says which flows wait for what.
    """
    from weft.report import summary, views
    from weft.study import inputs, store, study, sweep
    from weft.study.progress import Silent

    seeds = _count("seeds", seeds)
    parallelism = sweep.Parallelism(_count("jobs", jobs), _count("threads", threads))
    if isinstance(experiment, Mapping):
        checked = inputs.from_dict(experiment, seeds=seeds, quick=quick)
    else:
        checked = inputs.from_file(Path(experiment), seeds=seeds, quick=quick)
    kept = store.MemoryStore()
    whole, result = study.of([checked]).simulate(kept, parallelism, Silent())
    if result.interrupted:
        raise KeyboardInterrupt
    if result.stalls:
        raise StallError("; ".join(result.stalls))
    checked = whole.experiments[0]
    listed = whole.listed(kept)
    rows = whole.rows(checked, kept)
    odd = [*checked.warnings]
    for _, spec in listed:
        odd += kept.record(spec["key"])["warnings"]
    odd = list(dict.fromkeys(odd))
    for warning in odd:
        warnings.warn(warning, WeftWarning, stacklevel=2)
    return Result(
        runs=store.runs_frame(listed, kept),
        timing=store.timing_frame(listed, kept),
        **{name: store.table(listed, kept, name) for name in store.TABLES},
        warnings=odd,
        summary=summary.of(checked, views.of(checked, rows), len(rows)),
    )


def capacity(
    experiment: Mapping[str, Any] | str | os.PathLike[str], *, seed: int | None = None
) -> list[CapacityAnswer]:
    """Ask whether there is enough capacity for an experiment's workload with its failures.

    One answer for each combination of its sweep; nothing is simulated. The demand is every
    message that waits for no other, at its fair share or the fixed rate of the transport.

    Args:
        experiment: The path of a TOML file, or a dict of the same shape.
        seed: Draws links that fail at random and random workloads; default: the first of the
            experiment's seeds.

    Raises:
        ExperimentError: The experiment is wrong; one line says where and how to correct it.
    """
    from weft.analysis import capacity
    from weft.study import inputs

    seed = _count("seed", seed, 0)
    if isinstance(experiment, Mapping):
        checked = inputs.from_dict(experiment)
    else:
        checked = inputs.from_file(Path(experiment))
    return capacity.of(checked, seed)


def schemes() -> list[CatalogueEntry]:
    """The load balancers: name, summary, source, options."""
    return _catalogue("schemes")


def transports() -> list[CatalogueEntry]:
    """Congestion controls and loss recoveries: name, summary, source, options."""
    return _catalogue("transports")


def workloads() -> list[CatalogueEntry]:
    """Traffic patterns and workload files: name, summary, source, options."""
    return _catalogue("workloads")


def topologies() -> list[CatalogueEntry]:
    """Fabrics: name, summary, source, options."""
    return _catalogue("topologies")


def presets() -> list[CatalogueEntry]:
    """Keys that go together: name, summary, source, and as options what they set."""
    return _catalogue("presets")


def variables() -> list[CatalogueEntry]:
    """What hosts of a cluster read: variables, and options of schemes that differ there."""
    return _catalogue("variables")


def _count(name: str, value: int | None, least: int = 1) -> int | None:
    """A count that a caller gave, as an `int` from `least`."""
    if value is None:
        return None
    try:
        count = operator.index(value)
    except TypeError:
        raise ExperimentError(
            f"{name}: {value!r} is not a whole number; use {least} or more"
        ) from None
    if not least <= count < 1 << 32:
        raise ExperimentError(f"{name}: {count} is out of range; use {least} or more")
    return count


def _catalogue(kind: str) -> list[CatalogueEntry]:
    entries: list[CatalogueEntry] = json.loads(_native.catalogue(kind))
    return entries
