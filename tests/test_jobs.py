"""Jobs as a user meets them: collectives, traces, trainings, timelines."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import Weft

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=4,link=100Gbps,delay=500ns"

TRACE = """HYBRID_DATA_MODEL
2
first -1 3 ALLREDUCE 80000 0 NONE 0 0 NONE 0 5
second -1 3 ALLGATHER 80000 0 NONE 0 0 NONE 0 5
"""


def rows(weft: Weft, *words: object) -> list[dict[str, Any]]:
    """What a command prints under --json."""
    done = weft(*words, "--json", "-q")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_collective_in_short(weft: Weft) -> None:
    """The form of the command line, with an option of the algorithm."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp,ethereal", "--workload")
    found = rows(weft, *words, "all-reduce:algorithm=ring,channels=2,size=1MB")
    for row in found:
        assert (row["workload"], row["algorithm"]) == ("all-reduce", "ring")
        assert (row["ranks"], row["size_bytes"], row["collectives"]) == (8, 1_000_000, 1)
        assert row["slowdown"] >= 1
        assert row["busbw_gb_s"] == pytest.approx(row["algbw_gb_s"] * 14 / 8)
    done = weft(*words, "all-reduse:size=1MB")
    assert done.returncode == 2
    assert 'did you mean "all-reduce"' in done.stderr


def test_collectives_have_a_table(weft: Weft, tmp_path: Path) -> None:
    """Of every collective of every group, beside the other tables; without jobs it is empty."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "-o", tmp_path, "--no-report")
    assert weft(*words, "--workload", "all-reduce:group=4,size=1MB,times=3").returncode == 0
    table = pl.read_parquet(tmp_path / "collectives.parquet")
    assert table.height == 6
    assert table["ranks"].to_list() == [4] * 6
    spans = table["finish_s"] - table["start_s"]
    assert (table["time_s"] - spans).abs().max() < 1e-15  # type: ignore[operator]
    assert weft(*words, "--workload", "ring:size=1MB").returncode == 0
    assert pl.read_parquet(tmp_path / "collectives.parquet").is_empty()


def test_a_timeline_is_what_the_viewer_reads(weft: Weft, tmp_path: Path) -> None:
    """Chrome's trace format: slices with times, which do not cross on a track; arrows in pairs."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp,spray", "--no-report")
    job = ("--workload", "gpt2-small:ranks=4,layers=2,global_batch=4,forward=1ms,backward=2ms")
    done = weft(*words, *job, "-o", tmp_path, "--timeline")
    assert done.returncode == 0, done.stderr
    paths = sorted((tmp_path / "timeline").iterdir())
    assert [path.name for path in paths] == ["0-ecmp-seed1.json.gz", "1-spray-seed1.json.gz"]
    trace = json.loads(gzip.decompress(paths[0].read_bytes()))
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "s", "f"}
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        assert isinstance(event["pid"], int)
        if event["ph"] == "X":
            assert event["dur"] > 0
            span = (event["ts"], event["ts"] + event["dur"])
            slices.setdefault((event["pid"], event["tid"]), []).append(span)
    for spans in slices.values():
        spans.sort()
        # A picosecond for sums of rounded numbers.
        assert all(one[1] <= other[0] + 1e-6 for one, other in pairwise(spans))
    arrows = {way: sorted(e["id"] for e in events if e["ph"] == way) for way in "sf"}
    assert arrows["s"] == arrows["f"]
    assert len(arrows["s"]) > 0
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {f"rank {rank}" for rank in range(4)}
    last = max(end for spans in slices.values() for _, end in spans)
    assert last == pytest.approx(trace["otherData"]["cct_s"] * 1e6)


def test_a_timeline_needs_a_job_and_a_place(weft: Weft, tmp_path: Path) -> None:
    """One line each."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--timeline", "--no-report")
    done = weft(*words, "--workload", "ring:size=1MB")
    assert done.returncode == 2
    assert "-o DIR" in done.stderr
    done = weft(*words, "--workload", "ring:size=1MB", "-o", tmp_path)
    assert done.returncode == 2
    assert "no run has a timeline; run a job" in done.stderr


def test_a_trace_is_described_and_run(weft: Weft, tmp_path: Path) -> None:
    """A text workload: what is in it, and how long it takes."""
    path = tmp_path / "job.txt"
    path.write_text(TRACE)
    done = weft("trace", "info", path, "--ranks", 8)
    assert done.returncode == 0, done.stderr
    assert "It can run." in done.stdout
    assert "all-reduce" in done.stdout
    found = json.loads(weft("trace", "info", path, "--json").stdout)
    assert found["ranks"] is False
    assert {row["operation"] for row in found["collectives"]} == {"all-reduce", "all-gather"}
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--workload")
    (row,) = rows(weft, *words, f"{path}:algorithm=direct")
    assert (row["workload"], row["algorithm"], row["collectives"]) == ("job.txt", "direct", 2)
    assert row["compute_s"] == pytest.approx(6e-6)


def test_a_trace_that_is_cut_off_is_diagnosed(weft: Weft, tmp_path: Path) -> None:
    """One line with the place, exit status 2; whole layers that are missing are a remark."""
    path = tmp_path / "cut.txt"
    path.write_text(TRACE.rsplit("\n", 2)[0] + "\n")
    done = weft("trace", "info", path)
    assert done.returncode == 0
    assert "layers missing: 2 are declared, 1 are there" in done.stdout
    fabric = ("--fabric", FABRIC, "--schemes", "ecmp")
    done = weft("compare", *fabric, "--workload", path)
    assert "warning: cut.txt: layers missing: 2 are declared, 1 are there" in done.stderr
    path.write_text(TRACE[:-20])
    done = weft("trace", "info", path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cut.txt")
    assert done.stderr.count("\n") == 1
    done = weft("trace", "info", tmp_path / "nothing")
    assert done.returncode == 2
    assert "there is neither a file" in done.stderr
