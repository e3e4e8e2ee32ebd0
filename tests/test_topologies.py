"""Topology files of other tools, as a user meets them: described, compared on, swept."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft
from weft.analysis import topology_info
from weft.study import inputs

LEAVES = "8 4 8\n4 5 6 7\n"
LINKS = "".join(f"{host} {{}} 100Gbps 0.001ms 0\n" for host in range(4))
UPLINKS = "".join(f"{leaf} {spine} 100Gbps 0.001ms 0\n" for leaf in (4, 5) for spine in (6, 7))
IN_ORDER = LEAVES + LINKS.format(4, 4, 5, 5) + UPLINKS
"""Two leaves (nodes 4 and 5) of two hosts (0 to 3) under two spines (6 and 7)."""
IN_TURN = LEAVES + LINKS.format(4, 5, 4, 5) + UPLINKS

TOPO = """# Four hosts, 2 : 1
Nodes 4
Tiers 2
Podsize 4
Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 1
Downlink_Latency_ns 500
Switch_Latency_ns 300
Queue_down 100000
Queue_up 100000
Oversubscribed 2
Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Downlink_Latency_ns 700
Switch_Latency_ns 300
Queue_down 100000
"""

RING = "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"

SHARED = Path(__file__).parent.parent.parent / "shared" / "traces"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a file of each kind."""
    texts = {"order.txt": IN_ORDER, "turn.txt": IN_TURN, "small.topo": TOPO, "ring.yml": RING}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def rows(weft: Weft, *words: str | Path) -> list[dict[str, Any]]:
    """What a command prints under --json."""
    done = weft(*words, "--json", "-q")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_file_of_htsim_is_described(weft: Weft, files: Path) -> None:
    """Tiers, links, queues, and the keys that say the same."""
    done = weft("topology", "info", files / "small.topo")
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == "small.topo: htsim, 2 tiers, 4 hosts"
    assert "leaf 2 2 1 2 : 1 100 KB 100 KB" in lines
    assert "spine 1 2 - - 100 KB -" in lines
    assert "host - leaf 4 1 200 Gbps 500 ns" in lines
    assert "leaf - spine 2 1 200 Gbps 700 ns" in lines
    assert "oversubscription 2 : 1 overall" in lines
    assert "switch latency 300 ns" in lines
    assert 'topology = "clos", tiers = 2, leaves = 2, hosts_per_leaf = 2' in done.stdout
    found = json.loads(weft("topology", "info", files / "small.topo", "--json").stdout)
    assert (found["kind"], found["hosts"], found["oversubscription"]) == ("htsim", 4, 2.0)
    assert found["fabric"]["uplink_delay"] == "700ns"
    assert found["problems"] == []


def test_nodes_of_ns3_are_named(weft: Weft, files: Path) -> None:
    """Stretches of nodes, and a placement that puts ranks where they were."""
    text = weft("topology", "info", files / "order.txt").stdout
    assert "nodes 0 to 3 are host-0 to host-3\nnodes 4 to 5 are leaf-0 to leaf-1\n" in text
    assert "remarks" not in text
    text = weft("topology", "info", files / "turn.txt").stdout
    assert "node 0 is host-0\nnode 1 is host-2\nnode 2 is host-1\nnode 3 is host-3\n" in text
    assert "its node 1, rank 1 of ASTRA-sim, is host-2" in text
    done = weft("topology", "info", files / "turn.txt", "--placement")
    assert done.stdout == "0\n2\n1\n3\n"
    assert weft("topology", "info", files / "small.topo", "--placement").stdout == "0\n1\n2\n3\n"
    done = weft("topology", "info", files / "turn.txt", "--placement", "--json")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_ranks_go_where_they_were(weft: Weft, files: Path) -> None:
    """With the placement a ring over both leaves crosses the spines four times, else twice."""
    placed = weft("topology", "info", files / "turn.txt", "--placement").stdout
    (files / "ranks.txt").write_text(placed)
    words = ("compare", "--fabric", "turn.txt", "--schemes", "ecmp", "--workload")
    job = "all-reduce:algorithm=ring,size=1MB"
    (packed,) = rows(weft, *words, job)
    (there,) = rows(weft, *words, f"{job},placement_file=ranks.txt")
    assert there["packet_hops"] > packed["packet_hops"]
    done = weft(*words, job, "-q")
    assert "turn.txt: hosts of a leaf are numbered together" in done.stderr


def test_a_network_that_is_no_clos_is_a_graph(weft: Weft, files: Path) -> None:
    """A ring of four switches: described, and run under what needs no Clos."""
    ring = files / "ring.txt"
    hosts = [f"{host} {host + 4} 100Gbps 1us 0" for host in range(4)]
    links = [f"{4 + one} {4 + (one + 1) % 4} 100Gbps 1us 0" for one in range(4)]
    ring.write_text("\n".join(["8 4 8", "4 5 6 7", *hosts, *links]) + "\n")
    shown = weft("topology", "info", ring)
    assert "a graph of 4 switches, 4 hosts" in shown.stdout
    assert "it is no folded Clos" in shown.stdout
    assert 'links = ["4 5 100Gbps 1us"' in shown.stdout
    found = topology_info.info(ring)
    assert found["nodes"][:5] == ["host-0", "host-1", "host-2", "host-3", "switch-4"]
    traffic = ["--workload", "permutation:size=100KB", "--fabric", f"{ring}:switch.pfc=false"]
    run = weft("compare", *traffic, "--schemes", "ecmp,ethereal", "--json", "-q")
    assert "so it is a graph" in run.stderr
    assert [row["hosts"] for row in json.loads(run.stdout)] == [4, 4]
    refused = weft("compare", *traffic, "--schemes", "dnlb-4")
    assert refused.returncode == 2
    assert "dnlb cannot run here: it needs a folded Clos" in refused.stderr


def test_an_analytical_network_is_refused(weft: Weft, files: Path) -> None:
    """Everywhere, with what to write instead."""
    done = weft("topology", "info", files / "ring.yml")
    assert done.returncode == 2
    assert "gpus and scale_up of [fabric.server]" in done.stderr
    done = weft("compare", "--fabric", "ring.yml", "--workload", "ring:size=1KB")
    assert done.returncode == 2
    assert done.stderr.startswith("error: command line: fabric.file: ring.yml: a network of")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("files")
def test_a_file_is_a_fabric_in_short(weft: Weft) -> None:
    """Alone, and with keys of switches, NICs and servers behind it."""
    words = ("compare", "--schemes", "ecmp,spray", "--workload", "all-reduce:size=100KB")
    found = rows(weft, *words, "--fabric", "small.topo")
    assert [row["hosts"] for row in found] == [4, 4]
    assert [row["ranks"] for row in found] == [4, 4]
    found = rows(weft, *words, "--fabric", "order.txt:nic.mtu=1KB,server.gpus=2")
    assert [(row["hosts"], row["ranks"]) for row in found] == [(4, 8), (4, 8)]
    done = weft(*words, "--fabric", "order.txt:leaves=4")
    assert done.returncode == 2
    assert "leaves: stands beside file, which says it; remove one of them" in done.stderr
    done = weft(*words, "--fabric", "none.topo")
    assert "fabric.file: there is no file none.topo; correct the path" in done.stderr


def test_a_file_under_a_connection_matrix(weft: Weft, files: Path) -> None:
    """The matrix lies elsewhere; the fabric is named from where the command is typed."""
    (files / "traffic").mkdir()
    matrix = files / "traffic" / "two.csv"
    matrix.write_text("src,dst,size\n0,3,4096\n")
    words = ("run", "traffic/two.csv", "--schemes", "ecmp", "--fabric", "small.topo")
    (row,) = rows(weft, *words)
    assert (row["hosts"], row["messages"]) == (4, 1)


SIMAI = Path(__file__).parents[1] / "examples/rails_H100.topo"
"""Two servers of four GPUs, each at a leaf of its own, in SimAI's format."""


def test_simai_says_what_servers_are(weft: Weft, tmp_path: Path) -> None:
    """Described, run under a name without a dot, and the same to the byte as keys by hand."""
    shutil.copy(SIMAI, tmp_path / "Spectrum-X_8g_4gps")
    text = weft("topology", "info", "Spectrum-X_8g_4gps").stdout
    title = "SimAI's ns-3 backend, 2 tiers, 8 hosts in 2 servers of 4 GPUs on rails"
    assert text.startswith(f"Spectrum-X_8g_4gps: {title}\n")
    assert "node 1 is host-2\n" in text
    found = json.loads(weft("topology", "info", "Spectrum-X_8g_4gps", "--json").stdout)
    named = dict(zip(found["file_nodes"], found["nodes"], strict=True))
    assert (named["5"], named["10"], named["15"]) == ("host-3", "leaf-0", "spine-1")
    assert named.keys().isdisjoint(("8", "9"))
    assert "server.gpus = 4, server.nics = 4, server.rails = true" in text
    placed = weft("topology", "info", "Spectrum-X_8g_4gps", "--placement").stdout
    assert placed == "".join(f"{gpu}\n" for gpu in range(8))
    words = ("compare", "--workload", "all-reduce:size=1MB", "--schemes", "ecmp,ethereal")

    def results(fabric: str) -> list[dict[str, Any]]:
        timing = ("wall_s", "build_s")
        found = rows(weft, *words, "--fabric", fabric)
        return [{key: row[key] for key in row if key not in timing} for row in found]

    by_file = results("Spectrum-X_8g_4gps")
    assert [row["ranks"] for row in by_file] == [8, 8]
    keys = "leaf-spine:leaves=4,spines=2,hosts=2,link=400Gbps,server.gpus=4,server.nics=4"
    assert results(f"{keys},server.rails=true") == by_file
    beside = "leaf-spine:leaves=2,spines=2,hosts=4,link=400Gbps,server.gpus=4,server.nics=4"
    assert results(beside) != by_file


def test_simai_and_other_servers(weft: Weft) -> None:
    """What contradicts the file is one line; other links between GPUs are taken."""
    words = ("compare", "--workload", "all-reduce:size=1MB", "--schemes", "ecmp", "--fabric")
    done = weft(*words, f"{SIMAI}:server.gpus=8")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"fabric.server.gpus: 8, where {SIMAI} has 4; remove it" in done.stderr
    (slow,) = rows(weft, *words, f"{SIMAI}:server.scale_up=100Gbps")
    (fast,) = rows(weft, *words, SIMAI)
    assert slow["cct_s"] > fast["cct_s"]


def test_files_are_swept_and_resumed(weft: Weft, files: Path) -> None:
    """Relative to the experiment; what is finished needs no file any more."""
    (files / "nets").mkdir()
    for name in ("order.txt", "small.topo"):
        (files / name).rename(files / "nets" / name)
    experiment = files / "nets" / "sweep.toml"
    experiment.write_text(
        '[workload]\ncollective = "all-reduce"\nsize = "100KB"\n[balance]\nscheme = "ecmp"\n'
        '[sweep]\n"fabric.file" = ["order.txt", "small.topo"]\n'
    )
    words = ("run", experiment, "-o", files / "out", "--no-report")
    found = rows(weft, *words)
    assert [row["fabric.file"] for row in found] == ["order.txt", "small.topo"]
    assert rows(weft, *words) == found


def test_the_example_of_the_guide_is_good(tmp_path: Path) -> None:
    """The TOML of docs/topologies.md, one on a file of that name."""
    guide = (Path(__file__).parent.parent / "docs" / "topologies.md").read_text()
    graph, text = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "graph.toml").write_text(graph)
    (run,) = inputs.from_file(tmp_path / "graph.toml").runs
    assert run["experiment"]["fabric"]["links"][1] == "1 2 200Gbps 2us"
    (tmp_path / "leaf-spine-16-16-256.txt").write_text(IN_ORDER)
    (tmp_path / "guide.toml").write_text(text)
    (run,) = inputs.from_file(tmp_path / "guide.toml").runs
    assert run["experiment"]["fabric"]["topology"] == "clos"
    assert run["experiment"]["fabric"]["server"]["gpus"] == 2


def real() -> list[Path]:
    """The files that lie beside the repository."""
    patterns = ("uec_htsim/*.topo", "astra_sim/network/htsim/*.topo", "ethereal/leaf-spine*.txt")
    return sorted(path for pattern in patterns for path in SHARED.glob(pattern))


def test_real_files_are_described_and_run(weft: Weft) -> None:
    """All of them described, the small ones run."""
    if not real():
        pytest.skip(f"no files in {SHARED}")
    for path in real():
        found = topology_info.info(path)
        assert found["problems"] == [], path
        assert topology_info.text(found).startswith(path.name)
        if found["hosts"] > 300:
            continue
        words = ("compare", "--fabric", path, "--schemes", "ecmp,spray", "--workload")
        for row in rows(weft, *words, "all-reduce:algorithm=recursive-doubling,size=64KB"):
            assert row["ranks"] == found["hosts"]
            assert row["slowdown"] >= 1


@pytest.mark.parametrize(
    ("fabric", "workload", "more", "said"),
    [
        ("rail-only:rails=2,hosts_per_leaf=4", "all-reduce:size=1MB,ranks=4", "load=0.2", "rails"),
        (
            "leaf-spine:leaves=4,spines=2,hosts=4,server.gpus=2,server.nics=2,server.rails=true,"
            "server.pxn=true",
            "all-to-all:size=1MB,algorithm=direct,ranks=8",
            "load=0.2",
            "fabric.server.pxn",
        ),
        (
            "rail-only:rails=2,hosts_per_leaf=2",
            "all-reduce:size=1MB,algorithm=sharp,ranks=3",
            None,
            "rails that never meet",
        ),
    ],
)
def test_what_cannot_cross_rails_takes_one_line(
    weft: Weft, fabric: str, workload: str, more: str | None, said: str
) -> None:
    """Messages beside a job whose GPUs pass on its own; trees over servers filled in part."""
    words = ("--fabric", fabric, "--workload", workload, "--schemes", "ecmp")
    beside = ("--background", f"{more},size=64KB") if more else ()
    done = weft("compare", *words, *beside)
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error:")
    assert said in line
