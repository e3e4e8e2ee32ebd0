"""The store: a run is whole or not there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from weft._types import Outcome, RunSpec
from weft.study import store

ROW: dict[str, Any] = {"scheme": "ecmp", "seed": 1, "cct_s": 2e-6}


def outcome(probes: int = 1) -> Outcome:
    """A run with three messages."""
    times = np.arange(4) * 1e-6
    return {
        "row": ROW,
        "timing": {"wall_s": 0.1, "build_s": 0.01, "events": 7, "threads": 1},
        "flows": {"message": np.arange(3, dtype=np.uint32), "fct_s": np.ones(3)},
        "links": {"port": np.arange(2, dtype=np.uint32), "from": ["host-0", "leaf-0"]},
        "collectives": {"bytes": np.arange(2, dtype=np.uint64)},
        "nodes": {"node": []},
        "messages": {"bytes": []},
        "series": {
            "time_s": times if probes else times[:0],
            "names": [f"leaf-{i}" for i in range(probes)],
            "kinds": ["switch"] * probes,
            "bytes": [np.arange(4, dtype=np.uint64) for _ in range(probes)],
        },
        "warnings": ["odd"],
    }


def spec(key: str, **swept: Any) -> RunSpec:
    """A run that was swept over."""
    return {"experiment": {}, "seed": 1, "key": key, "swept": swept, "label": "ecmp"}


def table(kept: store.Store, name: str) -> pl.DataFrame:
    """A table of the run `k`, which has it."""
    found = kept.table("k", name)
    assert found is not None
    return found.collect()


@pytest.mark.parametrize("kind", ["memory", "directory"])
def test_what_goes_in_comes_out(tmp_path: Path, kind: str) -> None:
    """Scalars and tables, from memory as from disk."""
    kept = store.MemoryStore() if kind == "memory" else store.DirectoryStore(tmp_path)
    assert not kept.has("k")
    kept.put(spec("k"), outcome(probes=2))
    assert kept.has("k")
    assert kept.record("k")["row"] == ROW
    assert kept.record("k")["warnings"] == ["odd"]
    assert table(kept, "flows").shape == (3, 2)
    assert table(kept, "collectives").shape == (2, 1)
    # What a run has nothing of takes no room.
    assert kept.table("k", "nodes") is None
    series = table(kept, "series")
    assert series.columns == ["time_s", "name", "kind", "bytes"]
    assert series["name"].to_list() == ["leaf-0"] * 4 + ["leaf-1"] * 4


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full half-way: no folder that looks finished, no draft either."""
    kept = store.DirectoryStore(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        kept.put(spec("k"), outcome())
    assert not kept.has("k")
    assert list((tmp_path / "runs").iterdir()) == []


def test_same_run_from_many_threads(tmp_path: Path) -> None:
    """All write the same; the first one's folder stays."""
    kept = store.DirectoryStore(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: kept.put(spec("k"), outcome()), range(32)))
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["k"]


def test_tables_carry_run_scheme_and_seed(tmp_path: Path) -> None:
    """And `runs` the swept keys, as numbers if they are numbers."""
    kept = store.DirectoryStore(tmp_path)
    kept.put(spec("a"), outcome(probes=0))
    kept.put(spec("b"), outcome(probes=1))
    listed = [("one", spec("a", **{"fabric.k": 4})), ("two", spec("b", **{"fabric.k": 8}))]
    store.assemble(tmp_path, listed, kept)
    runs = pl.read_parquet(tmp_path / "runs.parquet")
    assert runs["fabric.k"].to_list() == [4, 8]
    assert "wall_s" not in runs.columns
    flows = pl.read_parquet(tmp_path / "flows.parquet")
    assert flows.columns[:4] == ["run", "experiment", "scheme", "seed"]
    assert flows["run"].to_list() == [0] * 3 + [1] * 3
    assert pl.read_parquet(tmp_path / "series.parquet")["run"].unique().to_list() == [1]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([1, 2], [1, 2]),
        ([1, None, 2.5], [1.0, None, 2.5]),
        (["4KB", 8], ["4KB", "8"]),
        ([True, False], [True, False]),
        ([True, 2], ["true", "2"]),
        ([{"a": 1}, None], ['{"a":1}', None]),
    ],
)
def test_swept_values_make_one_column(values: list[Any], column: list[Any]) -> None:
    """Text where the values are of several kinds."""
    assert store.uniform(values) == column
    assert [type(value) for value in store.uniform(values)] == [type(value) for value in column]


@pytest.mark.parametrize("runs", [0, 1, 5])
def test_tables_do_not_depend_on_how_many_runs_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    """Batches of two write what one batch writes, and leave nothing else."""
    kept = store.DirectoryStore(tmp_path)
    listed = [("fig", spec(f"k{run // 2}", load=run)) for run in range(runs)]
    for _, one in listed:
        kept.put(one, outcome(probes=1))
    store.assemble(tmp_path, listed, kept)
    names = [f"{name}.parquet" for name in store.TABLES]
    once = [pl.read_parquet(tmp_path / name) for name in names]
    monkeypatch.setattr(store, "_BATCH", 2)
    store.assemble(tmp_path, listed, kept)
    for name, table in zip(names, once, strict=True):
        assert_frame_equal(pl.read_parquet(tmp_path / name), table)
        assert table.height == 0 or table["run"].n_unique() == runs
        assert table.height > 0 or runs == 0 or name in ("nodes.parquet", "messages.parquet")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
