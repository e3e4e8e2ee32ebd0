"""`--check`: some of the runs that skipped packets (`run.fidelity`), done over packet by packet.

Whole runs, since slices of one mislead (experiments/fidelity). Which ones is drawn at random
without a look at their results, and the same sweep draws the same ones: so the largest difference
found is a bound on most of the others (`weft.study.stats.most_larger`).
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._types import Row, RunSpec
from weft.errors import ExperimentError, writing
from weft.study import stats
from weft.study.executor import Parallelism
from weft.study.inputs import from_dict
from weft.study.progress import ProgressReporter
from weft.study.store import Listed, Store, table_damage, text_of
from weft.study.sweep import SweepResult, execute

if TYPE_CHECKING:
    import polars as pl

FILE = "check.parquet"
_FIDELITY, _SCHEME, _EXACT = "run.fidelity", "balance.scheme", "packet"
COUNTERS = ("packets", "control_packets", "packet_hops", "max_qps", "established_qps")
"""Result columns that count what was sent and the queue pairs, and are known at any fidelity."""
OF_CHECK = (
    *("packet_key", "packet_cct_s", "difference_pct", "core_s", "packet_core_s", "times_as_fast"),
    *(f"{counter}_difference" for counter in COUNTERS),
    "link_bytes_difference_pct",
)
"""Columns that a check adds to those of the run."""


@dataclass(frozen=True)
class Drawn:
    """A run that was drawn, and the same one packet by packet."""

    experiment: str
    spec: RunSpec
    packets: RunSpec


@dataclass(frozen=True)
class Check:
    """What the runs that were drawn are off by."""

    rows: Sequence[Row]
    """One for each drawn run, in result order; docs/fidelity.md describes the columns. What
    stalled or was refused packet by packet has no `packet_cct_s`."""
    skipped: int
    """Number of different runs of the sweep that skipped packets."""
    exact: int
    """Number of those that went packet by packet."""
    asked: bool = True
    """Whether any of them was asked to skip packets."""

    @cached_property
    def compared(self) -> list[Row]:
        """The rows with a result of both."""
        return [row for row in self.rows if row["packet_cct_s"] is not None]

    @cached_property
    def errors_pct(self) -> list[float]:
        """Sizes of the differences of completion times in percent, the smallest first."""
        return sorted(abs(row["difference_pct"]) for row in self.compared)

    @property
    def others(self) -> int:
        """Number of runs that skipped packets and were not drawn."""
        return self.skipped - len(self.rows)

    @property
    def most_larger(self) -> int | None:
        """The most of the others that may be further off than all drawn ones (95 % confidence).

        None if it is not known how far one of the drawn ones is off.
        """
        if len(self.compared) < len(self.rows):
            return None
        return stats.most_larger(self.skipped, len(self.rows))

    def as_json(self) -> dict[str, Any]:
        """For the summary; docs/experiments.md describes the keys."""
        errors = self.errors_pct
        return {
            "runs": self.skipped + self.exact,
            "exact": self.exact,
            "skipped": self.skipped,
            "drawn": len(self.rows),
            "compared": len(self.compared),
            "median_pct": statistics.median(errors) if errors else None,
            "largest_pct": errors[-1] if errors else None,
            "others": self.others,
            "most_larger": self.most_larger if self.rows else None,
            "confidence": 1 - stats.DOUBT,
        }


def skipped_packets(row: Row) -> bool:
    """Whether a result is not that of a simulation of every packet."""
    return bool(row["fidelity"] != _EXACT and row["skipped_pct"] != 0)


def draw(listed: Listed, store: Store, count: int) -> list[Drawn]:
    """`count` of the finished runs that skipped packets, or all if there are fewer; in their order.

    More of them are the same ones and some more.
    """
    candidates = [
        (name, spec)
        for name, spec in _distinct(listed)
        if skipped_packets(store.record(spec["key"])["row"])
    ]
    first = set(sorted(_lot(spec) for _, spec in candidates)[:count])
    return [Drawn(name, spec, by_packets(spec)) for name, spec in candidates if _lot(spec) in first]


def by_packets(spec: RunSpec) -> RunSpec:
    """The same run with every packet; it has the key of a run of `--fidelity packet`.

    Raises:
        ExperimentError: It cannot be simulated so.
    """
    experiment = spec["experiment"]
    told = {
        **experiment,
        "run": {**experiment["run"], "fidelity": _EXACT},
        "sweep": {"seeds": [spec["seed"]]},
    }
    return from_dict(told, spec["label"]).runs[0]


def run(
    drawn: Sequence[Drawn],
    store: Store,
    parallelism: Parallelism,
    reporter: ProgressReporter,
    name: Callable[[RunSpec], str],
) -> SweepResult:
    """Simulate packet by packet what `store` does not have of that yet.

    `name` says what a run is called. What stalls or cannot be simulated is noted in the result.
    """
    called = {one.packets["key"]: f"{name(one.spec)} by packets" for one in drawn}
    runs = [one.packets for one in drawn]
    return execute(
        runs, store, parallelism, reporter, lambda spec: called[spec["key"]], past_refused=True
    )


def of(drawn: Sequence[Drawn], listed: Listed, store: Store) -> Check:
    """The comparison, when all that could be run has been."""
    rows = [store.record(spec["key"])["row"] for _, spec in _distinct(listed)]
    return _of_runs([_row(one, store) for one in drawn], rows)


def fields(row: Row | None) -> Row:
    """What a row of the sweep has more than without a check: of a run that was drawn, by `row`."""
    own = dict.fromkeys(OF_CHECK) if row is None else {key: row[key] for key in OF_CHECK}
    return {"checked": own["packet_cct_s"] is not None, **own}


def save(check: Check | None, directory: Path) -> None:
    """Write `directory/check.parquet`; without a check remove that of an earlier one."""
    path = directory / FILE
    draft = path.with_name(f".{FILE}")
    with writing(path):
        if check is None or not check.rows:
            path.unlink(missing_ok=True)
            return
        try:
            _frame(check.rows).write_parquet(draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def load(directory: Path, runs: pl.DataFrame) -> Check | None:
    """The check that `save` wrote, of these runs; None if there was none.

    Raises:
        ExperimentError: The file is damaged.
    """
    import polars as pl

    path = directory / FILE
    if not path.exists():
        return None
    flaw = table_damage(path)
    if flaw is not None:
        raise ExperimentError(f"{directory}: {flaw}; repeat the command that made it")
    all_runs = list(runs.unique("key").iter_rows(named=True))
    return _of_runs(list(pl.read_parquet(path).iter_rows(named=True)), all_runs)


def _of_runs(rows: Sequence[Row], runs: Sequence[Row]) -> Check:
    skipped = sum(map(skipped_packets, runs))
    asked = any(row["fidelity"] != _EXACT for row in runs)
    return Check(rows, skipped, len(runs) - skipped, asked)


def _distinct(listed: Listed) -> Listed:
    """Each run once, though several experiments may have it."""
    found: dict[str, tuple[str, RunSpec]] = {}
    for name, spec in listed:
        found.setdefault(spec["key"], (name, spec))
    return list(found.values())


def _lot(spec: RunSpec) -> bytes:
    """A number that is as good as random, and the same for the same run whatever the version."""
    who = json.dumps([spec["experiment"], spec["seed"]], sort_keys=True)
    return hashlib.sha256(who.encode()).digest()


def _row(one: Drawn, store: Store) -> Row:
    """What is known of a drawn run: each time and counter, and how far they differ."""
    record = store.record(one.spec["key"])
    cheap, exact = record["row"], None
    if store.has(one.packets["key"]):
        exact = store.record(one.packets["key"])
    swept = {
        key: text_of(value)
        for key, value in one.spec["swept"].items()
        if key not in (_SCHEME, _FIDELITY)
    }
    found = {
        "experiment": one.experiment,
        "case": ", ".join(swept.values()),
        "label": one.spec["label"],
        "key": one.spec["key"],
        "packet_key": one.packets["key"],
        **{column: cheap[column] for column in ("scheme", "seed", "fidelity", "skipped_pct")},
        "cct_s": cheap["cct_s"],
        "packet_cct_s": None,
        "difference_pct": None,
        # Rates are worked out on one core, however many packets would have had.
        "core_s": record["timing"]["wall_s"],
        "packet_core_s": None,
        "times_as_fast": None,
        **{f"{counter}_difference": None for counter in COUNTERS},
        "link_bytes_difference_pct": None,
    }
    if exact is None:
        return found
    packets, core = exact["row"], exact["timing"]["wall_s"] * exact["timing"]["threads"]
    return found | {
        "packet_cct_s": packets["cct_s"],
        "difference_pct": 100 * (cheap["cct_s"] / packets["cct_s"] - 1)
        if packets["cct_s"]
        else 0.0,
        "packet_core_s": core,
        "times_as_fast": stats.times_as_fast(core, found["core_s"]),
        **{
            f"{counter}_difference": cheap[counter] - packets[counter]
            for counter in COUNTERS
            if cheap[counter] is not None and packets[counter] is not None
        },
        "link_bytes_difference_pct": _link_bytes(one, store),
    }


def _link_bytes(one: Drawn, store: Store) -> float | None:
    """The bytes that are on another link, or more or fewer, of all; None if they are not stored."""
    tables = [store.table(spec["key"], "links") for spec in (one.spec, one.packets)]
    counts = [
        table.select("bytes").collect()["bytes"].to_list() for table in tables if table is not None
    ]
    if len(counts) < len(tables) or len(counts[0]) != len(counts[1]):
        return None
    differ = sum(abs(ours - theirs) for ours, theirs in zip(*counts, strict=True))
    return 100.0 * float(differ) / float(max(sum(counts[1]), 1))


def _frame(rows: Sequence[Row]) -> pl.DataFrame:
    import polars as pl

    # Of a column without a value no type could be inferred.
    types: dict[str, type[pl.DataType]] = dict.fromkeys(("skipped_pct", *OF_CHECK), pl.Float64)
    types |= dict.fromkeys((f"{counter}_difference" for counter in COUNTERS), pl.Int64)
    types["packet_key"] = pl.String
    return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
