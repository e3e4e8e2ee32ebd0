"""A cluster and a job to a plan."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft import _native, cluster
from weft.cluster import Cluster
from weft.errors import ExperimentError
from weft.plans import hosts
from weft.plans.file import FORMAT, VERSION, Plan
from weft.study import inputs
from weft.study.inputs import Overrides
from weft.switches import segments

MOST_PIECES = 200_000
"""A step of more keeps none: the core plans them again when somebody asks."""
_JOB_SECTIONS = ("title", "notes", "workload", "balance", "transport", "probe", "run")
_PINNED = ("ethereal", "ethereal-weighted")
_PIECES = ("src", "dst", "message", "part", "bytes", "path", "source_port", "queue_pair")


def make(
    cluster_path: Path,
    job: Path | str,
    scheme: str,
    seed: int = 1,
    changes: Overrides = (),
    most_pieces: int = MOST_PIECES,
) -> Plan:
    """Plan the job on the cluster; `job` is a file, or a workload in short form.

    Raises:
        ExperimentError: One of the files is wrong, or the scheme cannot be planned.
    """
    place = _toml(cluster_path, "a cluster")
    table = _toml(job, "a job") if isinstance(job, Path) else {}
    cluster.read(cluster_path, seed)
    if "file" in place.get("fabric", {}):
        file = str((cluster_path.parent / str(place["fabric"]["file"])).absolute())
        place["fabric"] = {**place["fabric"], "file": file}
    place.setdefault("title", cluster_path.stem)
    if isinstance(job, str):
        title = f"{job} on {place['title']}"
        table = {"title": title, "workload": inputs.table_of("workload", job)}
    return of(place, table, scheme, str(job), seed, changes, most_pieces)


def of(
    place: Mapping[str, Any],
    job: Mapping[str, Any],
    scheme: str,
    source: str = "job",
    seed: int = 1,
    changes: Overrides = (),
    most_pieces: int = MOST_PIECES,
) -> Plan:
    """Plan a job on a cluster, both as dicts of the shape of their files; `source` is the job's.

    Raises:
        ExperimentError: One of them is wrong, or the scheme cannot be planned.
    """
    experiment = _experiment(place, job, scheme, source)
    runs = inputs.from_dict(experiment, source, changes, 1).runs
    if len(runs) != 1:
        raise ExperimentError(f"{source}: sweep: {len(runs)} runs; a plan is of one")
    resolved = runs[0]["experiment"]
    # As changed, and with what the fabric's file says.
    now = {key: resolved[key] for key in ("fabric", "failures")}
    described = cluster.from_dict({**place, **now}, seed=seed)
    scheme = resolved["balance"]["scheme"]
    enforce = enforced_by(resolved["balance"])
    found = _native.plan_job(json.dumps(resolved), seed, most_pieces)
    links = {name: _plain(column) for name, column in found["links"].items()}
    steps = [_step(step) for step in found["steps"]]
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": experiment["title"],
        "scheme": found["scheme"],
        "options": {k: v for k, v in resolved["balance"].items() if k != "scheme"},
        "seed": seed,
        "mtu": found["mtu"],
        "cluster": cluster.as_json(described),
        "experiment": resolved,
        "enforce": enforce,
        "segments": _segments(described, scheme) if enforce == "segments" else {},
        "links": links,
        "seconds": sum(step["times"] * step["congestion"]["seconds"] for step in steps),
        "steps_bound_s": sum(step["times"] * step["bound_s"] for step in steps),
        "bound_s": found["bound_s"],
        "steps": steps,
        "hosts": hosts.tables(described, steps),
    }


def enforced_by(balance: Mapping[str, Any]) -> str:
    """What makes packets take their paths; none where switches hash."""
    if balance["scheme"].startswith("dnlb"):
        return "segments"
    return str(balance.get("enforce", "none"))


def _segments(described: Cluster, scheme: str) -> segments.Segments:
    """The ports of every uplink, by switch.

    Raises:
        ExperimentError: The cluster has other ports than RoCE's.
    """
    ports = (described.first_port, described.last_port)
    if ports != (cluster.FIRST_PORT, cluster.LAST_PORT):
        raise ExperimentError(
            f"cluster.first_port: plans cut the ports of RoCE, {cluster.FIRST_PORT} to "
            f"{cluster.LAST_PORT}, not {ports[0]} to {ports[1]}; leave first_port and last_port out"
        )
    return segments.of(described, "dnlb" if scheme.startswith("dnlb") else "ethereal")


def _experiment(
    place: Mapping[str, Any], job: Mapping[str, Any], scheme: str, source: str
) -> dict[str, Any]:
    """The experiment that a cluster and a job are."""
    for key in job:
        if key not in _JOB_SECTIONS:
            use = "it belongs to the cluster" if key in place else f"use {', '.join(_JOB_SECTIONS)}"
            raise ExperimentError(f"{source}: {key}: does not belong to a job; {use}")
    if "workload" not in job:
        raise ExperimentError(f"{source}: workload: is missing; add [workload]")
    options = job.get("balance", {})
    if not isinstance(options, Mapping):
        raise ExperimentError(f"{source}: balance: is not a table; write [balance]")
    if options.get("scheme", scheme) != scheme:
        raise ExperimentError(
            f"{source}: balance.scheme: is {options['scheme']}, but --scheme {scheme}; "
            "leave it out here"
        )
    balance = {**options, "scheme": scheme}
    if scheme in _PINNED:
        # Switches as they are.
        balance.setdefault("enforce", "segments")
    transport = job.get("transport", {})
    title = job.get("title") or f"{Path(source).stem} on {place.get('title', 'a cluster')}"
    experiment = {
        "title": title,
        "fabric": place["fabric"],
        "workload": job["workload"],
        "balance": balance,
        "transport": transport,
    }
    if "failures" in place:
        experiment["failures"] = place["failures"]
    return experiment


def _toml(path: Path, what: str) -> dict[str, Any]:
    text = inputs.read_text(path, what)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path}: {error}; correct the line") from None


def _step(found: Mapping[str, Any]) -> dict[str, Any]:
    """A step of the core as the plan file has it."""
    step = {
        key: found[key]
        for key in ("name", "times", "messages", "bytes", "piece_count", "split", "queue_pairs")
    }
    step["name"] = step["name"] or "messages"
    step["congestion"] = found["busiest"] or {"link": None, "bytes": 0, "seconds": 0.0}
    step["bound_s"] = found["bound_s"]
    step["reached_s"] = found["reached_s"]
    certificate = found["certificate"]
    step["certificate"] = certificate and {k: _plain(v) for k, v in certificate.items()}
    step["loads"] = _plain(found["loads"])
    pieces = found["pieces"]
    step["pieces"] = None if pieces is None else {name: _piece(pieces, name) for name in _PIECES}
    return step


def _piece(pieces: Mapping[str, Any], name: str) -> list[int | None]:
    values: list[int] = np.asarray(pieces[name]).tolist()
    if name in ("source_port", "queue_pair"):
        return [None if value == hosts.NONE else value for value in values]
    return list(values)


def _plain(column: Any) -> list[Any]:
    return list(column) if isinstance(column, list) else np.asarray(column).tolist()
