"""`--fidelity`: what is simulated, what the cheaper one is off by, and what it does not tell."""

from __future__ import annotations

import json
import math
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft as weft_package
from conftest import Weft, rows
from weft._types import RunSpec
from weft.cli import simulations
from weft.cli.compare import run_comparison
from weft.report import check_table, fidelities
from weft.study import averages, check, stats, store

PLACE = (
    "--fabric",
    "leaf-spine:leaves=4,spines=4,hosts=4,link=100Gbps,delay=500ns",
    "--workload",
    "all-to-all:size=1MB",
)
DOUBLING = (*PLACE[:2], "--workload", "all-reduce:algorithm=recursive-doubling,size=16MB")
SWEEP = ("compare", *DOUBLING, "--schemes", "ecmp,ethereal,path-pinning", "--seeds", "2")
"""Of its six runs, the two of ECMP go by packets with `--fidelity fast`."""


def test_both_are_run_and_the_difference_printed(weft: Weft) -> None:
    """The table of both, then a line a run, then what it comes to."""
    done = weft("compare", *PLACE, "--schemes", "ecmp,ethereal", "--fidelity", "fluid,packet")
    assert done.returncode == 0, done.stderr
    assert "fidelity: fluid, packet" in done.stdout
    _, below = done.stdout.split("fluid against packet: completion times")
    assert [line.split()[0] for line in below.splitlines()[4:6]] == ["ecmp", "ethereal"]
    assert "difference: median" in below
    assert "warning: run.fidelity" in done.stderr


def test_rows_say_which_and_leave_out_what_they_do_not_know(weft: Weft, tmp_path: Path) -> None:
    """In JSON and in parquet, beside rows that know."""
    out = tmp_path / "out"
    done = weft(
        *("compare", *PLACE, "--schemes", "ethereal", "--fidelity", "packet,fluid"),
        *("-o", out, "--json"),
    )
    assert done.returncode == 0, done.stderr
    packet, fluid = json.loads(done.stdout)
    assert (packet["fidelity"], fluid["fidelity"]) == ("packet", "fluid")
    assert (packet["drops"], fluid["drops"]) == (0, None)
    assert fluid["cct_s"] >= fluid["bound_s"]
    assert fluid["cct_s"] == pytest.approx(packet["cct_s"], rel=0.03)
    runs = pl.read_parquet(out / "runs.parquet")
    assert runs["fidelity"].to_list() == ["packet", "fluid"]
    assert runs["peak_queue_bytes"].null_count() == 1
    assert (out / "report.html").exists()


def test_one_fidelity_is_a_key_like_any_other(weft: Weft, small: Path) -> None:
    """On an experiment file; its table says so."""
    done = weft("run", small, "--fidelity", "fluid")
    assert done.returncode == 0, done.stderr
    assert "fidelity: fluid" in done.stdout
    assert "against packet" not in done.stdout


def test_runs_by_rates_say_where_buffers_would_be_full(weft: Weft) -> None:
    """Under the table, in a warning and in each row: there packets would be paused."""
    fabric = "leaf-spine:leaves=4,spines=8,hosts=8,link=100Gbps,delay=500ns,switch.buffer=1MiB"
    command = ("compare", "--fabric", fabric, "--workload", "incast:senders=8,size=2MB")
    schemes = ("--schemes", "ecmp,subflows-4", "--fidelity", "fluid", "--seeds", "1")
    done = weft(*command, *schemes)
    assert done.returncode == 0, done.stderr
    assert "fidelity: fluid (buffers would be full in 1 of 2 runs)" in done.stdout
    (told,) = (line for line in done.stderr.splitlines() if "fill the buffers" in line)
    assert "subflows-4" in told
    assert 'run.fidelity = "packet"' in told
    rows = json.loads(weft(*command, *schemes, "--json").stdout)
    assert [row["full_buffers"] for row in rows] == [0, 1]


@pytest.mark.parametrize("named", ["fluid", "fluid,packet", "packet,fluid"])
def test_a_report_may_ask_for_what_only_packets_tell(
    weft: Weft, small: Path, tmp_path: Path, named: str
) -> None:
    """A dash where the run does not tell, and a figure of those that do."""
    small.write_text(f'{small.read_text()}\n[report]\ncolumns = ["slowdown", "drops"]\n')
    out = tmp_path / "out"
    done = weft("run", small, "--fidelity", named, "-o", out)
    assert done.returncode == 0, done.stderr
    assert " \N{EN DASH} " in f"{done.stdout} ".replace("\n", " ")
    page = (out / "report.html").read_text()
    assert ("Drops, " in page) == ("packet" in named)


@pytest.mark.parametrize("named", ["exact", "packet,fast-forward"])
def test_a_wrong_word_is_refused_in_one_line(weft: Weft, named: str) -> None:
    """With the words there are."""
    done = weft("compare", *PLACE, "--schemes", "ecmp", "--fidelity", named)
    assert done.returncode == 2
    assert "run.fidelity" in done.stderr
    assert "packet, fast, fluid" in done.stderr
    assert done.stderr.count("\n") == 1


def test_fast_says_where_it_took_packets(weft: Weft) -> None:
    """Under the table, and in a column: ECMP's flows meet, Ethereal's do not."""
    done = weft("compare", *DOUBLING, "--schemes", "ecmp,ethereal", "--fidelity", "fast,packet")
    assert done.returncode == 0, done.stderr
    assert "fidelity: fast (packets in 1 of 2 runs), packet" in done.stdout
    assert "fast against packet: completion times" in done.stdout
    found = rows(weft, "compare", *DOUBLING, "--fidelity", "fast")
    skipped = {row["scheme"]: row["skipped_pct"] for row in found}
    assert (skipped["ecmp"], skipped["ethereal"]) == (0.0, 100.0)


WHOLE = ("--workload", "all-reduce:algorithm=recursive-doubling,size=4MB", "--schemes", "ethereal")
AT = "leaf-spine:leaves=4,spines=4,hosts=4,link={}Gbps,delay=500ns"
RING = ("--schemes", "ecmp", "--workload", "all-reduce:algorithm=ring")
SERVERS = f"{PLACE[1]},server.gpus=2,server.nics"
FAST = "leaf-spine:leaves=2,spines=6,hosts=4,link=400Gbps,delay=500ns"
CHAIN = "broadcast:algorithm=ring,root=6,size=5MB,times=3,splits=2,channels=2"
TURNS = ("--set", "fabric.nic.serve=round-robin")
RINGS = "all-reduce:algorithm=ring,size=4MB"
LATE = (f"{RINGS},times=2,splits=2", "--stragglers", "start_delay=5us")


@pytest.mark.parametrize(
    ("words", "skips"),
    [
        ((*PLACE[:2], *WHOLE), True),
        ((*PLACE[:2], *WHOLE, "--set", "transport.recovery=coding"), False),
        ((*PLACE[:2], *WHOLE, "--set", "transport.congestion=dcqcn"), False),
        ((*PLACE[:2], *WHOLE, "--set", "transport.subflows=2"), False),
        ((*PLACE[:2], *WHOLE, "--set", "fabric.nic.serve=oldest"), False),
        ((*PLACE[:2], *WHOLE, "--set", "fabric.nic.ack=1000B"), False),
        # Acknowledgements that wait; runs of few round trips; ranks that share a NIC.
        (("--fabric", AT.format(25), *RING[:-1], f"{RING[-1]},size=1MB"), False),
        (("--fabric", AT.format(400), *RING[:-1], f"{RING[-1]},size=1MB"), False),
        (("--fabric", f"{SERVERS}=2", *DOUBLING[2:], "--schemes", "ethereal"), True),
        (("--fabric", f"{SERVERS}=1", *DOUBLING[2:], "--schemes", "ethereal"), False),
        # Chains, and messages from one rank to another at once: which is first matters.
        (("--fabric", FAST, "--schemes", "path-pinning", "--workload", CHAIN), False),
        (("--fabric", FAST, "--schemes", "ethereal", *TURNS, "--workload", *LATE), False),
        (("--fabric", FAST, "--schemes", "ethereal", *TURNS, "--workload", RINGS), True),
    ],
)
def test_fast_skips_what_was_compared_with_packets(
    weft: Weft, words: tuple[str, ...], skips: bool
) -> None:
    """And is within 1 % there; all else goes by packets: their times and counters."""
    exact, fast = rows(weft, "compare", *words, "--fidelity", "packet,fast")
    assert fast["skipped_pct"] == (100.0 if skips else 0.0)
    assert fast["cct_s"] == pytest.approx(exact["cct_s"], rel=0.01 if skips else 0)
    for counter in ("packets", "control_packets", "packet_hops", "established_qps"):
        assert fast[counter] == exact[counter], counter


def drawn(draw: random.Random) -> dict[str, Any]:
    """An experiment of 4 to 32 GPUs in which hosts may be in nobody's way."""
    fabric: dict[str, Any] = {"topology": "leaf-spine", "leaves": draw.choice([2, 4])}
    fabric |= {"spines": draw.choice([2, 4, 8]), "hosts_per_leaf": draw.choice([2, 4])}
    fabric |= {"link": draw.choice(["25Gbps", "100Gbps", "400Gbps"])}
    fabric |= {"delay": draw.choice(["50ns", "500ns", "2us"])}
    fabric["nic"] = {"mtu": draw.choice(["1500B", "4KiB", "9000B"])}
    if draw.random() < 0.4:
        fabric["server"] = {"gpus": 2, "nics": draw.choice([1, 2]), "memory": "400Gbps"}
    algorithm = draw.choice(["ring", "recursive-doubling", "hierarchical", "double-binary-tree"])
    workload = {"collective": "all-reduce", "algorithm": algorithm}
    workload["size"] = draw.choice(["256KB", "1MB", "4MB", "16MB"])
    if algorithm == "hierarchical":
        workload["local_ranks"] = 2
    scheme = draw.choice(["path-pinning", "ethereal", "dnlb-4", "ecmp", "hpn"])
    recovery = draw.choice(["go-back-n", "selective-repeat"])
    sections = {"balance": {"scheme": scheme}, "transport": {"recovery": recovery}}
    return {"fabric": fabric, "workload": workload, **sections}


@pytest.mark.filterwarnings("ignore::weft.WeftWarning")
def test_random_experiments_are_as_by_packets_where_these_are_skipped() -> None:
    """Within 3 %, and with the same packets; a fifth of them skip packets."""
    skipped = 0
    for number in range(300):
        experiment = drawn(random.Random(number))
        both = [
            weft_package.simulate(
                experiment | {"run": {"fidelity": fidelity}}, jobs=1, threads=1
            ).runs.row(0, named=True)
            for fidelity in ("fast", "packet")
        ]
        fast, packet = both
        if fast["skipped_pct"] == 0:
            assert fast["cct_s"] == packet["cct_s"], experiment
            continue
        skipped += 1
        assert fast["cct_s"] == pytest.approx(packet["cct_s"], rel=0.03), experiment
        for counter in ("packets", "control_packets", "packet_hops", "established_qps"):
            assert fast[counter] == packet[counter], experiment
    assert skipped > 30


@pytest.mark.parametrize("fidelity", ["fast", "fluid"])
@pytest.mark.parametrize("told", ["rate=25Gbps", "rate_coefficient=0.5", "gap_jitter=0.5"])
def test_told_rates_are_kept(weft: Weft, fidelity: str, told: str) -> None:
    """By rates as by packets, and longer gaps in the mean."""
    words = ("--workload", "all-reduce:algorithm=ring,size=4MB", "--schemes", "path-pinning")
    rate = ("--set", "transport.congestion=fixed-rate", "--set", f"transport.{told}")
    words = (*PLACE[:2], *words, *rate)
    exact, other = rows(weft, "compare", *words, "--fidelity", f"packet,{fidelity}")
    assert other["cct_s"] == pytest.approx(exact["cct_s"], rel=0.02)


@pytest.mark.parametrize(
    ("scheme", "workload"),
    [
        ("ecmp", "permutation:size=64KB"),
        ("ethereal", "all-to-all:size=64KB"),
        ("dnlb-4", "permutation:size=64KB"),
        ("path-pinning", "moe-dispatch:tokens=64,hidden=1024,experts=16,top_k=4"),
        # Queue pairs that stay keep their gap: the next message waits until it is over.
        ("dnlb-4", "all-reduce:algorithm=ring,size=1MB,times=3"),
    ],
)
def test_nobody_waits_for_the_gap_behind_the_last_packet(
    weft: Weft, scheme: str, workload: str
) -> None:
    """A message of n packets at a told rate takes n - 1 gaps, and the last packet."""
    rate = ("--set", "transport.congestion=fixed-rate", "--set", "transport.rate=1Gbps")
    words = (*PLACE[:2], "--workload", workload, "--schemes", scheme, *rate)
    packet, fluid = rows(weft, "compare", *words, "--fidelity", "packet,fluid")
    assert fluid["cct_s"] == pytest.approx(packet["cct_s"], rel=0.02)


def test_a_short_message_at_a_told_rate_is_one_packet(weft: Weft) -> None:
    """It leaves at once; those that leave together follow each other."""
    rate = ("--set", "transport.congestion=fixed-rate", "--set", "transport.rate=1Gbps")
    words = (*PLACE[:2], "--workload", "all-to-all:size=4KB", "--schemes", "ethereal", *rate)
    packet, fluid = rows(weft, "compare", *words, "--fidelity", "packet,fluid")
    assert fluid["bound_s"] <= fluid["cct_s"] < 1.05 * packet["cct_s"]


def test_servers_reduce_where_the_collective_does(weft: Weft) -> None:
    """A reduction passes over memory: half of an all-reduce, and nothing of an all-gather."""

    def took(collective: str, servers: str, fidelity: str) -> float:
        place = f"{PLACE[1]},server.gpus=4,server.nics=4{servers}"
        words = ("--workload", f"{collective}:algorithm=hierarchical,size=4MB")
        words = ("--fabric", place, *words, "--schemes", "path-pinning")
        (row,) = rows(weft, "compare", *words, "--fidelity", fidelity)
        return float(row["cct_s"])

    memory = ",server.memory=200Gbps"
    packet, fluid = (took("all-reduce", memory, fidelity) for fidelity in ("packet", "fluid"))
    assert fluid == pytest.approx(packet, rel=0.03)
    assert took("all-gather", memory, "fluid") == took("all-gather", "", "fluid")


def test_short_messages_wait_for_short_packets(weft: Weft) -> None:
    """Sprayed ones, too: what they meet is as short as they are."""
    words = ("--workload", "permutation:size=100B", "--schemes", "spray")
    packet, fluid = rows(weft, "compare", *PLACE[:2], *words, "--fidelity", "packet,fluid")
    assert fluid["cct_s"] == pytest.approx(packet["cct_s"], rel=0.03)


@pytest.mark.parametrize("size", ["100KB", "1MB"])
def test_slow_uplinks_carry_fewer_packets_meanwhile(weft: Weft, size: str) -> None:
    """Queues of a sprayed message fall apart by what each carries, not by all that is sent."""
    slow = "leaf-spine:leaves=2,spines=6,hosts=1,link=400Gbps,uplink=25Gbps,delay=1us"
    words = ("--fabric", slow, "--workload", f"permutation:size={size}", "--schemes", "spray")
    packet, fluid = rows(weft, "compare", *words, "--fidelity", "packet,fluid")
    assert fluid["cct_s"] == pytest.approx(packet["cct_s"], rel=0.5)


def test_slow_links_hold_up_the_last_packet(weft: Weft) -> None:
    """Of a message over two of them: it takes as long on the second as on the first."""
    few = "leaf-spine:leaves=2,spines=1,hosts=1,link=1Gbps,delay=500ns"
    words = ("--fabric", few, "--workload", "permutation:size=8KB", "--schemes", "ecmp")
    slow = ("--fail", "leaf-up,degraded,lost=0.9")
    packet, fluid = rows(weft, "compare", *words, *slow, "--fidelity", "packet,fluid")
    assert fluid["cct_s"] == pytest.approx(packet["cct_s"], rel=0.03)
    assert fluid["slowdown"] >= 1


@pytest.mark.parametrize(
    ("workload", "waits"),
    [
        ("permutation:size=1MB", "host-0 -> "),
        ("all-reduce:size=1MB", "message rank 0 (host-0) -> "),
    ],
)
def test_who_finds_no_path_stalls(weft: Weft, workload: str, waits: str) -> None:
    """By rates in the words of packets."""
    words = (*PLACE[:2], "--workload", workload, "--schemes", "ecmp", "--fail", "host-0:leaf-0")
    done = weft("compare", *words, "--fidelity", "fluid")
    assert done.returncode == 1, done.stderr
    line = done.stderr.splitlines()[-1]
    assert "nothing delivered since" in line
    assert "link host-0 <-> leaf-0 is down" in line
    assert waits in line
    assert "raise run.stall_after" in line


def _row(scheme: str, fidelity: str, cct: float) -> dict[str, object]:
    swept = {"balance.scheme": scheme, "run.fidelity": fidelity}
    return {"seed": 1, "fidelity": fidelity, "cct_s": cct, "wall_s": 1.0, "swept": swept}


def test_errors_and_order_are_of_the_same_traffic() -> None:
    """One and two differ by half and swap, three is too close to one to count."""
    times = {"one": (1.0, 1.4), "two": (1.5, 1.2), "three": (1.05, 1.05)}
    found = [_row(name, "packet", packet) for name, (packet, _) in times.items()]
    found += [_row(name, "fluid", fluid) | {"wall_s": 4.0} for name, (_, fluid) in times.items()]
    (between,) = fidelities.of(found) or ()
    assert between.errors == pytest.approx([0.0, 0.2, 0.4])
    assert between.order == (1, 2)
    assert "0.25" in fidelities.text([between])
    assert fidelities.of(found[:3]) is None


def test_an_unknown_value_makes_an_unknown_mean() -> None:
    """Not a zero."""
    assert math.isnan(averages.of("drops", [{"seed": 1, "drops": None}]).value)


def _folders(out: Path) -> set[str]:
    return {path.name for path in (out / "runs").iterdir()}


def test_check_does_a_sample_over_by_packets(weft: Weft, tmp_path: Path) -> None:
    """The differences are those from the runs of `--fidelity packet`, and it has their keys."""
    out = tmp_path / "out"
    checked = rows(weft, *SWEEP, "--fidelity", "fast", "--check", "3", "-o", out, "--no-report")
    exact = rows(weft, *SWEEP, "--fidelity", "packet", "-o", tmp_path / "exact", "--no-report")
    drawn = [place for place, row in enumerate(checked) if row["checked"]]
    assert len(drawn) == 3
    assert len(_folders(out)) == 6 + 3
    assert {checked[place]["packet_key"] for place in drawn} < _folders(tmp_path / "exact")
    for place in drawn:
        row, packets = checked[place], exact[place]
        assert row["skipped_pct"] == 100
        assert row["packet_cct_s"] == packets["cct_s"]
        assert row["difference_pct"] == pytest.approx(100 * (row["cct_s"] / packets["cct_s"] - 1))
        assert row["difference_pct"] != 0
        assert row["times_as_fast"] == pytest.approx(row["packet_core_s"] / row["core_s"])
        assert row["max_qps_difference"] == row["max_qps"] - packets["max_qps"] == 0
        assert row["link_bytes_difference_pct"] < 0.1
    kept = pl.read_parquet(out / "check.parquet")
    assert kept["difference_pct"].to_list() == [checked[p]["difference_pct"] for p in drawn]
    largest = kept["difference_pct"].abs().max()
    said = json.loads((out / "summary.json").read_text())["check"]
    assert (said["runs"], said["exact"], said["skipped"], said["drawn"]) == (6, 2, 4, 3)
    assert (said["largest_pct"], said["others"]) == (largest, 1)


def test_check_goes_on_where_it_was(weft: Weft, tmp_path: Path) -> None:
    """The same sample again costs nothing, a larger one has the smaller one in it."""
    words = (*SWEEP, "--fidelity", "fast", "-o", tmp_path / "out", "--no-report", "--check")
    first = weft(*words, "2")
    assert first.stderr.count(" by packets: CCT ") == 2
    assert "2 runs checked of 4 that skipped packets; 2 of 6 runs went packet by" in first.stdout
    again = weft(*words, "2")
    assert (again.stdout, again.stderr) == (first.stdout, "")
    two = set(pl.read_parquet(tmp_path / "out" / "check.parquet")["key"])
    more = weft(*words)
    assert more.stderr.count(" by packets: CCT ") == 2
    assert "4 runs checked of 4 that skipped packets" in more.stdout
    four = set(pl.read_parquet(tmp_path / "out" / "check.parquet")["key"])
    assert (len(two), len(four), two < four) == (2, 4, True)


def test_check_takes_what_the_sweep_has(weft: Weft, tmp_path: Path) -> None:
    """Runs by packets in the same sweep are not simulated again; the next command has no check."""
    out = tmp_path / "out"
    words = ("compare", *DOUBLING, "--schemes", "ethereal,ecmp", "--fidelity", "fast,packet")
    done = weft(*words, "-o", out, "--check", "9")
    assert done.returncode == 0, done.stderr
    assert " by packets: " not in done.stderr
    assert len(_folders(out)) == 4
    below = done.stdout.split("check by packets\n")[1]
    assert below.splitlines()[3].split()[:3] == ["compare", "ethereal", "1"]
    line = "1 run checked of 1 that skipped packets; 3 of 4 runs went packet by packet (exact)"
    assert line in below
    page = (out / "report.html").read_text()
    assert f"<p>{line}.</p>" in page
    assert "<h2>Check by packets</h2>" in page
    assert weft(*words, "-o", out, "--no-report").returncode == 0
    assert not (out / "check.parquet").exists()


def test_check_of_fluid_tells_its_error(weft: Weft) -> None:
    """ECMP's flows meet, and rates know their queues in the mean."""
    words = ("--schemes", "ecmp,ethereal", "--fidelity", "fluid", "--check")
    found = {row["scheme"]: row for row in rows(weft, "compare", *DOUBLING, *words)}
    ratio = found["ecmp"]["cct_s"] / found["ecmp"]["packet_cct_s"]
    assert found["ecmp"]["difference_pct"] == pytest.approx(100 * (ratio - 1))
    assert 0 < abs(found["ecmp"]["difference_pct"]) < 3
    assert abs(found["ethereal"]["difference_pct"]) < 1
    assert found["ecmp"]["link_bytes_difference_pct"] is None  # Without -o links are not kept.


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["spray", "switch-spray"])
def test_small_delays_do_not_grow_over_many_racks(weft: Weft, scheme: str) -> None:
    """Flows that share their links meet the same queues; else later steps double what is late."""
    place = "leaf-spine:leaves=32,spines=32,hosts=32,link=400Gbps,delay=500ns,nic.mtu=4KiB"
    words = ("--fabric", place, *DOUBLING[2:3], DOUBLING[3].replace("16MB", "64MB"))
    both = ("--schemes", scheme, "--fidelity", "fluid,packet")
    found = {row["fidelity"]: row["cct_s"] for row in rows(weft, "compare", *words, *both)}
    assert abs(found["fluid"] / found["packet"] - 1) < 0.05


@pytest.mark.parametrize(
    ("within", "messages"),
    [
        # Two send to host 1; what it sends waits for acknowledgements in the queue before it.
        (0.05, ["0,1,16MB,0us", "2,1,16MB,0us", "1,3,16MB,0us"]),
        # The same, and a late one shares the other link: its acknowledgements come at once.
        (0.05, ["0,1,16MB,0us", "2,1,16MB,0us", "1,3,16MB,0us", "4,3,16MB,100us"]),
        # Two that send to each other, against two that only send to them: 11 % off.
        (0.12, ["0,1,16MB,0us", "2,1,16MB,20us", "1,0,16MB,0us", "3,0,16MB,40us"]),
        # Short ones that come one after the other: each waits behind what is in the queue.
        (0.03, ["0,1,500KB,0us", "2,1,500KB,5us", "3,1,500KB,10us", "4,1,500KB,15us"]),
    ],
)
def test_queues_delay_acknowledgements(
    weft: Weft, tmp_path: Path, within: float, messages: list[str]
) -> None:
    """Who waits for them gets less: up to 40 % later than if all had equal shares."""
    (tmp_path / "few.csv").write_text("\n".join(["src,dst,size,start", *messages, ""]))
    done = weft(
        *("run", tmp_path / "few.csv", "--schemes", "ecmp", "--fidelity", "fluid,packet"),
        *("--fabric", "leaf-spine:leaves=2,spines=4,hosts=8,link=400Gbps,delay=500ns"),
        *("--set", "fabric.switch.ecn_kmin=400KB", "--set", "fabric.switch.ecn_kmax=400KB"),
        *("-o", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    flows = pl.read_parquet(tmp_path / "out" / "flows.parquet").sort("message")
    fluid, packet = (
        flows.filter(pl.col("fidelity") == fidelity)["finish_s"].to_list()
        for fidelity in ("fluid", "packet")
    )
    assert len(fluid) == len(messages)
    assert fluid == pytest.approx(packet, rel=within)


@pytest.mark.parametrize("fidelity", ["fast", "packet"])
def test_nothing_to_check_takes_one_line(weft: Weft, fidelity: str) -> None:
    """With a hint where nobody asked to skip packets."""
    done = weft("compare", *DOUBLING, "--schemes", "ecmp", "--check", "--fidelity", fidelity)
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1]
    assert line.startswith("check: 1 run, all packet by packet (exact): nothing to check")
    assert ("--fidelity fast" in line) == (fidelity == "packet")


@pytest.mark.parametrize("count", ["0", "-2", "five", "2.5", "missing.toml"])
def test_a_wrong_count_is_refused_in_one_line(weft: Weft, small: Path, count: str) -> None:
    """Before anything runs."""
    done = weft("run", small, "--fidelity", "fast", "--check", count)
    assert done.returncode == 2
    assert "--check" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_file_after_check_is_a_file(weft: Weft, small: Path) -> None:
    """Not a number of runs."""
    done = weft("run", "--check", small, "-q")
    assert done.returncode == 0, done.stderr
    assert "check: 6 runs, all packet by packet" in done.stdout


def test_check_goes_past_what_packets_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For lack of memory, say: the others are checked, and nothing is said of the rest."""
    from weft import _native

    real = _native.run

    def scarce(experiment: str, seed: int, cancel: _native.Cancel, **cores: Any) -> Any:
        if '"fidelity": "packet"' in experiment and '"path-pinning"' in experiment:
            raise _native.ExperimentError("workload: takes more memory than there is")
        return real(experiment, seed, cancel, **cores)

    monkeypatch.setattr(_native, "run", scarce)
    given = simulations.Options(
        tmp_path, 2, None, json=False, report=False, quiet=True, fidelities=("fast",), check=5
    )
    # Of its two runs one is drawn at least.
    schemes = ("ethereal", "path-pinning", "dnlb-16")
    assert run_comparison(DOUBLING[1], DOUBLING[3], schemes, None, given, 2, ()) == 1
    said = capsys.readouterr()
    refused = said.err.count("not checked: compare path-pinning seed")
    assert 1 <= refused <= 2
    assert f"{5 - refused} runs checked of 6 that skipped packets" in said.out
    assert "result by packets, so nothing is known of those not drawn" in said.out
    assert "differ by more" not in said.out


def _specs(count: int) -> list[tuple[str, RunSpec]]:
    return [
        (
            "one",
            {"experiment": {"run": {}}, "seed": seed, "key": f"{seed}", "swept": {}, "label": ""},
        )
        for seed in range(count)
    ]


def _kept(listed: list[tuple[str, RunSpec]], cct: float) -> store.RowStore:
    kept = store.RowStore()
    for _, spec in listed:
        skipped = 100.0 if spec["seed"] % 3 else 0.0
        row = {"fidelity": "fast", "skipped_pct": skipped, "cct_s": cct / (1 + spec["seed"])}
        outcome: Any = {"row": row, "timing": {"wall_s": cct}, "warnings": []}
        kept.put(spec, outcome)
    return kept


def test_what_is_drawn_does_not_depend_on_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor on the order of runs or on what other runs there are; and it is spread."""
    monkeypatch.setattr(check, "by_packets", lambda spec: spec)
    listed = _specs(300)
    drawn = [one.spec["seed"] for one in check.draw(listed, _kept(listed, 1.0), 40)]
    assert len(drawn) == 40
    assert all(seed % 3 for seed in drawn)
    turned = [*reversed(listed), *listed]
    again = check.draw(turned, _kept(listed, -2.0), 40)
    assert sorted(one.spec["seed"] for one in again) == drawn
    assert 60 < sum(drawn) / len(drawn) < 240
    fewer = check.draw(listed[:200], _kept(listed, 1.0), 40)
    assert {seed for seed in drawn if seed < 200} <= {one.spec["seed"] for one in fewer}


@pytest.mark.parametrize("total", [1, 5, 9, 12])
def test_the_bound_on_the_others_holds_and_is_the_least(total: int) -> None:
    """Over all samples: more than that are larger in 5 % of them at most, not so with one less."""
    for drawn in range(1, total + 1):
        samples = list(combinations(range(total), drawn))
        larger = [total - 1 - max(sample) for sample in samples]
        bound = stats.most_larger(total, drawn)
        assert sum(count > bound for count in larger) <= 0.05 * len(samples)
        if bound:
            assert sum(count > bound - 1 for count in larger) > 0.05 * len(samples)


def test_the_bound_is_that_of_wilks_for_large_sweeps() -> None:
    """The first to have 95 % below their largest one, with 95 % confidence, are 59."""
    assert stats.most_larger(100_000, 59) / 100_000 <= 0.05
    assert stats.most_larger(100_000, 58) / 100_000 > 0.05


def _checked(error: float, qps: int = 0, links: float | None = None) -> dict[str, Any]:
    counters = dict.fromkeys((f"{name}_difference" for name in check.COUNTERS), 0)
    return {
        **{"experiment": "one", "case": "", "scheme": "ecmp", "seed": 1, "fidelity": "fluid"},
        **{"skipped_pct": None, "cct_s": 1.0, "packet_cct_s": 1.0, "difference_pct": error},
        **{"core_s": 1.0, "packet_core_s": 9.0, "times_as_fast": 9.0, **counters},
        **{"max_qps_difference": qps, "link_bytes_difference_pct": links},
    }


def test_the_lines_below_say_what_the_sample_tells() -> None:
    """Sizes of differences without their sign, counters, and how many others may be worse."""
    found = check.Check([_checked(-3.0, -4), _checked(1.0, 2), _checked(2.0, links=0.5)], 40, 10)
    runs, difference, counters = check_table.below(found)
    assert runs == (
        "3 runs checked of 40 that skipped packets; 10 of 50 runs went packet by packet (exact)"
    )
    assert difference == (
        "difference: median 2.00 %, largest 3.00 %; with 95 % confidence at most 24 of the 37 not "
        "checked (65 %) differ by more than that"
    )
    assert counters == (
        "counters that differ: max_qps in 2 runs (by at most 4), bytes on links in 1 run "
        "(by at most 0.50 %)"
    )
    few = check_table.below(check.Check(found.rows[:1], 2, 0))
    assert "too few for a statement about the 1 not checked" in few[1]


def test_a_narrow_terminal_gets_fewer_columns() -> None:
    """What the sample is off by stays."""
    found = check.Check([_checked(-3.0)], 1, 0)
    for width in (200, 90, 70):
        table = check_table.text(found, width).splitlines()
        assert max(map(len, table)) <= width
        assert "\N{MINUS SIGN}3.00 %" in table[4]
