"""`weft topology draw`: a picture of a file, a short form, an experiment or its results."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft import _native
from weft._types import RunSpec
from weft.errors import ExperimentError, writing
from weft.report.figures.fabric import network, picture
from weft.report.figures.model import Figure
from weft.study import inputs, study
from weft.study.inputs import Experiment, Overrides

KINDS = (".svg", ".png", ".pdf")
NO_TRAFFIC = {
    "workload": {"trace": str(Path(__file__).with_name("idle.goal"))},
    "balance": {"scheme": "ecmp"},
}
"""Beside a fabric alone, which is no experiment: one rank, since there may be a single host."""


@dataclass(frozen=True)
class _Chosen:
    """A run whose fabric is drawn."""

    spec: RunSpec
    title: str
    said: str
    """What the caption says of the choice."""
    load: network.Floats | None = None


def draw(source: str, path: Path, overrides: Overrides, run: int | None) -> Figure:
    """Draw the fabric of `source` into `path`; returns what was drawn.

    `run` is the number of the run whose load is drawn, from 0: of a directory with results one that
    is there, of an experiment one that is simulated now.
    """
    if path.suffix not in KINDS:
        raise ExperimentError(
            f"{path}: unknown kind of picture; use a name that ends in {', '.join(KINDS)}"
        )
    chosen = _choose(source, overrides, run)
    net = network.of(chosen.spec["experiment"], chosen.spec["seed"], chosen.load)
    title = f"{chosen.title}: {picture.size(net)}"
    figure = picture.figure(net, path.stem, title, chosen.said)
    from weft.report.figures import draw_matplotlib

    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draw_matplotlib.draw_files(figure, [path])
    return figure


def _choose(source: str, overrides: Overrides, run: int | None) -> _Chosen:
    path = Path(source)
    if path.is_dir():
        return _of_results(path, overrides, run)
    if path.suffix == ".toml" and path.exists():
        experiment = _fabric_alone(path, overrides) if run is None else None
        return _of_experiment(experiment or inputs.from_file(path, overrides), run)
    if path.suffix == ".toml":
        inputs.read_text(path)
    if run is not None:
        raise ExperimentError(
            f"--run {run}: {source} is a fabric without traffic; name an experiment (.toml), or a "
            "directory with results"
        )
    table = inputs.table_of("fabric", source)
    if "file" in table:
        table["file"] = str(path.absolute())
    experiment = inputs.from_dict({"fabric": table, **NO_TRAFFIC}, "fabric", overrides)
    title = path.name if "file" in table else str(table.get("topology", source))
    return _Chosen(experiment.runs[0], title, "")


def _fabric_alone(path: Path, overrides: Overrides) -> Experiment | None:
    """The fabric of a cluster file, or of a file with nothing else; None of an experiment."""
    try:
        table = tomllib.loads(inputs.read_text(path))
    except tomllib.TOMLDecodeError:
        return None
    if "fabric" not in table or {"workload", "extends"} & set(table):
        return None
    keys = [key for key in ("title", "fabric", "failures") if key in table]
    kept: dict[str, Any] = {key: table[key] for key in keys}
    return inputs.from_dict({**kept, **NO_TRAFFIC}, str(path), overrides)


def _of_experiment(experiment: Experiment, run: int | None) -> _Chosen:
    """The fabric of an experiment; the load of a run is simulated."""
    spec = _numbered(experiment.runs, run or 0, experiment.source)
    others = len({json.dumps(_fabric(one)) for one in experiment.runs}) - 1
    said = f"Of run {run or 0}; {others} more fabrics are in the sweep." if others else ""
    if run is None:
        return _Chosen(spec, experiment.title, said)
    outcome = _native.run(json.dumps(spec["experiment"]), spec["seed"])
    load = np.asarray(outcome["links"]["utilisation"], dtype=np.float64)
    return _Chosen(spec, experiment.title, _of_run(spec, run), load)


def _of_results(directory: Path, overrides: Overrides, run: int | None) -> _Chosen:
    """The fabric and the load of a run that has finished."""
    import polars as pl

    if overrides:
        raise ExperimentError(
            f"{directory}: --set changes an experiment, and these are results; choose with --run"
        )
    results = study.load(directory)
    rows = results.runs.select("run", "key", "experiment").rows(named=True)
    number = rows[0]["run"] if run is None and rows else run or 0
    row = next((row for row in rows if row["run"] == number), None)
    if row is None:
        all_of_them = [str(row["run"]) for row in rows] or ["none"]
        some = [*all_of_them[:7], "...", all_of_them[-1]] if len(rows) > 9 else all_of_them
        numbers = ", ".join(some)
        raise ExperimentError(f"--run {number}: no such run in {directory}; there are {numbers}")
    specs = {
        (one.name, spec["key"]): (one, spec)
        for one in results.study.experiments
        for spec in one.runs
    }
    experiment, spec = specs[row["experiment"], row["key"]]
    links = results.links.filter(pl.col("run") == number).sort("port").select("utilisation")
    load = links.collect()["utilisation"].to_numpy().astype(np.float64)
    return _Chosen(spec, experiment.title, _of_run(spec, number), load)


def _of_run(spec: RunSpec, run: int) -> str:
    return (
        f"Run {run} ({spec['label']}, seed {spec['seed']}): the share of each link's capacity that "
        "was used until the last packet, in its busier direction."
    )


def _numbered(runs: Sequence[RunSpec], run: int, source: str) -> RunSpec:
    if not 0 <= run < len(runs):
        raise ExperimentError(f"--run {run}: no such run in {source}; use 0 to {len(runs) - 1}")
    return runs[run]


def _fabric(spec: RunSpec) -> list[Any]:
    return [spec["experiment"].get(key) for key in ("fabric", "failures")]
