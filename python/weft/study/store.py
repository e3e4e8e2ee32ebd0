"""Storage of results: one folder for each finished run, and the tables assembled from them.

A results directory has `runs/<key>/` (one finished run: `row.json` and parquet files), the
assembled `runs.parquet`, `flows.parquet`, `links.parquet`, `series.parquet`, for jobs
`collectives.parquet` (and `nodes.parquet`, `messages.parquet`), and `timing.parquet`, the only
one of these that differs between machines; `study.json` says which runs belong to it.
`weft.study.check` may add `check.parquet`. A run's folder appears by one rename, so it is complete
or not there.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from weft._types import Outcome, Row, RunSpec, Timing
from weft.errors import DiskError, ExperimentError, writing

if TYPE_CHECKING:
    import polars as pl

RUNS = "runs.parquet"
"""The table that every results directory has, one row a run."""
ALWAYS = ("flows", "links", "series")
OF_JOBS = ("collectives", "nodes", "messages")
"""Tables that only runs with jobs have; the last two only with `probe.timeline`."""
TABLES = ALWAYS + OF_JOBS
_NUMBER, _TEXT, _BYTES, _REAL = "UInt32", "String", "UInt64", "Float64"
_SPAN = {"start_s": _REAL, "finish_s": _REAL}
_JOB = {"job": _NUMBER, "job_name": _TEXT}
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "collectives": {
        **_JOB,
        **dict.fromkeys(("operation", "algorithm", "name", "group"), _TEXT),
        **{"ranks": _NUMBER, "bytes": _BYTES},
        **_SPAN,
        **dict.fromkeys(("time_s", "algbw_gb_s", "busbw_gb_s"), _REAL),
    },
    "nodes": {
        **_JOB,
        **dict.fromkeys(("rank", "job_rank", "node"), _NUMBER),
        **dict.fromkeys(("name", "work"), _TEXT),
        **_SPAN,
    },
    "messages": {
        **dict.fromkeys(("message", "src_rank", "dst_rank", "node"), _NUMBER),
        "bytes": _BYTES,
        **_SPAN,
    },
}
"""Of `OF_JOBS`, where no run has one: its own columns, with Polars' names of their types."""
_BATCH = 64
"""Runs whose tables are read at once."""


class Record(TypedDict):
    """What `row.json` holds."""

    row: Row
    timing: Timing
    warnings: list[str]


@dataclass(frozen=True)
class Packed:
    """A finished run as it travels between machines."""

    record: Record
    tables: dict[str, bytes]
    """Parquet files by the name of the table."""


class Store(Protocol):
    """Finished runs by key. `put` is called from several threads at once."""

    keeps_tables: bool
    """Whether it needs more of a run than the scalars."""

    def has(self, key: str) -> bool:
        """Whether the run has finished."""

    def put(self, spec: RunSpec, outcome: Outcome) -> None:
        """Keep a finished run."""

    def put_packed(self, key: str, packed: Packed) -> None:
        """Keep a run that has finished elsewhere; the files are the same bytes as with `put`."""

    def record(self, key: str) -> Record:
        """The scalars of a finished run."""

    def table(self, key: str, name: str) -> pl.LazyFrame | None:
        """One of `TABLES` of a finished run; None if it has none."""


class MemoryStore:
    """Keeps everything in memory."""

    keeps_tables = True

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._tables: dict[str, dict[str, pl.DataFrame]] = {}

    def has(self, key: str) -> bool:
        """Whether the run has finished."""
        return key in self._records

    def put(self, spec: RunSpec, outcome: Outcome) -> None:
        """Keep a finished run."""
        self._tables[spec["key"]] = _frames(outcome)
        self._records[spec["key"]] = _record(outcome)

    def put_packed(self, key: str, packed: Packed) -> None:
        """Keep a run that has finished elsewhere."""
        import polars as pl

        self._tables[key] = {
            name: pl.read_parquet(io.BytesIO(table)) for name, table in packed.tables.items()
        }
        self._records[key] = packed.record

    def record(self, key: str) -> Record:
        """The scalars of a finished run."""
        return self._records[key]

    def table(self, key: str, name: str) -> pl.LazyFrame | None:
        """One of `TABLES` of a finished run; None if it has none."""
        frame = self._tables[key].get(name)
        return None if frame is None else frame.lazy()


class RowStore(MemoryStore):
    """Keeps only the scalars: for a command that shows a table and leaves no files."""

    keeps_tables = False

    def put(self, spec: RunSpec, outcome: Outcome) -> None:
        """Keep a finished run's scalars."""
        self._records[spec["key"]] = _record(outcome)

    def table(self, key: str, name: str) -> pl.LazyFrame | None:
        """None: only scalars are kept."""
        return None


class DirectoryStore:
    """Keeps each run in a folder of its own under `directory/runs`."""

    keeps_tables = True

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        self._runs = directory / "runs"
        # Before anything is simulated: who cannot write there is told now.
        if not read_only:
            self._runs.mkdir(parents=True, exist_ok=True)

    def has(self, key: str) -> bool:
        """Whether the run has finished."""
        return (self._runs / key / "row.json").is_file()

    def discard_damaged(self, keys: Iterable[str]) -> list[str]:
        """Remove those of the runs whose files are cut or unreadable: what is wrong with each.

        Folders appear whole, but a machine may lose power before their files are on the disk.
        """
        flaws = []
        for key in dict.fromkeys(keys):
            flaw = _run_damage(self._runs / key)
            if flaw is not None:
                shutil.rmtree(self._runs / key)
                flaws.append(flaw)
        return flaws

    def put(self, spec: RunSpec, outcome: Outcome) -> None:
        """Keep a finished run."""

        def write(draft: Path) -> None:
            for name, frame in _frames(outcome).items():
                frame.write_parquet(draft / f"{name}.parquet")
            _write_record(draft, _record(outcome))

        self._keep(spec["key"], write)

    def put_packed(self, key: str, packed: Packed) -> None:
        """Keep a run that has finished elsewhere."""

        def write(draft: Path) -> None:
            for name, table in packed.tables.items():
                (draft / f"{name}.parquet").write_bytes(table)
            _write_record(draft, packed.record)

        self._keep(key, write)

    def adopt(self, key: str, directory: Path) -> str | None:
        """Copy a run of another results directory; what is wrong with its files, if anything."""
        folder = directory / "runs" / key
        flaw = _run_damage(folder)
        if flaw is None and folder.is_dir():
            self._keep(key, lambda draft: _copy_files(folder, draft))
        return flaw

    def _keep(self, key: str, write: Callable[[Path], None]) -> None:
        """Keep a finished run: written to a draft folder, which is then renamed."""
        draft = self._runs / f".{key}.{os.getpid()}.{threading.get_ident()}"
        try:
            with writing(self._runs):
                draft.mkdir()
                write(draft)
                draft.rename(self._runs / key)
        except DiskError:
            # Another process may have finished the same run first; its result is the same.
            if not self.has(key):
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def record(self, key: str) -> Record:
        """The scalars of a finished run."""
        record: Record = json.loads((self._runs / key / "row.json").read_text())
        return record

    def table(self, key: str, name: str) -> pl.LazyFrame | None:
        """One of `TABLES` of a finished run; None if it has none."""
        import polars as pl

        path = self._runs / key / f"{name}.parquet"
        return pl.scan_parquet(path) if name in ALWAYS or path.exists() else None


Listed = Sequence[tuple[str, RunSpec]]
"""Runs in result order, each with the name of its experiment."""


def runs_frame(listed: Listed, store: Store) -> pl.DataFrame:
    """One row a run: who it is, what was swept, what came out. No timing."""
    import polars as pl

    swept = dict.fromkeys(key for _, spec in listed for key in spec["swept"])
    rows = [store.record(spec["key"])["row"] for _, spec in listed]
    own = {
        "run": pl.Series(range(len(listed)), dtype=pl.UInt32),
        "experiment": [name for name, _ in listed],
        "label": [spec["label"] for _, spec in listed],
        "key": [spec["key"] for _, spec in listed],
    }
    # A table of the experiment may be called as a result is: `workload`.
    taken = own.keys() | {column for row in rows for column in row}
    columns = {
        f"swept.{key}" if key in taken else key: uniform(
            [spec["swept"].get(key) for _, spec in listed]
        )
        for key in swept
    }
    frame = pl.DataFrame(own | columns)
    return pl.concat([frame, pl.DataFrame(rows, infer_schema_length=None)], how="horizontal")


def timing_frame(listed: Listed, store: Store) -> pl.DataFrame:
    """One row a run: what it cost."""
    import polars as pl

    timings = [
        {"run": run, "experiment": name, "key": spec["key"]} | store.record(spec["key"])["timing"]
        for run, (name, spec) in enumerate(listed)
    ]
    return pl.DataFrame(timings, schema_overrides={"run": pl.UInt32}, infer_schema_length=None)


def table(listed: Listed, store: Store, name: str) -> pl.DataFrame:
    """One of `TABLES` of all runs, each row with its run, experiment, scheme, seed and fidelity."""
    import polars as pl

    frames = [batch.collect() for batch in _batches(listed, store, name)]
    return pl.concat(frames, how="diagonal_relaxed") if frames else _without_rows(name)


def _without_rows(name: str) -> pl.DataFrame:
    """One of `TABLES` that no run has; with its columns, so that queries need not ask for it."""
    import polars as pl

    columns = _COLUMNS.get(name)
    if columns is None:
        return pl.DataFrame()
    whose = {"run": _NUMBER, "experiment": _TEXT, "scheme": _TEXT, "seed": "Int32"}
    types = {**whose, "fidelity": _TEXT, **columns}
    return pl.DataFrame(schema={column: getattr(pl, kind) for column, kind in types.items()})


def _batches(listed: Listed, store: Store, name: str) -> Iterator[pl.LazyFrame]:
    """The same, some runs at a time: the time for a plan grows with the square of its inputs."""
    import polars as pl

    for first in range(0, len(listed), _BATCH):
        parts = []
        for run, (experiment, spec) in enumerate(listed[first : first + _BATCH], first):
            own = store.table(spec["key"], name)
            if own is None:
                continue
            row = store.record(spec["key"])["row"]
            whose = [
                pl.lit(run, dtype=pl.UInt32).alias("run"),
                pl.lit(experiment).alias("experiment"),
                pl.lit(row["scheme"]).alias("scheme"),
                pl.lit(row["seed"]).alias("seed"),
                pl.lit(row.get("fidelity"), dtype=pl.String).alias("fidelity"),
            ]
            parts.append(own.select(*whose, pl.all()))
        if parts:
            yield pl.concat(parts, how="diagonal_relaxed")


def assemble(directory: Path, listed: Listed, store: Store) -> None:
    """Write the tables of a results directory; the same runs give the same bytes."""
    paths = {name: directory / f"{name}.parquet" for name in ("runs", "timing", *TABLES)}
    drafts = {name: path.with_name(f".{path.name}.{os.getpid()}") for name, path in paths.items()}
    try:
        with writing(directory):
            runs_frame(listed, store).write_parquet(drafts["runs"])
            timing_frame(listed, store).write_parquet(drafts["timing"])
            for name in TABLES:
                with _naming_run(directory, listed, name):
                    _write_table(listed, store, name, drafts[name])
            for name, path in paths.items():
                drafts[name].replace(path)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


@contextmanager
def _naming_run(directory: Path, listed: Listed, name: str) -> Iterator[None]:
    """Let trouble with a table name the run whose file cannot be read."""
    from polars.exceptions import PanicException, PolarsError

    try:
        yield
    except (PolarsError, PanicException):
        for _, spec in listed:
            folder = directory / "runs" / spec["key"]
            path = folder / f"{name}.parquet"
            if path.exists() and not is_readable(path):
                raise ExperimentError(
                    f"{path}: is damaged; remove {folder}, and repeat the command"
                ) from None
        raise


def _write_table(listed: Listed, store: Store, name: str, draft: Path) -> None:
    """Write one of `TABLES` of all runs.

    Streamed, since the flows of a sweep may not fit in memory; row groups of a fixed size in a
    fixed order, since the bytes must not depend on the number of threads.
    """
    import polars as pl

    parts: list[Path] = []
    try:
        for batch in _batches(listed, store, name):
            parts.append(draft.with_name(f"{draft.name}.{len(parts)}"))
            _sink(batch, parts[-1])
        frames = [pl.scan_parquet(part) for part in parts]
        whole = pl.concat(frames, how="diagonal_relaxed") if frames else _without_rows(name).lazy()
        _sink(whole, draft)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _sink(frame: pl.LazyFrame, path: Path) -> None:
    frame.sink_parquet(path, row_group_size=1 << 17, maintain_order=True)


def table_damage(path: Path) -> str | None:
    """What is wrong with a parquet file that is missing or cut off; None if nothing."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(max(0, size - 8))
            tail = file.read(8)
    except FileNotFoundError:
        return f"{path.name} is missing"
    # The footer's length and these letters end the format's files, so a cut one lacks them.
    footer = int.from_bytes(tail[:4], "little")
    whole = head == tail[4:] == b"PAR1" and footer + 12 <= size
    return None if whole else f"{path.name} is damaged"


def is_readable(path: Path) -> bool:
    """Whether all of a parquet file can be read, which takes as long as to read it."""
    import polars as pl
    from polars.exceptions import PanicException, PolarsError

    try:
        pl.read_parquet(path)
    except (PolarsError, PanicException):
        return False
    return True


def _run_damage(folder: Path) -> str | None:
    if not folder.exists():
        return None
    try:
        record = json.loads((folder / "row.json").read_text())
        whole = {"row", "timing", "warnings"} <= record.keys()
    except FileNotFoundError:
        return "row.json is missing"
    except (ValueError, AttributeError):
        whole = False
    if not whole:
        return "row.json is damaged"
    there = [name for name in OF_JOBS if (folder / f"{name}.parquet").exists()]
    flaws = (table_damage(folder / f"{name}.parquet") for name in (*ALWAYS, *there))
    return next((flaw for flaw in flaws if flaw is not None), None)


def uniform(values: Sequence[Any]) -> list[Any]:
    """Swept values as one column: numbers if all are, else text (absent stays absent)."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int} or kinds <= {bool}:
        return list(values)
    if kinds <= {int, float}:
        return [None if value is None else float(value) for value in values]
    return [None if value is None else text_of(value) for value in values]


def text_of(value: object) -> str:
    """A swept value as a reader knows it from the experiment file."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))


def _record(outcome: Outcome) -> Record:
    row, timing, warnings = outcome["row"], outcome["timing"], outcome["warnings"]
    return {"row": row, "timing": timing, "warnings": warnings}


def _write_record(folder: Path, record: Record) -> None:
    (folder / "row.json").write_text(json.dumps(record, indent=1) + "\n")


def _copy_files(folder: Path, to: Path) -> None:
    for path in folder.iterdir():
        shutil.copyfile(path, to / path.name)


def pack(outcome: Outcome, with_tables: bool) -> Packed:
    """A finished run for a `Store` on another machine."""
    tables = {}
    for name, frame in _frames(outcome).items() if with_tables else ():
        file = io.BytesIO()
        frame.write_parquet(file)
        tables[name] = file.getvalue()
    return Packed(_record(outcome), tables)


def _frames(outcome: Outcome) -> dict[str, pl.DataFrame]:
    import polars as pl

    series = outcome["series"]
    empty = {"time_s": pl.Float64, "name": pl.String, "kind": pl.String, "bytes": pl.UInt64}
    parts = [pl.DataFrame(schema=empty)]
    for name, kind, samples in zip(series["names"], series["kinds"], series["bytes"], strict=True):
        times = pl.Series("time_s", series["time_s"], dtype=pl.Float64)
        part = pl.DataFrame({"time_s": times, "bytes": pl.Series(samples, dtype=pl.UInt64)})
        names = [pl.lit(name).alias("name"), pl.lit(kind).alias("kind")]
        parts.append(part.select("time_s", *names, "bytes"))
    columns: Mapping[str, Mapping[str, Any]] = {
        "flows": outcome["flows"],
        "links": outcome["links"],
        "collectives": outcome["collectives"],
        "nodes": outcome["nodes"],
        "messages": outcome["messages"],
    }
    tables = {name: pl.DataFrame(table) for name, table in columns.items()}
    used = {name: table for name, table in tables.items() if name in ALWAYS or table.height}
    return used | {"series": pl.concat(parts)}
