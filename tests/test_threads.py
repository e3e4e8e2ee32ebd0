"""Cores: what one simulation gets of them, and that no result depends on it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import weft as package
from conftest import Weft
from test_sweep import same_tables
from weft import _native
from weft.study import inputs, store
from weft.study.executor import Parallelism
from weft.study.progress import Silent
from weft.study.sweep import execute

# Twelve leaves, so that two and three threads run eight and twelve parts of the fabric.
LARGER = """
title = "Twelve racks"
[fabric]
topology = "leaf-spine"
leaves = 12
spines = 3
hosts_per_leaf = 2
[fabric.switch]
SWITCH
[workload]
pattern = "incast"
size = "200KB"
[probe]
interval = "2us"
ports = ["leaf-* -> spine-*", "leaf-0 -> host-0"]
switches = ["leaf-0", "leaf-11"]
[sweep]
"balance.scheme" = ["ecmp", "spray", "ethereal"]
seeds = 1
"""
SWITCHES = {
    "pauses": 'buffer = "450KB"\npfc = true',
    "drops": 'buffer_kind = "per-port"\nbuffer = "13KB"\npfc = false',
}


@pytest.mark.parametrize("column", SWITCHES)
def test_results_do_not_depend_on_threads(weft: Weft, tmp_path: Path, column: str) -> None:
    """The same bytes, with PFC and with losses, probes included."""
    (tmp_path / "larger.toml").write_text(LARGER.replace("SWITCH", SWITCHES[column]))
    for threads in ("1", "2", "3"):
        cores = ("--jobs", "1", "--threads", threads)
        done = weft("run", "larger.toml", "-o", threads, *cores, "--no-report", "-q")
        assert done.returncode == 0, done.stderr
        timing = pl.read_parquet(tmp_path / threads / "timing.parquet")
        assert timing["threads"].to_list() == [int(threads)] * 3
    assert pl.read_parquet(tmp_path / "1" / "runs.parquet")[column].min() > 0
    assert same_tables(tmp_path / "1", tmp_path / "2")
    assert same_tables(tmp_path / "1", tmp_path / "3")
    studies = [(tmp_path / output / "study.json").read_text() for output in ("1", "2")]
    assert studies[0] == studies[1].replace("-o 2", "-o 1")


def test_a_tiny_run_stays_on_one_thread(weft: Weft, small: Path) -> None:
    """However many cores it could have."""
    for jobs in ((), ("--jobs", "1")):
        rows = json.loads(weft("run", small, "--json", "--seeds", "1", *jobs).stdout)
        assert [row["threads"] for row in rows] == [1, 1, 1]


def test_python_callers_choose_as_well(small: Path) -> None:
    """The same frames, and what was given stands in `timing`."""
    one = package.simulate(small, seeds=1)
    two = package.simulate(small, seeds=1, threads=2)
    assert one.timing["threads"].to_list() == [1, 1, 1]
    assert two.timing["threads"].to_list() == [2, 2, 2]
    for name in ("runs", "flows", "links", "series"):
        assert_frame_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize(
    ("parallelism", "runs", "cores", "side_by_side", "share"),
    [
        (Parallelism(), 100, 8, 8, 1),
        (Parallelism(), 8, 8, 8, 1),
        (Parallelism(), 3, 8, 3, 2),
        (Parallelism(), 1, 8, 1, 8),
        (Parallelism(), 1, 1, 1, 1),
        (Parallelism(jobs=1), 100, 8, 1, 8),
        (Parallelism(jobs=3), 100, 8, 3, 2),
        (Parallelism(jobs=3), 2, 8, 2, 4),
        (Parallelism(jobs=16), 100, 8, 16, 1),
    ],
)
def test_cores_are_for_runs_side_by_side_first(
    parallelism: Parallelism, runs: int, cores: int, side_by_side: int, share: int
) -> None:
    """And never more threads than cores, unless so many jobs are asked for."""
    assert parallelism.side_by_side(runs, cores) == side_by_side
    assert parallelism.share(runs, cores) == share


@pytest.mark.parametrize(
    ("parallelism", "side_by_side"),
    [
        (Parallelism(threads=1), 8),
        (Parallelism(threads=3), 2),
        (Parallelism(threads=16), 1),
        (Parallelism(jobs=5, threads=4), 5),
    ],
)
def test_given_threads_leave_room_for_fewer_jobs(
    parallelism: Parallelism, side_by_side: int
) -> None:
    """On eight cores, unless the jobs are given too."""
    assert parallelism.side_by_side(runs=100, cores=8) == side_by_side


@pytest.mark.parametrize(
    ("parallelism", "given"), [(Parallelism(), (None, 2)), (Parallelism(threads=5), (5, 8))]
)
def test_every_run_is_told_its_share(
    parallelism: Parallelism,
    given: tuple[int | None, int],
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that are to be simulated count, not those that are there already."""
    real, told, lock = _native.run, [], threading.Lock()

    def run(*arguments: Any, threads: int | None, share: int, **others: Any) -> Any:
        with lock:
            told.append((threads, share))
        return real(*arguments, threads=threads, share=share, **others)

    monkeypatch.setattr(_native, "run", run)
    monkeypatch.setattr(_native, "cores", lambda: 8)
    runs, kept = inputs.from_file(small).runs, store.RowStore()
    execute(runs[:2], kept, Parallelism(threads=1), Silent())
    told.clear()
    execute(runs, kept, parallelism, Silent())
    assert told == [given] * 4


@pytest.mark.parametrize("name", ["threads", "share"])
def test_no_threads_at_all_is_a_mistake(name: str) -> None:
    """To the native core as well."""
    with pytest.raises(package.ExperimentError, match=f"{name}: 0 is out of range"):
        _native.run("{}", 1, **{name: 0})


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_cores_are_those_of_this_process() -> None:
    """Not all that the machine has."""
    mine = os.sched_getaffinity(0)
    assert 1 <= _native.cores() <= len(mine)
    os.sched_setaffinity(0, {min(mine)})
    try:
        assert _native.cores() == 1
    finally:
        os.sched_setaffinity(0, mine)
