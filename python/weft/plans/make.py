"""A cluster and a job to a plan. The core reads both, plans, and writes what the file holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft import _native
from weft import cluster as clusters
from weft.plans.file import Plan
from weft.study import inputs
from weft.study.inputs import Overrides

MOST_SUBFLOWS = 200_000
"""A step of more subflows keeps none: the core plans them again when somebody asks."""


def job(text: str) -> Path | str:
    """What a job's text names: a file (.toml, .cm, .csv, a trace), or a workload in short form."""
    return Path(text) if text.endswith(".toml") or Path(text).exists() else text


def text_of(job: Path | str) -> tuple[str, str, str]:
    """What the core reads of a job (see `job`): text, format and what messages call it."""
    if isinstance(job, str):
        return job, "short", job
    key = inputs.workload_key(job)
    if key is not None:
        # The core finds it beside itself.
        return json.dumps({"workload": {key: job.name}}), "json", str(job)
    return inputs.read_text(job, "a job file (.toml)"), "toml", str(job)


def make(
    cluster_path: Path,
    job: Path | str,
    scheme: str,
    seed: int = 1,
    changes: Overrides = (),
    most_subflows: int = MOST_SUBFLOWS,
    paths: Path | None = None,
) -> Plan:
    """Plan the job on the cluster; `job` is as `job` above returns it.

    Source ports are taken from `paths`, a table of `weft discover`, if it is given.

    Raises:
        ExperimentError: One of the files is wrong, or the scheme cannot be planned.
    """
    place = clusters.text_of(cluster_path)
    found = (inputs.read_text(paths, "a table of weft discover -o"), str(paths)) if paths else None
    made = _native.make_plan(place, text_of(job), scheme, seed, list(changes), most_subflows, found)
    return dict(json.loads(made))


def of(
    place: Mapping[str, Any],
    job: Mapping[str, Any],
    scheme: str,
    source: str = "job",
    seed: int = 1,
    changes: Overrides = (),
    most_subflows: int = MOST_SUBFLOWS,
) -> Plan:
    """Plan a job on a cluster, both as dicts of the shape of their files; `source` is the job's.

    Raises:
        ExperimentError: One of them is wrong, or the scheme cannot be planned.
    """
    cluster = (inputs.dict_text(place, "cluster"), "json", "cluster")
    work = (inputs.dict_text(job, source), "json", source)
    made = _native.make_plan(cluster, work, scheme, seed, list(changes), most_subflows)
    return dict(json.loads(made))
