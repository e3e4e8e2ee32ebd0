"""A study: the experiments of one command, and the results in a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import _native
from weft._types import Row, RunSpec
from weft.errors import ExperimentError, replace_text
from weft.study import best_value
from weft.study import check as checks
from weft.study.executor import Parallelism
from weft.study.inputs import Experiment
from weft.study.progress import ProgressReporter
from weft.study.store import RUNS, TABLES, Listed, Store, is_readable, table_damage
from weft.study.sweep import LaterRuns, Shard, SweepResult, execute, run_name

if TYPE_CHECKING:
    import polars as pl

_FILE = "study.json"
_COLUMNS = {
    "runs": {"run", "experiment", "key", "scheme", "seed", "cct_s"},
    "timing": {"run", "wall_s"},
}
"""Some of what tables of results have; all others have `run`."""


@dataclass(frozen=True)
class Study:
    """Experiments with results in one directory, and the command that made them."""

    experiments: Sequence[Experiment]
    command: str
    """The command line that makes this directory again."""
    code_version: str
    stalled: dict[str, str] = field(default_factory=dict)
    """By key: what waits for what in runs that stalled."""

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

    def rows(self, experiment: Experiment, store: Store) -> list[Row]:
        """The rows of one experiment's finished runs, in run order, each with its `swept`."""
        records = [
            (spec, store.record(spec["key"])) for spec in experiment.runs if store.has(spec["key"])
        ]
        return [
            record["row"] | {"swept": spec["swept"], "wall_s": record["timing"]["wall_s"]}
            for spec, record in records
        ]

    def stalled_runs(self, experiment: Experiment) -> list[Row]:
        """What is known of one experiment's stalled runs: who they are, and why (`stalled`)."""
        return [
            {
                "label": spec["label"],
                "scheme": spec["experiment"]["balance"]["scheme"],
                "seed": spec["seed"],
                "swept": spec["swept"],
                "stalled": self.stalled[spec["key"]],
            }
            for spec in experiment.runs
            if spec["key"] in self.stalled
        ]

    def simulate(
        self,
        store: Store,
        parallelism: Parallelism,
        reporter: ProgressReporter,
        shard: Shard | None = None,
    ) -> tuple[Study, SweepResult]:
        """Simulate what is missing; the study of the runs that belong to its results.

        Those are all runs, but for an experiment that searches for the best value of a key
        with a few seeds: of its other values the other seeds are left out. Of a shard only the
        runs that depend on no others are simulated, and all belong to the study.
        """
        first, expected = self._first_runs()
        if shard is not None:
            first, expected = shard.share(first), 0
        later = (
            LaterRuns(lambda: self._without_rejected(store).runs(), expected) if expected else None
        )
        unchecked = True

        def on_row(row: Row) -> None:
            nonlocal unchecked
            if unchecked:
                for experiment in self.experiments:
                    experiment.settings.check(row)
            unchecked = False

        result = execute(first, store, parallelism, reporter, self.name_of, later, on_row)
        told = replace(self, stalled=result.stalled)
        whole = result.interrupted or shard is not None
        return told if whole else told._without_rejected(store), result

    def searched(self, store: Store) -> Study:
        """The study of the runs that belong to its results, once searches for values are over."""
        first, _ = self._first_runs()
        over = all(store.has(spec["key"]) for spec in first)
        return self._without_rejected(store) if over else self

    def _first_runs(self) -> tuple[list[RunSpec], int]:
        """The runs that do not depend on others, and how many will."""
        runs: list[RunSpec] = []
        expected = 0
        for experiment in self.experiments:
            wanted = experiment.settings.best
            runs += (
                experiment.runs
                if wanted is None
                else best_value.search_runs(experiment.runs, wanted)
            )
            expected += 0 if wanted is None else best_value.expected(experiment.runs, wanted)
        return runs, expected

    def _without_rejected(self, store: Store) -> Study:
        """The study without the runs that a search has made needless."""
        experiments = []
        for experiment in self.experiments:
            wanted = experiment.settings.best
            if wanted is not None and wanted.search_seeds is not None:
                rows = self.rows(experiment, store)
                if rows:
                    experiment.settings.check(rows[0])
                runs = best_value.without_rejected(experiment.runs, rows, wanted)
                experiment = replace(experiment, runs=runs)
            experiments.append(experiment)
        return replace(self, experiments=experiments)

    def name_of(self, spec: RunSpec) -> str:
        """What a run is called: its experiment and what tells it from the others there."""
        return f"{self._owners[spec['key']]} {run_name(spec)}"

    @cached_property
    def _owners(self) -> dict[str, str]:
        """By run, the first experiment that has it."""
        return {
            spec["key"]: experiment.name
            for experiment in reversed(self.experiments)
            for spec in experiment.runs
        }

    def replaced(self, directory: Path) -> list[str]:
        """The names of other experiments whose tables are in a directory."""
        if not (directory / RUNS).exists():
            return []
        try:
            saved = json.loads((directory / _FILE).read_text())["experiments"]
            others = [(one["name"], one["title"]) for one in saved]
        except (OSError, ValueError, LookupError, TypeError):
            return []
        mine = [(one.name, one.title) for one in self.experiments]
        return [name for name, title in others if (name, title) not in mine]

    def save(self, directory: Path) -> None:
        """Write what `load` reads."""
        # `asdict` would copy every run, and takes longer than all else here.
        whole = {one.name: getattr(self, one.name) for one in fields(self)}
        whole["experiments"] = [
            {one.name: getattr(experiment, one.name) for one in fields(experiment)}
            for experiment in self.experiments
        ]
        replace_text(directory / _FILE, json.dumps(whole, indent=1) + "\n")


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
    collectives: pl.LazyFrame
    nodes: pl.LazyFrame
    messages: pl.LazyFrame
    series: pl.LazyFrame
    check: checks.Check | None = None
    """What `--check` found, if it was asked for."""

    def rows(self, experiment: Experiment) -> list[Row]:
        """The rows of one experiment, in run order, each with its run number and `swept`."""
        return rows_of(experiment, self.runs)


def rows_of(experiment: Experiment, runs: pl.DataFrame) -> list[Row]:
    """The rows of one experiment among those of a study, each with its `swept`."""
    # By key: a run that stalled has no row, and two experiments may share a run.
    specs = {spec["key"]: spec for spec in experiment.runs}
    return [
        row | {"swept": specs[row["key"]]["swept"]}
        for row in runs.iter_rows(named=True)
        if row["experiment"] == experiment.name
    ]


def load(directory: Path) -> Results:
    """The results in a directory that `weft run -o` or `weft compare -o` made."""
    import polars as pl

    whole = saved(directory)
    if not (directory / RUNS).exists():
        lacks = "no run has finished, and some stalled" if whole.stalled else "unfinished"
        raise ExperimentError(
            f"{directory}: {lacks}; repeat the command that began it: {whole.command}"
        )
    with naming_damage(directory, whole):
        for name in ("runs", "timing", *TABLES):
            path = directory / f"{name}.parquet"
            flaw = table_damage(path)
            if flaw is None:
                columns = set(pl.read_parquet_schema(path))
                own = _COLUMNS.get(name, {"run"})
                # Tables without rows may have no columns.
                if not own <= columns and (columns or name not in TABLES):
                    flaw = f"{path.name} is damaged: not the columns of results"
            if flaw is not None:
                raise _damaged(directory, flaw, whole)
        runs = pl.read_parquet(directory / "runs.parquet")
        return Results(
            whole,
            runs=runs,
            timing=pl.read_parquet(directory / "timing.parquet"),
            **{name: pl.scan_parquet(directory / f"{name}.parquet") for name in TABLES},
            check=checks.load(directory, runs),
        )


@contextmanager
def naming_damage(directory: Path, whole: Study) -> Iterator[None]:
    """Let trouble with tables in a directory of results name the one that cannot be read.

    Most of them are read when they are asked for, and to look through all of them first would
    take as long again.
    """
    from polars.exceptions import PanicException, PolarsError

    try:
        yield
    except (PolarsError, PanicException):
        for name in ("runs", "timing", *TABLES):
            path = directory / f"{name}.parquet"
            if not is_readable(path):
                raise _damaged(directory, f"{path.name} is damaged", whole) from None
        raise


def _damaged(directory: Path, flaw: str, whole: Study) -> ExperimentError:
    return ExperimentError(f"{directory}: {flaw}; repeat the command that made it: {whole.command}")


def _unknown(kind: type[Study | Experiment], found: dict[str, Any]) -> list[str]:
    """Fields in a file that another version has written."""
    return sorted(set(found) - {one.name for one in fields(kind)})


def saved(directory: Path) -> Study:
    """The study whose results are in a directory."""
    try:
        found: dict[str, Any] = json.loads((directory / _FILE).read_text())
        experiments = found.pop("experiments")
        unknown = [f"experiments.{key}" for one in experiments for key in _unknown(Experiment, one)]
        unknown += _unknown(Study, found)
        if unknown:
            raise ExperimentError(
                f"{directory}: {_FILE}: {unknown[0]}: this version of Weft does not know it; use "
                "the version that wrote it, or repeat the command that made it"
            )
        return Study([Experiment(**experiment) for experiment in experiments], **found)
    except FileNotFoundError:
        if any(directory.glob("runs/*/row.json")):
            raise ExperimentError(
                f"{directory}: unfinished (no {_FILE}); repeat the command that began it"
            ) from None
        raise ExperimentError(
            f"{directory}: no results there (no {_FILE}); name the -o directory of a finished run"
        ) from None
    except NotADirectoryError:
        raise ExperimentError(
            f"{directory}: not a directory; name the -o directory of a finished run"
        ) from None
    except ExperimentError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ExperimentError(
            f"{directory}: {_FILE} is damaged; repeat the command that made it"
        ) from None
