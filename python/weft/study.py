"""A study: experiments run by one command, and what a results directory says about them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import _native
from weft._native import ExperimentError
from weft._types import Row, RunSpec
from weft.inputs import Experiment
from weft.store import TABLES, Listed, Store

if TYPE_CHECKING:
    import polars as pl

_FILE = "study.json"


@dataclass(frozen=True)
class Study:
    """Experiments whose results stand in one directory, and where they came from."""

    experiments: Sequence[Experiment]
    command: str
    """The command line that makes this directory again."""
    code_version: str

    def runs(self) -> list[RunSpec]:
        """All runs, in result order."""
        return [spec for experiment in self.experiments for spec in experiment.runs]

    def listed(self, store: Store) -> Listed:
        """All runs that have finished, in result order."""
        return [
            (experiment.name, spec)
            for experiment in self.experiments
            for spec in experiment.runs
            if store.has(spec["key"])
        ]

    def save(self, directory: Path) -> None:
        """Write what `load` reads."""
        draft = directory / f".{_FILE}.{os.getpid()}"
        draft.write_text(json.dumps(asdict(self), indent=1) + "\n")
        draft.replace(directory / _FILE)


def of(experiments: Sequence[Experiment], command: str = "") -> Study:
    """A study with the code at hand."""
    return Study(experiments, command, _native.code_version)


@dataclass(frozen=True)
class Results:
    """A finished study and its tables; those that may be large are read when used."""

    study: Study
    runs: pl.DataFrame
    timing: pl.DataFrame
    flows: pl.LazyFrame
    links: pl.LazyFrame
    series: pl.LazyFrame

    def rows(self, experiment: Experiment) -> list[Row]:
        """The rows of one experiment, in run order, each with its run number and `swept`."""
        # By key: a run that stalled has no row, and two experiments may share a run.
        specs = {spec["key"]: spec for spec in experiment.runs}
        return [
            row | {"swept": specs[row["key"]]["swept"]}
            for row in self.runs.iter_rows(named=True)
            if row["experiment"] == experiment.name
        ]


def load(directory: Path) -> Results:
    """The results in a directory that `weft run -o` or `weft compare -o` made."""
    import polars as pl

    try:
        saved: dict[str, Any] = json.loads((directory / _FILE).read_text())
    except FileNotFoundError:
        raise ExperimentError(
            f"{directory}: no results there (no {_FILE}); name the -o directory of a finished run"
        ) from None
    for name in ("runs", "timing", *TABLES):
        if not (directory / f"{name}.parquet").is_file():
            raise ExperimentError(
                f"{directory}: {name}.parquet is missing; repeat the command that made it: "
                f"{saved['command']}"
            )
    experiments = [Experiment(**experiment) for experiment in saved.pop("experiments")]
    return Results(
        Study(experiments, **saved),
        runs=pl.read_parquet(directory / "runs.parquet"),
        timing=pl.read_parquet(directory / "timing.parquet"),
        **{name: pl.scan_parquet(directory / f"{name}.parquet") for name in TABLES},
    )
