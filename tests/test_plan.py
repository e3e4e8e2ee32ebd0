"""`weft plan`: plans of clusters, and what they say."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import linear_program
from conftest import Weft, command
from small_plan import EXCHANGE, LEAF_SPINE
from weft import _native, simulate
from weft import api as weft_api
from weft.errors import ExperimentError
from weft.plans import file, hosts, make, network, show, verify
from weft.units import format_time

EXAMPLES = Path(__file__).parents[1] / "examples"

FAT_TREE = {"fabric": {"topology": "fat-tree", "k": 4, "link": "100Gbps", "delay": "500ns"}}
BUNDLES = {
    "fabric": {**LEAF_SPINE["fabric"], "topology": "leaf-spine", "spines": 2, "links_per_pair": 2}
}
SLOW = {
    "failures": {
        "dead": {"kind": "down", "links": ["leaf-1 <-> spine-2"]},
        "slow": {"kind": "degraded", "lost": 0.5, "links": ["leaf-0 <-> spine-1"]},
    }
}
HALVING = {
    "workload": {"collective": "all-reduce", "algorithm": "recursive-doubling", "size": "1MB"}
}
CLUSTER = """
title = "Three racks"
[fabric]
topology = "leaf-spine"
leaves = 3
spines = 4
hosts_per_leaf = 4
link = "100Gbps"
delay = "500ns"
"""
JOB = """
[workload]
collective = "all-to-all"
size = "1200KB"
"""


@pytest.mark.parametrize("place", [LEAF_SPINE, FAT_TREE, BUNDLES])
@pytest.mark.parametrize("enforce", ["path-id", "segments"])
def test_ethereal_is_optimal_on_even_fabrics(place: dict[str, Any], enforce: str) -> None:
    """Theorem 1: as good as ideal spraying, by a certificate that holds without the planner."""
    plan = make.of(place, EXCHANGE | {"balance": {"enforce": enforce}}, "ethereal")
    checked = verify.verify(plan)
    assert [one.proved for one in checked] == [True]
    assert plan["enforce"] == enforce


@pytest.mark.parametrize("scheme", ["ecmp", "dnlb-8", "e-ecmp-4", "wcmp", "paralet-8"])
@pytest.mark.parametrize("place", [LEAF_SPINE, LEAF_SPINE | SLOW, FAT_TREE])
def test_other_schemes_are_planned_and_verified(place: dict[str, Any], scheme: str) -> None:
    """Their loads and bounds too; nobody is below the bound."""
    plan = make.of(place, HALVING | {"workload": {**EXCHANGE["workload"]}}, scheme)
    for one in verify.verify(plan):
        assert one.seconds >= one.bound_s * (1 - 1e-9) > 0


def test_segments_and_path_ids_load_links_alike() -> None:
    """A plan on switches as they are puts the same payload on every link."""
    loads = [
        make.of(FAT_TREE, HALVING | {"balance": {"enforce": enforce}}, "ethereal")["steps"]
        for enforce in ("path-id", "segments")
    ]
    assert [step["loads"] for step in loads[0]] == [step["loads"] for step in loads[1]]


def test_links_that_are_down_carry_nothing() -> None:
    """Plain Ethereal leaves dead paths out; the weighted one also spares slow links."""
    even = make.of(LEAF_SPINE | SLOW, EXCHANGE, "ethereal")
    weighted = make.of(
        LEAF_SPINE | SLOW, EXCHANGE | {"balance": {"unit": "byte"}}, "ethereal-weighted"
    )
    for plan in (even, weighted):
        names, capacities = plan["links"]["link"], plan["links"]["capacity_bps"]
        loads = dict(zip(names, plan["steps"][0]["loads"], strict=True))
        assert capacities[names.index("leaf-1 -> spine-2")] == 0
        assert loads["leaf-1 -> spine-2"] == loads["spine-2 -> leaf-1"] == 0
    best = weighted["steps"][0]
    assert even["seconds"] > 1.2 * weighted["seconds"]
    assert best["congestion"]["seconds"] <= best["bound_s"] * 1.001


JOBS: list[dict[str, Any]] = [
    {"pattern": "all-to-all", "size": "40KB"},
    {"pattern": "permutation", "size": "300KB", "count": 2},
    {"collective": "all-reduce", "algorithm": "ring", "size": "200KB"},
    {"collective": "all-gather", "algorithm": "direct", "size": "200KB"},
    {
        **{"model": "gpt2-small", "layers": 4, "hidden": 64, "heads": 4, "kv_heads": 4},
        **{"feed_forward": 128, "sequence": 32, "vocabulary": 512, "positions": 0},
        **{"pipeline": 4, "global_batch": 24, "forward": "0ns", "backward": "0ns"},
    },
]


@pytest.mark.parametrize("place", [LEAF_SPINE, LEAF_SPINE | SLOW, FAT_TREE])
@pytest.mark.parametrize("workload", JOBS)
def test_the_bound_of_a_plan_is_that_of_its_runs(
    place: dict[str, Any], workload: dict[str, Any]
) -> None:
    """No scheme is simulated to be faster, and `weft compare` has the same."""
    seed = random.Random(str(place) + str(workload)).randrange(1, 1000)
    sparse = {"ranks": 8} if "model" in workload else {}
    job = {"workload": workload | sparse, "transport": {"rto": "20ms"}}
    plan = make.of(place, job, "ethereal", seed=seed)
    swept = {"balance.scheme": ["ethereal", "ecmp", "spray"], "seeds": [seed]}
    for row in simulate({**place, **job, "sweep": swept}).runs.iter_rows(named=True):
        assert row["bound_s"] == plan["bound_s"], f"seed {seed}"
        assert row["cct_s"] >= plan["bound_s"], f"seed {seed}"
    verify.verify(plan)


def test_a_sum_of_steps_is_called_that() -> None:
    """Steps of a pipeline overlap, so that runs are shorter than the sum of its steps."""
    wide = {**JOBS[-1], "hidden": 256, "feed_forward": 1024, "sequence": 128, "ranks": 8}
    plan = make.of(FAT_TREE, {"workload": wide}, "ethereal")
    sweep = {"balance.scheme": ["ethereal"]}
    cct = simulate({**FAT_TREE, "workload": wide, "sweep": sweep}).runs["cct_s"].item()
    assert plan["bound_s"] <= cct < plan["steps_bound_s"] <= plan["seconds"]
    sums, least = (show.text(plan).splitlines()[at] for at in (-4, -1))
    assert sums.startswith("sum of steps: ")
    assert format_time(plan["steps_bound_s"]) in sums
    assert least.startswith(f"whole job: lower bound {format_time(plan['bound_s'])} for any plan")
    for key, said in (("bound_s", "the job takes at least"), ("steps_bound_s", "steps add up")):
        with pytest.raises(ExperimentError, match=f"plan: {key}: {said}"):
            verify.verify(plan | {key: plan[key] * 0.9})


def test_a_plan_without_pieces_is_planned_again_where_asked() -> None:
    """And is the same."""
    whole = make.of(LEAF_SPINE, EXCHANGE, "ethereal")
    compact = make.of(LEAF_SPINE, EXCHANGE, "ethereal", most_subflows=10)
    assert compact["steps"][0]["pieces"] is None
    assert verify.verify(compact) == verify.verify(whole)
    again, kept = (next(verify.pieces_of(plan, 0)) for plan in (compact, whole))
    for name in verify.COLUMNS:
        assert again[name].tolist() == kept[name].tolist()


def test_a_plan_without_pieces_tells_nccl_nothing_wrong() -> None:
    """How many queue pairs it needs is not in the file; asked for a host, it is."""
    whole = make.of(LEAF_SPINE, EXCHANGE, "ethereal")
    compact = make.of(LEAF_SPINE, EXCHANGE, "ethereal", most_subflows=10)
    assert compact["hosts"][3]["environment"] == {"NCCL_IB_TC": "104"}
    assert "NCCL_IB_QPS_PER_CONNECTION" in hosts.of_host(compact, "h3")["environment"]
    assert "NCCL_IB_QPS_PER_CONNECTION" in whole["hosts"][3]["environment"]


DEAD_ELSEWHERE = {"failures": {"x": {"kind": "down", "links": ["leaf-1 <-> spine-1"]}}}
"""Leaf 0 has both uplinks, and by one of them does not reach leaf 1."""
TWO_SPINES = {
    "fabric": {**LEAF_SPINE["fabric"], "spines": 2, "hosts_per_leaf": 1, "uplink": "10Gbps"}
}


def uplinks_told(plan: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Both leaves and the uplink of every piece between leaves, as rules for its port have it."""
    leaf_of = [host["leaf"] for host in plan["cluster"]["hosts"]]
    pieces = plan["steps"][0]["pieces"]
    found = []
    for src, dst, port in zip(*(pieces[key] for key in ("src", "dst", "source_port")), strict=True):
        if leaf_of[src] != leaf_of[dst]:
            rules = plan["segments"][f"leaf-{leaf_of[src]}"]
            told = [at for at, ((first, last),) in enumerate(rules) if first <= port <= last]
            found.append((leaf_of[src], leaf_of[dst], told[0]))
    return found


@pytest.mark.parametrize("scheme", ["dnlb-1", "dnlb-2", "dnlb-8", "ethereal"])
def test_ports_lead_over_no_uplink_that_is_dead_farther_on(scheme: str) -> None:
    """A leaf does not know that a spine has lost another leaf: its rule would send there."""
    plan = make.of(TWO_SPINES | DEAD_ELSEWHERE, EXCHANGE, scheme)
    told = uplinks_told(plan)
    assert len(told) >= 6
    assert {uplink for *leaves, uplink in told if 1 in leaves} == {0}
    assert verify.verify(plan)[0].pieces == plan["steps"][0]["piece_count"]
    # Those of one pair of hosts do not share a port.
    pieces = plan["steps"][0]["pieces"]
    ports = set(zip(pieces["src"], pieces["dst"], pieces["source_port"], strict=True))
    assert len(ports) == len(pieces["src"])


def test_a_port_that_leads_behind_a_dead_link_is_found_out() -> None:
    """Though the path of its piece is alive, as if the leaf hashed it."""
    plan = make.of(TWO_SPINES | DEAD_ELSEWHERE, EXCHANGE, "dnlb-2")
    pieces = plan["steps"][0]["pieces"]
    ends = list(zip(pieces["src"], pieces["dst"], strict=True))
    port = list(pieces["source_port"])
    port[ends.index((0, 1))] = plan["segments"]["leaf-0"][1][0][0]
    pieces["source_port"] = port
    with pytest.raises(ExperimentError, match=r"leaf-0 sends source port 57344 to its uplink 1"):
        verify.verify(plan)


@pytest.mark.parametrize("spines", [1, 2])
@pytest.mark.parametrize("scheme", ["dnlb-2", "dnlb-3", "dnlb-8"])
def test_packets_go_down_by_the_member_that_they_came_up_by(scheme: str, spines: int) -> None:
    """As the rules of spines say, and what is planned otherwise is found out."""
    bundles = {**LEAF_SPINE["fabric"], "spines": spines, "links_per_pair": 2}
    plan = make.of({"fabric": bundles}, EXCHANGE, scheme)
    verify.verify(plan)
    pieces = plan["steps"][0]["pieces"]
    path = np.asarray(pieces["path"])
    far = np.asarray(pieces["src"]) // 4 != np.asarray(pieces["dst"]) // 4
    assert ((path >> 8) % 2 == path & 0xFF)[far].all()
    other = path.copy()
    other[np.flatnonzero(far)[0]] ^= 1
    pieces["path"] = other
    with pytest.raises(ExperimentError, match=r"down over member . of the bundle to leaf-\d, not"):
        verify.verify(plan)


def test_ports_lead_on_where_links_farther_on_are_dead() -> None:
    """In three tiers too, where a core or the other pod has lost the way."""
    far = {
        "failures": {
            "core": {"kind": "down", "links": ["pod-0-agg-0 <-> core-0"]},
            "leaf": {"kind": "down", "links": ["leaf-3 <-> pod-1-agg-0"]},
        }
    }
    plan = make.of(FAT_TREE | far, EXCHANGE, "dnlb-4")
    assert verify.verify(plan)[0].pieces == plan["steps"][0]["piece_count"]
    net = network.of(plan["links"])
    reachable = net.reachable()
    # Leaf 0 by its first uplink: to pod 1 through core 1, but not on to leaf 3.
    assert reachable[0, :2].tolist() == [
        [True, True, True, False, True, True, True, True],
        [True] * 8,
    ]


def test_the_cluster_of_a_plan_is_as_changed() -> None:
    """Fabric, failures and scheme of --set are those of hosts, segments and links too."""
    changes = [
        ("fabric.spines", "5"),
        ("fabric.leaves", "4"),
        ("failures.a.kind", '"down"'),
        ("failures.a.links", '["leaf-0 <-> spine-4"]'),
        ("balance.scheme", '"dnlb-4"'),
    ]
    plan = make.of(LEAF_SPINE, EXCHANGE, "ethereal", changes=changes)
    assert len(plan["hosts"]) == 16
    assert {name: len(found) for name, found in plan["segments"].items()} == {
        f"leaf-{leaf}": 5 for leaf in range(4)
    }
    down = [link["upper"] for link in plan["cluster"]["links"] if link["state"] == "down"]
    assert down == ["spine-4"]
    verify.verify(plan)
    with pytest.raises(ExperimentError, match="sweep: 2 runs"):
        make.of(
            LEAF_SPINE, EXCHANGE, "ethereal", changes=[("sweep.workload.size", '["1MB", "2MB"]')]
        )


def test_hosts_have_queue_pairs_ports_and_labels() -> None:
    """Every piece is some queue pair's; its port lies in the segment of its uplink."""
    plan = make.of(LEAF_SPINE, EXCHANGE, "ethereal")
    first = plan["hosts"][0]
    assert len({pair["to"] for pair in first["queue_pairs"]}) == 11
    for pair in first["queue_pairs"]:
        port, label = pair["source_port"], pair["flow_label"]
        assert ((label & 0x3FFF) ^ (label >> 14)) | 0xC000 == port
        if int(pair["to"].removeprefix("h")) >= 4:
            low, high = plan["segments"]["leaf-0"][pair["path"] >> 8][0]
            assert low <= port <= high
    assert first["environment"]["NCCL_IB_TC"] == str(26 << 2)
    assert hosts.flow_label(0xC000) == 0x4001


def test_the_linear_program_knows_its_optimum() -> None:
    """Two leaves, one link of a half: 16 MB over 350 Gbps."""
    slow = {"failures": {"slow": SLOW["failures"]["slow"]}}
    place = {"fabric": {**LEAF_SPINE["fabric"], "leaves": 2}, **slow}
    plan = make.of(place, {"workload": {"pattern": "all-to-all", "size": "1MB"}}, "ecmp")
    net = network.of(plan["links"])
    demand = linear_program.demands(net, next(verify.pieces_of(plan, 0)))
    assert demand.tolist() == [[0, 16_000_000], [16_000_000, 0]]
    best = linear_program.solve(net, demand)
    assert best.seconds == pytest.approx(16e6 * 8 / 350e9)
    assert sum(best.shares[0, 1].values()) == pytest.approx(1)


def test_the_command_writes_everything(tmp_path: Path, weft: Weft) -> None:
    """The file, both tables and the picture; what it prints; and that it verifies."""
    (tmp_path / "c.toml").write_text(CLUSTER)
    (tmp_path / "j.toml").write_text(JOB)
    done = weft("plan", "c.toml", "--job", "j.toml", "-o", "out", "--optimum", "--host", "h0")
    assert done.returncode == 0, done.stderr
    one_link = "must cross host-0 -> leaf-0, which carries 100.0 Gbps"
    for said in ("optimal", one_link, "by linear program", '"source_port"', "split  subflows "):
        assert said in done.stdout
    plan = file.read(tmp_path / "out")
    loads = pl.read_parquet(tmp_path / "out" / "loads.parquet")
    assert loads["bytes"].to_list() == plan["steps"][0]["loads"]
    pieces = pl.read_parquet(tmp_path / "out" / "pieces.parquet")
    assert pieces["bytes"].sum() == plan["steps"][0]["bytes"]
    assert (tmp_path / "out" / "loads.png").read_bytes().startswith(b"\x89PNG")
    done = weft("plan", "--verify", "out/plan.json")
    assert (done.returncode, "agree" in done.stdout) == (0, True)
    done = weft("plan", "c.toml", "--job", "j.toml", "--json")
    assert json.loads(done.stdout)["steps"] == plan["steps"]
    done = weft("switch-config", "out", "--format", "nftables", "--switch", "leaf-0", "-q")
    assert (done.returncode, done.stderr) == (0, "")


def test_names_and_addresses_are_changed_in_the_file(tmp_path: Path, weft: Weft) -> None:
    """The line named the file of the job, which has no such keys."""
    (tmp_path / "c.toml").write_text(CLUSTER)
    done = weft("plan", "c.toml", "--workload", "ring:size=1MB", "--set", "cluster.protocol=tcp")
    said = "error: --set cluster.protocol: is no key of an experiment; change it in c.toml\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_a_job_may_be_in_short_form(tmp_path: Path, weft: Weft) -> None:
    """The same plan as from a file."""
    (tmp_path / "c.toml").write_text(CLUSTER)
    (tmp_path / "j.toml").write_text('[workload]\npattern = "all-to-all"\nsize = "1200KB"\n')
    plans = [
        json.loads(weft("plan", "c.toml", "--job", job, "--json").stdout)
        for job in ("j.toml", "all-to-all:size=1200KB")
    ]
    assert plans[1].pop("title") == "all-to-all:size=1200KB on Three racks"
    plans[0].pop("title")
    assert plans[0]["steps"] == plans[1]["steps"]
    assert plans[0]["hosts"] == plans[1]["hosts"]


@pytest.mark.parametrize("name", ["shift.cm", "flows.csv", "chakra/gpt.0.et"])
def test_a_job_may_be_a_workload_file(tmp_path: Path, weft: Weft, name: str) -> None:
    """The same plan as of an experiment that names the file."""
    (tmp_path / "c.toml").write_text((EXAMPLES / "cluster.toml").read_text())
    file = EXAMPLES / name
    key = "trace" if file.suffix == ".et" else "file"
    (tmp_path / "j.toml").write_text(f'[workload]\n{key} = "{file}"\n')
    plans = [
        json.loads(weft("plan", "c.toml", "--job", str(job), "--json").stdout)
        for job in ("j.toml", file)
    ]
    assert plans[0]["steps"]
    assert plans[0]["steps"] == plans[1]["steps"]
    assert plans[0]["hosts"] == plans[1]["hosts"]


def test_a_job_inside_one_server_has_an_empty_plan(tmp_path: Path, weft: Weft) -> None:
    """Which replaces all of an earlier one."""
    (tmp_path / "c.toml").write_text(CLUSTER + "[fabric.server]\ngpus = 2\nnics = 2\n")
    (tmp_path / "j.toml").write_text(JOB)
    (tmp_path / "one.toml").write_text(JOB + "ranks = 2\n")
    for job, said, left in (("j", "optimal", 4), ("one", "nothing is sent over the fabric", 1)):
        done = weft("plan", "c.toml", "--job", f"{job}.toml", "-o", "out")
        assert done.returncode == 0
        assert ("crosses the fabric" in done.stderr) == (job == "one")
        assert said in done.stdout
        assert len(list((tmp_path / "out").iterdir())) == left
    assert weft("plan", "--verify", "out").returncode == 0


@pytest.mark.parametrize(
    ("cluster", "job", "words", "said"),
    [
        (CLUSTER, JOB, ["--scheme", "spray"], "decides packet by packet"),
        (CLUSTER, JOB, ["--scheme", "etherial"], "did you mean"),
        (
            CLUSTER,
            '[workload]\ncollective = "all-reduce"\nalgorithm = "sharp"\nsize = "1MB"\n',
            [],
            'workload.algorithm: "sharp" has switches add up and copy',
        ),
        (CLUSTER, "[fabric]\nleaves = 2\n", [], "belongs to the cluster"),
        (CLUSTER, "[balance]\n", [], "workload: is missing"),
        (CLUSTER, "[workload", [], "j.toml"),
        ("fabric = 3\n", JOB, [], "c.toml: fabric"),
        (CLUSTER, "balance = 3\n" + JOB, [], "j.toml: balance (line 1): is not a table"),
        (CLUSTER, JOB + '[balance]\nscheme = "ecmp"\n', [], "balance.scheme (line 6): is ecmp"),
        (CLUSTER.replace("leaves = 3", "leafs = 3"), JOB, [], "c.toml: fabric.leafs (line 5)"),
        (CLUSTER, JOB, ["--host", "h99"], "--host: h99"),
        (
            CLUSTER,
            JOB,
            ["--set", "balance.enforce=discovered"],
            'j.toml: balance.enforce: is "discovered", and nothing says which source ports lead ',
        ),
        (
            CLUSTER + "[cluster]\nfirst_port = 50000\n",
            JOB,
            [],
            "c.toml: cluster.first_port: plans cut the ports of RoCE",
        ),
        (
            CLUSTER + '[failures.a]\nkind = "down"\nlinks = ["leaf-0 <-> spine-1"]\n',
            JOB + "[balance]\nconnections = 1\n",
            ["--scheme", "hpn"],
            "balance.scheme: it pins what goes from host-",
        ),
        (
            CLUSTER + "planes = 2\n",
            JOB,
            [],
            "c.toml: fabric.planes (line 10): clusters and plans are of one plane only; ",
        ),
        (
            CLUSTER + '[failures.a]\nkind = "down"\nlinks = ["host-3 <-> leaf-0"]\n',
            JOB,
            [],
            "no live path is left from host-0 (leaf-0) to host-3",
        ),
        (
            CLUSTER
            + '[failures.a]\nkind = "down"\nlinks = ['
            + ", ".join(f'"leaf-0 <-> spine-{spine}"' for spine in range(4))
            + "]\n",
            JOB,
            [],
            "no live path is left",
        ),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path, weft: Weft, cluster: str, job: str, words: list[str], said: str
) -> None:
    """With the file, the key and the mend, and exit code 2."""
    (tmp_path / "c.toml").write_text(cluster)
    (tmp_path / "j.toml").write_text(job)
    done = weft("plan", "c.toml", "--job", "j.toml", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_ports_of_a_known_hash_are_said_to_be_a_models(tmp_path: Path, weft: Weft) -> None:
    """Hosts and seeds of the cluster's switches are others."""
    (tmp_path / "c.toml").write_text(CLUSTER + '[fabric.switch]\nhash = "crc32"\n')
    words = ("plan", "c.toml", "--job", "all-to-all:size=1MB")
    for enforce, lines in (("segments", 0), ("hash", 1)):
        done = weft(*words, "--set", f"balance.enforce={enforce}")
        assert (done.returncode, len(done.stderr.splitlines())) == (0, lines), done.stderr
        assert done.stderr.startswith("warning: balance.enforce: " * lines)


def test_dicts_of_a_plan_may_hold_what_those_of_runs_may() -> None:
    """NumPy's numbers, tuples; and what JSON cannot say is told with its key."""
    fabric = LEAF_SPINE["fabric"] | {"leaves": np.int64(3)}
    dead = {"one": {"kind": "down", "links": ("leaf-0 <-> spine-1",)}}
    given = weft_api.plan({"fabric": fabric, "failures": dead}, EXCHANGE)
    assert (
        given.document["links"]
        == make.of(LEAF_SPINE | {"failures": dead}, EXCHANGE, "ethereal")["links"]
    )
    for value, said in (
        (float("nan"), "cluster: fabric.leaves: not a finite number; give it a value"),
        (object(), "cluster: a value of type object; use numbers, strings, lists, dicts"),
    ):
        with pytest.raises(ExperimentError, match=said):
            weft_api.plan({"fabric": fabric | {"leaves": value}}, EXCHANGE)


def test_no_plan_is_one_line(tmp_path: Path, weft: Weft) -> None:
    """What is no plan file is told so."""
    (tmp_path / "x.json").write_text("{}")
    for name, said in (("x.json", "format"), ("none.json", "No such file")):
        done = weft("plan", "--verify", name)
        assert (done.returncode, said in done.stderr) == (2, True)
    done = weft("plan", "c.toml")
    assert (done.returncode, "--job" in done.stderr) == (2, True)


def test_options_that_would_do_nothing_are_refused(tmp_path: Path, weft: Weft) -> None:
    """A wrong host beside --json, say, would go unseen."""
    (tmp_path / "c.toml").write_text(CLUSTER)
    job = ("c.toml", "--job", "all-to-all:size=1200KB")
    assert weft("plan", *job, "-o", "plan").returncode == 0
    for words, said in (
        ((*job, "--json", "--host", "h1"), "--host: does nothing with --json"),
        ((*job, "--json", "--optimum"), "--optimum: does nothing with --json"),
        ((*job, "--schemes", "ecmp,ethereal", "--host", "h1"), "--host: does nothing with several"),
        ((*job, "--schemes", ","), "--scheme: names none"),
        (("plan", "--verify", "--host", "h1"), "--host: does nothing with --verify"),
        (("plan", "--verify", "--scheme", "ethereal"), "--scheme: does nothing with --verify"),
        (("plan", "--verify", "--workload", "x"), "--job: does nothing with --verify"),
        (("plan", "--hosts-for", "mori", "--seed", "1"), "--seed: does nothing with a plan that"),
        (("plan/plan.json",), "plan/plan.json: is a plan already; add --verify or --hosts-for"),
        (("plan", "--job", "x.toml"), "plan: is a plan already; add --verify or --hosts-for"),
    ):
        done = weft("plan", *words)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert said in done.stderr
    assert weft("plan", "plan", "--verify", "--json").returncode == 0


@pytest.mark.slow
def test_4096_hosts_are_planned_in_seconds(tmp_path: Path) -> None:
    """16.8 million messages, in less memory than they would take one by one."""

    def planned(place: str) -> tuple[str, float, float]:
        """What the command says, its seconds of a core, and the most memory it had, in GB."""
        (tmp_path / "c.toml").write_text(place)
        words = command("plan", "c.toml", "--job", "j.toml", "-o", "out")
        with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return said, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9

    (tmp_path / "j.toml").write_text(JOB.replace("1200KB", "268MB"))
    # Of a core: machines of tests are shared. Python and its figure cost the same for few hosts.
    _, start, _ = planned(CLUSTER)
    place = CLUSTER.replace("leaves = 3", "leaves = 64").replace("spines = 4", "spines = 64")
    said, seconds, gigabytes = planned(place.replace("hosts_per_leaf = 4", "hosts_per_leaf = 64"))
    assert "16,773,120" in said
    assert "optimal" in said
    plan = file.read(tmp_path / "out")
    some = _native.plan_subflows(json.dumps(plan["experiment"]), 1, 0, 17, 18)
    assert len(np.asarray(some["src"])) == 4095
    print(f"{seconds:.1f} s, {start:.1f} s for 12 hosts, {gigabytes:.2f} GB")
    # For the core that people run; assertions take as long again.
    assert seconds - start < (20 if _native.has_assertions else 10)
    assert gigabytes < 2


def test_a_compact_plan_has_tables_of_hosts_on_demand() -> None:
    """The same that a plan with all its pieces holds."""
    whole = make.of(LEAF_SPINE, EXCHANGE, "ethereal")
    compact = make.of(LEAF_SPINE, EXCHANGE, "ethereal", most_subflows=10)
    assert compact["hosts"][5]["queue_pairs"] == []
    assert hosts.of_host(compact, "h5") == whole["hosts"][5]


def test_bundles_in_three_tiers_are_planned_through_segments() -> None:
    """Path ids cannot name their members, and where switches hash nobody knows them."""
    counts = {"pods": 2, "leaves": 2, "aggs": 2, "cores": 4, "hosts_per_leaf": 4}
    bundles = {"links_per_pair": 2, "core_links_per_pair": 2}
    place = {"fabric": {"topology": "clos", "tiers": 3, **counts, **bundles}}
    plan = make.of(place, EXCHANGE, "ethereal")
    assert [one.proved for one in verify.verify(plan)] == [True]
    with pytest.raises(ExperimentError, match="bundle"):
        make.of(place, EXCHANGE, "ecmp")


@pytest.mark.parametrize(
    ("bundles", "dead"),
    [
        ({"links_per_pair": 2}, "leaf-0 <-> pod-0-agg-1#1"),
        ({"links_per_pair": 3}, "leaf-0 <-> pod-0-agg-1#1"),
        ({"core_links_per_pair": 2}, "pod-0-agg-0 <-> core-0#1"),
    ],
)
def test_live_members_stand_in_for_dead_ones_on_the_way_down(
    bundles: dict[str, int], dead: str
) -> None:
    """No path names them; what does not add up is found out."""
    counts = {"pods": 2, "leaves": 2, "aggs": 2, "cores": 2, "hosts_per_leaf": 2}
    place = {
        "fabric": {"topology": "clos", "tiers": 3, **counts, **bundles},
        "failures": {"dead": {"kind": "down", "links": [dead]}},
    }
    plan = make.of(place, EXCHANGE, "ethereal")
    verify.verify(plan)
    lower, upper = dead.partition("#")[0].split(" <-> ")
    links, loads = plan["links"]["link"], plan["steps"][0]["loads"]
    one, other = (links.index(f"{upper} -> {lower}{member}") for member in ("", "#1"))
    assert loads[one] > loads[other] == 0
    loads[other] += 1
    loads[one] -= 1
    with pytest.raises(ExperimentError, match=rf"{upper} -> {lower}\S* (carries|is dead)"):
        verify.verify(plan)


def test_plans_of_several_schemes_are_compared(weft: Weft, tmp_path: Path) -> None:
    """A line each, the best first; with `-o` a directory each, and as JSON the plans themselves."""
    (tmp_path / "cluster.toml").write_text(CLUSTER_IN_SHORT)
    words = ["plan", "cluster.toml", "--workload", "all-to-all:size=64KB"]
    done = weft(*words, "--schemes", "ecmp,dnlb-2,ethereal", "-o", "plans")
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("e", "d"))]
    assert sorted(names) == ["dnlb-2", "ecmp", "ethereal"]
    assert "whole job: lower bound" in done.stdout
    plans = json.loads(weft(*words, "--schemes", "ecmp,ethereal", "--json").stdout)
    assert [plan["scheme"] for plan in plans] == ["ecmp", "ethereal"]
    assert names.index("ethereal") < names.index("ecmp")
    assert json.loads((tmp_path / "plans/ethereal/plan.json").read_text())["scheme"] == "ethereal"


CLUSTER_IN_SHORT = """
title = "Sixteen hosts"
[fabric]
topology = "leaf-spine"
leaves = 4
spines = 4
hosts_per_leaf = 4
link = "100Gbps"
"""
