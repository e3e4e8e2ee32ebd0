"""Weft from Python: simulations, plans, switch configurations, and lists of what there is."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import WeftWarning, _native, forks
from weft._types import CapacityAnswer, CatalogueEntry
from weft.catalogue import DEFAULT_SCHEMES, KINDS
from weft.errors import ExperimentError, StallError, naming_arguments
from weft.result import Plan, Result, SwitchConfig, TraceInfo
from weft.switches.ways import Way

if TYPE_CHECKING:
    from weft.study.store import Store
    from weft.study.study import Study


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
        StallError: Some runs stopped making progress; says which flows wait for what. Its
            `result` has the runs that finished; None if none did.
        RuntimeError: This process was forked from one in which Polars has worked.
    """
    return _simulate(experiment, seeds, jobs, threads, quick)


def _simulate(
    experiment: Mapping[str, Any] | str | os.PathLike[str],
    seeds: int | None,
    jobs: int | None,
    threads: int | None,
    quick: bool = False,
) -> Result:
    """What `simulate` does, for functions that users call themselves."""
    forks.check("simulate")
    from weft.study import inputs, store, study
    from weft.study.executor import Parallelism
    from weft.study.progress import Silent

    seeds = _count("seeds", seeds)
    parallelism = Parallelism(_count("jobs", jobs), _count("threads", threads))
    if isinstance(experiment, Mapping):
        checked = inputs.from_dict(experiment, seeds=seeds, quick=quick)
    else:
        checked = inputs.from_file(Path(experiment), seeds=seeds, quick=quick)
    kept = store.MemoryStore()
    whole, result = study.of([checked]).simulate(kept, parallelism, Silent())
    if result.interrupted:
        raise KeyboardInterrupt
    for warning in _odd(whole, kept):
        # Of the line that calls `simulate` or `compare`: Python shows a warning once a line.
        warnings.warn(warning, WeftWarning, stacklevel=3)
    if result.stalls:
        stall = StallError("; ".join(result.stalls))
        stall.result = _result(whole, kept) if result.done else None
        raise stall
    return _result(whole, kept)


def compare(
    fabric: str | os.PathLike[str] | Mapping[str, Any],
    workload: str | os.PathLike[str] | Mapping[str, Any],
    schemes: str | Sequence[str] | None = None,
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    **sections: Any,
) -> Result:
    """Compare schemes on a fabric: `weft compare`.

    Args:
        fabric: A short form such as `"leaf-spine:leaves=4,spines=4,hosts=4,link=100Gbps"`, a
            topology file, or a table of `[fabric]`.
        workload: The same: `"all-reduce:size=64MB"`, a file, or a table of `[workload]`.
        schemes: Names of `weft.list("schemes")`, as a list or as `"ethereal,spray"`; default: those
            of `weft compare`.
        seeds: As in `simulate`, and so are `jobs` and `threads`.
        jobs: Simulations side by side.
        threads: Cores for one simulation.
        sections: Further sections and keys of an experiment, as `preset="nccl-2.28"`,
            `transport={"congestion": "swift"}` or
            `failures={"one": {"links": ["leaf-0 <-> spine-0"], "kind": "down"}}`.

    Raises:
        ExperimentError: Something is wrong; one line says what, and how to correct it.
        StallError: Some runs stopped making progress; its `result` has the others.
    """
    from weft.study import inputs

    if isinstance(schemes, str):
        schemes = [name.strip() for name in schemes.split(",") if name.strip()]
    chosen = DEFAULT_SCHEMES if schemes is None else schemes
    sweep = sections.get("sweep", {})
    swept = sweep if isinstance(sweep, Mapping) else {}
    swept_keys = [(f"sweep.{key}", "") for key in swept]
    with naming_arguments("fabric", "workload", "schemes"):
        experiment = inputs.comparison(fabric, workload, chosen, swept_keys)
    whole = experiment | sections
    # What is no table is refused with the rest of the experiment.
    if swept is sweep:
        whole["sweep"] = {**experiment["sweep"], **sweep}
    return _simulate(whole, seeds, jobs, threads)


def plan(
    cluster: str | os.PathLike[str] | Mapping[str, Any],
    job: str | os.PathLike[str] | Mapping[str, Any],
    scheme: str = "ethereal",
    *,
    seed: int = 1,
) -> Plan:
    """Plan the paths of a job on a cluster: `weft plan`.

    Args:
        cluster: The path of a cluster file, or a dict of its shape.
        job: The path of a job file (`.toml`) or a workload in short form, as
            `"all-reduce:size=64MB"`; with a dict as cluster a dict of the shape of a job file.
        scheme: A scheme that chooses paths when messages are posted.
        seed: Of all that is random.

    Raises:
        ExperimentError: Something is wrong, or the scheme cannot be planned.
    """
    from weft.plans import make

    seed = _count("seed", seed, 0) or 0
    with naming_arguments("job", "scheme", "seed"):
        if isinstance(cluster, Mapping) and isinstance(job, Mapping):
            return Plan(make.of(cluster, job, scheme, seed=seed))
        if isinstance(cluster, Mapping) or isinstance(job, Mapping):
            raise ExperimentError("plan: give cluster and job both as dicts, or neither")
        work = make.job(job) if isinstance(job, str) else Path(job)
        return Plan(make.make(Path(cluster), work, scheme, seed))


def switch_config(
    plan: Plan | str | os.PathLike[str],
    platform: str,
    *,
    scheme: str | None = None,
    switch: str | None = None,
    enforce: Way = "segments",
) -> SwitchConfig:
    """Write the configuration of switches that keep packets to their paths: `weft switch-config`.

    Args:
        plan: A plan, the path of a `plan.json`, or the path of a cluster file (`.toml`).
        platform: `"linux"`, `"nftables"`, `"frr"`, `"ios"`, `"eos"`, `"sonic"`, `"junos"` or
            `"cumulus"`.
        scheme: With a cluster file: `dnlb` (leaves steer) or `ethereal` (aggregation switches
            of three tiers, too).
        switch: Only this switch, by its name in the cluster or in Weft.
        enforce: `"segments"` (rules by source port), `"addresses"` (plain routes, and an address
            for each path) or `"srv6"`; the last two have files for hosts as well.

    Raises:
        ExperimentError: A file is wrong, the plan has no port segments, or the platform cannot
            do what it asks for.
    """
    from weft.plans import for_switches

    if isinstance(plan, Plan) and scheme is not None:
        raise ExperimentError("switch_config: a plan has its scheme; remove scheme=")
    asked = for_switches.Request(platform, enforce, scheme, switch)
    given = plan.document if isinstance(plan, Plan) else Path(plan)
    with naming_arguments("platform", "scheme", "switch", "enforce"):
        made, remarks = for_switches.files(given, asked)
    return SwitchConfig({file.name: file.text for file in made}, remarks)


def trace_info(
    file: str | os.PathLike[str], *, ranks: int | None = None, **options: Any
) -> TraceInfo:
    """Show what is in a trace, and whether it can run: `weft trace info`.

    Args:
        file: A trace, or one of its files where each rank has one.
        ranks: Number of ranks, for a trace that any number can run.
        options: Keys of `[workload]` of the trace's format, as `bytes_per_element=2` or
            `peak_tflops=900` (`weft.list("workloads")`).

    Raises:
        ExperimentError: It cannot be read.
    """
    from weft.analysis import trace_info
    from weft.study import inputs

    told = [(key, inputs.as_json(value, key)) for key, value in options.items()]
    number = _count("ranks", ranks)
    with naming_arguments():
        return TraceInfo(trace_info.info(Path(file), told, number))


def load(directory: str | os.PathLike[str]) -> Result:
    """The results in a directory that `weft run -o` or `weft compare -o` has written.

    Args:
        directory: The directory, or the `report.html` in it.

    Raises:
        ExperimentError: There are none, or they are damaged; the line says what to do.
        RuntimeError: This process was forked from one in which Polars has worked.
    """
    forks.check("load")
    from weft.report import summary
    from weft.study import store, study

    path = Path(directory)
    path = path.parent if path.suffix == ".html" else path
    kept = study.load(path)
    with study.naming_damage(path, kept.study):
        tables = {name: getattr(kept, name).collect() for name in store.TABLES}
    described = summary.of_study(kept.study, kept.rows)
    return Result(
        runs=kept.runs,
        timing=kept.timing,
        **tables,
        warnings=_odd(kept.study, store.DirectoryStore(path, read_only=True)),
        summary=described[0] if len(described) == 1 else {"experiments": described},
        _study=kept.study,
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


def list_(kind: str) -> list[CatalogueEntry]:
    """What can be simulated: `weft.list`.

    Each entry has `name`, `summary`, `source`, and `options` with `key`, `default`, `meaning`.

    Args:
        kind: `"schemes"`, `"transports"`, `"workloads"`, `"topologies"`, `"presets"`,
            `"sections"`, `"variables"` or `"software"`.

    Raises:
        ExperimentError: There is no such kind.
    """
    if kind not in KINDS:
        raise ExperimentError(f"list: {kind!r} is unknown; use one of {', '.join(KINDS)}")
    entries: list[CatalogueEntry] = globals()[kind]()
    return entries


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


def sections() -> list[CatalogueEntry]:
    """The sections of an experiment: name, summary, and the keys that no other list has."""
    from weft.study import shown_keys

    return [*_catalogue("sections"), *shown_keys.entries()]


def variables() -> list[CatalogueEntry]:
    """What hosts of a cluster read: variables, and options of schemes that differ there."""
    return _catalogue("variables")


def software() -> list[CatalogueEntry]:
    """What `weft plan --hosts-for` writes for, what that keeps of a plan, and how it is known."""
    from weft import software

    found: list[CatalogueEntry] = []
    for name in software.SOFTWARE:
        one = software.find(name)
        summary = f"{one.title}; of a plan it keeps {one.survives}"
        found.append(
            {
                "key": "weft plan --hosts-for",
                "name": name,
                "summary": summary,
                "source": one.known,
                "options": [],
            }
        )
    return found


def _result(whole: Study, kept: Store) -> Result:
    """The runs of one experiment that have finished."""
    from weft.report import summary
    from weft.study import store

    listed = whole.listed(kept)
    (described,) = summary.of_study(whole, lambda one: whole.rows(one, kept))
    return Result(
        runs=store.runs_frame(listed, kept),
        timing=store.timing_frame(listed, kept),
        **{name: store.table(listed, kept, name) for name in store.TABLES},
        warnings=_odd(whole, kept),
        summary=described,
        _study=whole,
    )


def _odd(whole: Study, kept: Store) -> list[str]:
    """What is odd about experiments and about their runs, each once."""
    odd = [warning for one in whole.experiments for warning in one.warnings]
    for _, spec in whole.listed(kept):
        odd += kept.record(spec["key"])["warnings"]
    return list(dict.fromkeys(odd))


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
    most = (1 << 32) - 1
    if not least <= count <= most:
        mend = f"{least} or more" if count < least else f"{most} at most"
        raise ExperimentError(f"{name}: {count} is out of range; use {mend}")
    return count


def _catalogue(kind: str) -> list[CatalogueEntry]:
    entries: list[CatalogueEntry] = json.loads(_native.catalogue(kind))
    return entries
