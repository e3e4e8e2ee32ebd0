"""Jobs as a user meets them: collectives, trainings, timelines."""

from __future__ import annotations

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from conftest import Weft, rows

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=4,link=100Gbps,delay=500ns"


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


def test_a_report_says_where_timelines_are(weft: Weft, tmp_path: Path) -> None:
    """Only where they have been written, and it links to every table that has rows."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "-o", tmp_path, "-q")
    words = (*words, "--workload", "all-reduce:size=1MB", "--set", "probe.timeline=true")
    assert weft(*words).returncode == 0
    page = (tmp_path / "report.html").read_text()
    assert "With <code>--timeline</code>" in page
    linked = ["runs", "flows", "links", "collectives", "nodes", "messages"]
    assert re.findall(r'href="(\w+)\.parquet"', page) == linked
    assert weft(*words, "--timeline").returncode == 0
    assert "are in <code>timeline/*.json.gz</code>" in (tmp_path / "report.html").read_text()


def test_a_timeline_of_two_jobs_names_them(weft: Weft, tmp_path: Path) -> None:
    """Ranks of a job count from 0, and have tracks of their own."""
    job = 'collective = "all-reduce"\nsize = "1MB"'
    path = tmp_path / "two.toml"
    path.write_text(
        '[fabric]\ntopology = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n'
        f"[workload.jobs.one]\n{job}\nranks = 3\n[workload.jobs.other]\n{job}\n"
        '[balance]\nscheme = "ecmp"\n'
    )
    done = weft("run", path, "-o", tmp_path / "out", "--timeline", "--no-report")
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "out" / "timeline").iterdir()
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {
        rank: f"one: rank {rank}" if rank < 3 else f"other: rank {rank - 3}" for rank in range(8)
    }
    nodes = [event for event in events if event.get("cat") == "communication"]
    assert sorted(event["pid"] for event in nodes) == list(range(8))
    assert {event["args"]["job"] for event in nodes} == {"one", "other"}
    sent = {event["name"] for event in events if event.get("cat") == "messages"}
    assert "to one: rank 0" in sent
    table = pl.read_parquet(tmp_path / "out" / "collectives.parquet")
    assert sorted(table["job_name"].to_list()) == ["one", "other"]


def test_a_timeline_needs_a_job_and_a_place(weft: Weft, tmp_path: Path) -> None:
    """One line each."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--timeline", "--no-report")
    done = weft(*words, "--workload", "ring:size=1MB")
    assert done.returncode == 2
    assert "-o DIR" in done.stderr
    done = weft(*words, "--workload", "ring:size=1MB", "-o", tmp_path)
    assert done.returncode == 2
    assert "no run has a timeline; run a job" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_job_within_a_server_has_a_report(weft: Weft, tmp_path: Path) -> None:
    """ASTRA-sim's regression: no message crosses the fabric, so no figure speaks of messages."""
    file = Path(__file__).parent.parent / "experiments" / "astra-sim" / "regression.toml"
    words = ("--plots", "png", "--set", "report.columns=[]")
    done = weft("run", file, "-o", tmp_path, "-q", *words)
    assert done.returncode == 0, done.stderr
    (row,) = pl.read_parquet(tmp_path / "runs.parquet").rows(named=True)
    assert round(row["cct_s"] * 1e9, 6) == 117_780
    assert (row["collectives"], row["messages"]) == (1, 0)
    assert row["busbw_gb_s"] == pytest.approx(2**20 * 14 / 8 / 117_780)
    assert sorted(path.name for path in (tmp_path / "plots").glob("*.png")) == [
        "regression-busbw_gb_s.png",
        "regression-cct.png",
        "regression-fabric.png",
    ]
    assert "117.8 µs" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_skewed_all_to_all(weft: Weft) -> None:
    """Sends as much as an equal one, more of it to some; a bad skew is one line."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp,spray", "--workload")
    equal = rows(weft, *words, "all-to-all:size=100KB")
    skewed = rows(weft, *words, "all-to-all:size=100KB,skew=1.5")
    for before, after in zip(equal, skewed, strict=True):
        assert after["payload_bytes"] == before["payload_bytes"]
        assert after["cct_s"] > 2 * before["cct_s"]
        assert after["slowdown"] >= 1
    for wrong in ("5", "much", "-1"):
        done = weft(*words, f"all-to-all:size=100KB,skew={wrong}")
        assert done.returncode == 2
        assert "workload.skew" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


TRAINING = "gpt2-small:ranks=8,layers=2,tensor=2,global_batch=8"


def test_the_table_shows_what_matters_of_a_job(weft: Weft) -> None:
    """Bus bandwidth of collectives, exposed communication of trainings, neither of messages."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "-q", "--workload")
    collective = weft(*words, "all-reduce:size=1MB").stdout
    assert "busbw" in collective
    assert "exposed" not in collective
    (row,) = rows(weft, *words, "all-reduce:size=1MB")
    assert f"{row['busbw_gb_s']:.4g} GB/s" in collective
    training = weft(*words, TRAINING).stdout
    assert "iteration" in training
    assert "busbw" not in training
    (row,) = rows(weft, *words, TRAINING)
    assert f"({100 * row['exposed_s'] / row['cct_s']:.0f} %)" in training
    messages = weft(*words, "ring:size=1MB").stdout
    assert not {"busbw", "exposed", "iteration"} & set(messages.split())


def test_a_chosen_bandwidth_is_no_time(weft: Weft, tmp_path: Path) -> None:
    """Its column ends as those of times do."""
    fabric = 'topology = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4'
    job = 'collective = "all-reduce"\nsize = "1MB"'
    report = 'columns = ["busbw_gb_s", "exposed_s"]'
    path = tmp_path / "job.toml"
    path.write_text(
        f"[fabric]\n{fabric}\n[workload]\n{job}\n[balance]\nscheme = 'ecmp'\n[report]\n{report}\n"
    )
    done = weft("run", path, "-q")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ecmp")]
    assert "GB/s" in line
    assert line.endswith("µs")


def test_a_report_has_the_times_of_collectives(weft: Weft, tmp_path: Path) -> None:
    """A panel for each kind, a bar for each scheme, and how to get a timeline."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp,spray", "-o", tmp_path, "-q")
    words = (*words, "--plots", "svg")
    assert weft(*words, "--workload", TRAINING).returncode == 0
    assert (tmp_path / "plots" / "compare-collectives-1.svg").exists()
    page = (tmp_path / "report.html").read_text()
    figures = re.search(r"^const figures = (.*);$", page, re.MULTILINE)
    assert figures is not None
    panels = json.loads(figures[1])["compare-collectives-1"]
    table = pl.read_parquet(tmp_path / "collectives.parquet").filter(pl.col("run") == 1)
    kinds = {f"{one}, {group}" for one, group in table.select("operation", "group").iter_rows()}
    assert {panel["title"] for panel in panels} == kinds
    for panel in panels:
        assert [bar["name"] for bar in panel["data"]] == ["ecmp", "spray"]
        operation, group = panel["title"].split(", ")
        mine = table.filter((pl.col("operation") == operation) & (pl.col("group") == group))
        unit = {"[µs]": 1e6, "[ms]": 1e3}[panel["layout"]["yaxis"]["title"]["text"].split()[1]]
        mean = mine["time_s"].mean()
        assert isinstance(mean, float)
        assert panel["data"][1]["y"][0] == pytest.approx(mean * unit)
    assert "<code>--timeline</code>" in page
    assert weft(*words, "--workload", "ring:size=1MB").returncode == 0
    assert not (tmp_path / "plots" / "compare-collectives-1.svg").exists()
    assert "--timeline" not in (tmp_path / "report.html").read_text()


def test_short_forms_take_the_options_of_every_algorithm(weft: Weft) -> None:
    """As an experiment file does."""
    words = ("compare", "--fabric", FABRIC, "--schemes", "ecmp", "--workload")
    tree = "all-reduce:algorithm=double-binary-tree,size=1MB,trees="
    one, two = (rows(weft, *words, f"{tree}{trees}")[0]["cct_s"] for trees in (1, 2))
    assert one > two
    at_once = rows(weft, *words, "all-reduce:algorithm=direct,size=1MB")[0]["max_qps"]
    few = rows(weft, *words, "all-reduce:algorithm=direct,window=2,size=1MB")[0]["max_qps"]
    assert few < at_once
    # Of the two that are called all-to-all the one that knows the keys.
    (pattern,) = rows(weft, *words, "all-to-all:size=1MB")
    (collective,) = rows(weft, *words, "all-to-all:algorithm=direct,size=1MB")
    assert (pattern["messages"], pattern.get("ranks", 0)) == (56, 0)
    assert (collective["messages"], collective["ranks"]) == (56, 8)
    assert collective["payload_bytes"] < pattern["payload_bytes"]
