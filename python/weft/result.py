"""Results as Python and notebooks see them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import ExperimentError, naming_arguments

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from weft._types import Row, Verdict
    from weft.plans.verify import Checked
    from weft.report.views import View
    from weft.study.inputs import Experiment
    from weft.study.study import Study
    from weft.switches.config import File

_ROOMY = 100
"""Columns of a table, at most."""


# Data frames compare by element: two results are equal only if they are the same.
@dataclass(frozen=True, eq=False)
class Result:
    """What `simulate` and `load` return: Polars data frames.

    Times are in seconds (`_s`), sizes in bytes; `run` joins the frames. In a notebook it shows its
    table.
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
    """One row a sample of each probe: `time_s`, `name`, `kind` ("port", "switch", "sent",
    "goodput"), `bytes`."""
    timing: pl.DataFrame
    """One row a run: `wall_s`, `build_s`, `events`, `threads`. Differs between machines."""
    warnings: list[str]
    """What is odd about the experiment though it runs; also issued as `weft.WeftWarning`."""
    summary: dict[str, Any]
    """Means over seeds, best values, and comparisons with printed results: what
    `weft run --summary` prints of an experiment."""
    _study: Study
    """The experiments, and the runs that stalled."""

    @property
    def verdict(self) -> Verdict | None:
        """What `weft compare` ends with: `text`, `best`, `slowdown`, `needs`, `loser`, `loss`, ...

        None if there is nothing to compare, or there are several experiments: each of
        `summary["experiments"]` has its own.
        """
        found: Verdict | None = self.summary.get("verdict")
        return found

    def __str__(self) -> str:
        """The tables that the command line prints: those of each experiment."""
        from weft.report import console

        shown = (console.text(*one, _ROOMY) for one in self._shown())
        return "\n\n".join(shown)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        from weft.report import notebook

        return "".join(notebook.html(one, view) for one, _, view in self._shown())

    def _shown(self) -> Iterator[tuple[Experiment, Sequence[Row], View]]:
        """Each experiment, its rows and their view."""
        from weft.report import views
        from weft.study import study

        times = dict(self.timing.select("run", "wall_s").iter_rows())

        def rows(experiment: Experiment) -> list[Row]:
            found = study.rows_of(experiment, self.runs)
            return [row | {"wall_s": times[row["run"]]} for row in found]

        return views.of_study(self._study, rows)

    def save_timelines(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write what every rank did and when, a file for each run: `weft run --timeline`.

        Open a file in ui.perfetto.dev. The experiment has to have `probe.timeline = true`.

        Returns:
            The files (`.json.gz`).

        Raises:
            ExperimentError: No run has a timeline.
        """
        from weft.report import timeline

        return timeline.write(self.runs, self.nodes.lazy(), self.messages.lazy(), Path(directory))

    def to_pandas(self, frame: str = "runs") -> pd.DataFrame:
        """One of the frames for Pandas, which needs `pip install pandas pyarrow`.

        Args:
            frame: `"runs"`, `"flows"`, `"links"`, `"collectives"`, `"nodes"`, `"messages"`,
                `"series"` or `"timing"`.

        Raises:
            ExperimentError: There is no such frame, or Pandas is not installed.
        """
        others = ("warnings", "summary", "_study")
        names = [one.name for one in fields(self) if one.name not in others]
        if frame not in names:
            raise ExperimentError(f"to_pandas: no frame {frame!r}; use one of {', '.join(names)}")
        try:
            found: pl.DataFrame = getattr(self, frame)
            return found.to_pandas()
        except ImportError as error:
            raise ExperimentError(
                "to_pandas: pandas and pyarrow are needed; run: pip install pandas pyarrow"
            ) from error


@dataclass(frozen=True)
class Plan:
    """What `plan` returns: which path every part of a job takes, and how good that is."""

    document: dict[str, Any]
    """What `plan.json` holds (docs/plans.md): `steps` with loads and certificates, `links`,
    `seconds` on the busiest links, `bound_s`, ..."""

    # Equal if the documents are, which are dicts.
    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """What `weft plan` prints."""
        from weft.plans import show
        from weft.software import show as software

        return "\n\n".join([show.text(self.document), *software.near(self.document)])

    def __repr__(self) -> str:
        return str(self)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write what `weft plan -o` writes, for `weft switch-config` and `WEFT_CONFIG`."""
        from weft.plans import folder

        folder.write(self.document, Path(directory))

    def hosts_for(self, software: str, host: str | None = None) -> dict[str, str]:
        """What other software takes of it: `weft plan --hosts-for`.

        Args:
            software: `"mooncake"`, `"uccl"`, ... (`weft.list("software")`).
            host: Only this host, by its name in the cluster or in Weft.

        Returns:
            The text of each file by its name: `h0.env`, ...

        Raises:
            ExperimentError: There is no such software or host, or the cluster does not send RoCEv2.
        """
        from weft.plans.file import as_written
        from weft.software import files
        from weft.software.planned import Planned

        with as_written(), naming_arguments("host", hosts_for="software"):
            made = files.of(software, Planned(self.document), host)
        return {file.name: file.text for file in made}

    def verify(self) -> list[Checked]:
        """Compute loads and bounds again, from the plan alone; one answer for each step.

        Raises:
            ExperimentError: Something does not agree: the step, the link, both numbers.
        """
        from weft.plans import verify

        return verify.verify(self.document)


@dataclass(frozen=True)
class SwitchConfig:
    """What `switch_config` returns: the files of every switch that steers by source port."""

    files: dict[str, str]
    """The text of each file by its name: `leaf-0.json`, `leaf-0.rollback`, ..."""
    remarks: list[str]
    """What the platform cannot do, and links that have no rule."""

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """What `weft switch-config` prints: all files, each under its name."""
        from weft.switches import config

        return config.printed(self._listed())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The files for a notebook, each behind its name."""
        # Notebooks have blocks of text in the letters of what is around them.
        block = '<pre style="font-family: monospace">'
        files = [
            f"<details><summary>{escape(name)}</summary>{block}{escape(text)}</pre></details>"
            for name, text in self.files.items()
        ]
        return "".join([*files, *(f"<p>{escape(remark)}</p>" for remark in self.remarks)])

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the files to a directory, as `weft switch-config -o` does."""
        from weft.switches import config

        config.write(self._listed(), Path(directory))

    def _listed(self) -> list[File]:
        from weft.switches import config

        return [config.File(name, text) for name, text in self.files.items()]


@dataclass(frozen=True)
class TraceInfo:
    """What `trace_info` returns: what is in a trace, and whether it can run."""

    document: dict[str, Any]
    """What `weft trace info --json` prints: `ranks`, `nodes`, `collectives`, `compute_s`, and
    `problems`, which is empty if the trace can run."""

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """What `weft trace info` prints."""
        from weft.analysis import trace_info

        return trace_info.text(self.document)

    def __repr__(self) -> str:
        return str(self)
