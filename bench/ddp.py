"""Stock PyTorch trains a model on a test bed: over Weft, and over what it brings itself.

Two leaves, four spines, four hosts, 100 Mbps a link between leaves and spines, made of network
namespaces (`docs/testbed.md`). Each way to talk has four processes, which wait while it is not
their turn: `gloo` is PyTorch's own back end, `weft ecmp` has four connections a pair from ports
that the kernel picks, and switches hash both; `weft ethereal` plans, and leaves follow its source
ports. With `--gpu PLUGIN` the model is on a GPU that all ranks share, and NCCL carries gradients:
`sockets`, its own, instead of Gloo, and the plugin instead of `weft.torch`. In every round the
switches hash under another seed, and each way trains for as many iterations. In the end all have
seen the same samples, so parameters can be compared.

Needs root, PyTorch and iproute2: `make torch-test`. One record in bench/records/ddp.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import record

from weft import cluster as clusters
from weft.cluster import Cluster
from weft.testbed import counters, layout, system
from weft.testbed.bed import Bed

RECORDS = Path(__file__).parent / "records" / "ddp"
UPLINK_BPS, SPINES, HOSTS = 100e6, 4, 4
CLUSTER = f"""
[fabric]
topology = "leaf-spine"
leaves = 2
spines = {SPINES}
hosts_per_leaf = {HOSTS // 2}
link = "10Gbps"
uplink = "100Mbps"
delay = "5us"
[fabric.nic]
mtu = "4096B"
[cluster]
protocol = "tcp"
"""
WIDTH = 1024
SAMPLES = 8
WARM_UP = 2


@dataclass
class Way:
    """A way to talk, and what it was measured to be."""

    name: str
    backend: str
    follows_ports: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)


ECMP = {"WEFT_SCHEME": "ecmp", "WEFT_CONNECTIONS": "4"}
ETHEREAL = {"WEFT_SCHEME": "ethereal"}


def ways(plugin: Path | None) -> list[Way]:
    """What is compared; the first is what others bring."""
    if plugin is None:
        return [
            Way("gloo", "gloo"),
            Way("weft ecmp", "weft", variables=ECMP),
            Way("weft ethereal", "weft", True, ETHEREAL),
        ]
    # As many connections for all. Rings, for which the bound is.
    sockets = {"NCCL_NET_PLUGIN": "none", "NCCL_NET": "Socket", "NCCL_NSOCKS_PERTHREAD": "4"}
    ours = {"NCCL_NET_PLUGIN": str(plugin.resolve()), "NCCL_NET": "Weft"}
    return [
        Way("sockets", "nccl", variables=NCCL | sockets),
        Way("weft ecmp", "nccl", variables=NCCL | ours | ECMP),
        Way("weft ethereal", "nccl", True, NCCL | ours | ETHEREAL),
    ]


NCCL = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_MULTI_RANK_GPU_ENABLE": "1",
    "NCCL_ALGO": "Ring",
}
"""Ranks on one GPU talk over the network."""


def main() -> int:
    """Measure, print, and keep a record if asked; returns the exit status."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=6, help="hash seeds")
    options.add_argument("--iterations", type=int, default=6, help="of each way in each round")
    options.add_argument("--keep", action="store_true", help="keep the record in bench/records")
    options.add_argument(
        "--gpu", type=Path, metavar="PLUGIN", help="NCCL on a GPU, over this plugin"
    )
    arguments = options.parse_args()
    lacks = system.missing()
    if lacks:
        print(f"error: ddp: {lacks}", file=sys.stderr)
        return 2
    words = ["--rounds", str(arguments.rounds), "--iterations", str(arguments.iterations)]
    origin = record.origin_of(["bench/ddp.py", *words])
    # Ranks go ahead of other work, but what there is of it shows in the times.
    origin["load_before"] = os.getloadavg()[0]
    if arguments.gpu is not None:
        words += ["--gpu", "PLUGIN"]
    measured = measure(ways(arguments.gpu), arguments.rounds, arguments.iterations)
    show(measured)
    if arguments.keep:
        record.keep(RECORDS, origin | measured)
    return 0 if measured["agree"] and measured["faster"] else 1


def measure(ways: list[Way], rounds: int, iterations: int) -> dict[str, Any]:
    """All rounds of all ways on one bed."""
    # From here on names of namespaces are this process's and its children's own.
    system.hide_namespaces()
    folder = Path(tempfile.mkdtemp(dir="/run"))
    file = folder / "cluster.toml"
    file.write_text(CLUSTER)
    cluster = clusters.read(file)
    bed = Bed(cluster)
    bed.build(1)
    try:
        gradient = 0
        for way in ways:
            bed.enforce("segments", "tcp")
            gradient = begin(way, cluster, folder)
        for number in range(rounds):
            for way in ways:
                way.rounds.append(one_round(way, bed, number + 1, iterations))
                seconds = statistics.fmean(way.rounds[-1]["seconds"])
                print(f"seed {number + 1}: {way.name:<14} {seconds:.3f} s", flush=True)
        return compare(ways, folder, gradient)
    finally:
        for process in (one for way in ways for one in way.processes):
            process.kill()


def begin(way: Way, cluster: Cluster, folder: Path) -> int:
    """Start the ranks of a way and wait until they have met; bytes of gradients."""
    ports = layout.ports(cluster)
    for rank, host in enumerate(cluster.hosts):
        job = {
            "backend": way.backend,
            "namespace": host.node,
            "rank": rank,
            "ranks": HOSTS,
            "meeting": str(folder / way.name.replace(" ", "-")),
            "width": WIDTH,
            "samples": SAMPLES,
            "variables": {
                "GLOO_SOCKET_IFNAME": ports[host.node][0].name,
                "NCCL_SOCKET_IFNAME": f"={ports[host.node][0].name}",
                # Without it ranks with one GPU are refused, before NCCL 2.30.
                "NCCL_HOSTID": host.node,
                "WEFT_CONFIG": str(folder / "cluster.toml"),
                **way.variables,
            },
        }
        command = [sys.executable, str(Path(__file__).parent / "ddp_rank.py")]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        way.processes.append(process)
        tell(process, json.dumps(job))
    return int(answers(way)[0]["gradient_bytes"])


def one_round(way: Way, bed: Bed, seed: int, iterations: int) -> dict[str, Any]:
    """Train for as many iterations while switches hash under a seed."""
    bed.reseed(seed)
    if way.follows_ports:
        bed.enforce("segments", "tcp")
    else:
        bed.hash_all()
    for process in way.processes:
        tell(process, f"train {WARM_UP}")
    answers(way)
    before = counters.read(bed.cluster, bed.prefix)
    for process in way.processes:
        tell(process, f"train {iterations}")
    # An iteration is over when its last rank is.
    seconds = [max(each) for each in zip(*(one["seconds"] for one in answers(way)), strict=True)]
    time.sleep(0.2)
    links = counters.between(before, counters.read(bed.cluster, bed.prefix))
    up = {f"{link.sender} {link.receiver}": link.bytes for link in links if link.up}
    return {"seed": seed, "seconds": seconds, "uplink_bytes": up}


def compare(ways: list[Way], folder: Path, gradient: int) -> dict[str, Any]:
    """Times and parameters of all ways, side by side."""
    import torch

    last, found = {}, {}
    for way in ways:
        file = folder / f"{way.name}.pt".replace(" ", "-")
        for process in way.processes:
            tell(process, f"save {file}")
        differ = [one["differ"] for one in answers(way)]
        last[way.name] = torch.load(file)
        seconds = [one for each in way.rounds for one in each["seconds"]]
        found[way.name] = {
            "mean_s": statistics.fmean(seconds),
            "median_s": statistics.median(seconds),
            "best_s": min(seconds),
            "worst_s": max(seconds),
            "ranks_differ_in": max(differ),
            "rounds": way.rounds,
        }
    first = ways[0].name
    reference = last[first]
    for name, parameters in last.items():
        found[name] |= {
            f"differs_from_{first}_in": int((parameters != reference).sum()),
            f"most_from_{first}": float((parameters - reference).abs().max()),
        }
    # A ring of four sends each byte of three quarters of it twice, over all links between leaves.
    bound = 2 * (HOSTS - 1) / HOSTS * gradient * 8 / (UPLINK_BPS * SPINES)
    same = torch.equal(last["weft ecmp"], last["weft ethereal"])
    close = all(torch.allclose(one, reference, rtol=1e-4, atol=1e-5) for one in last.values())
    weft, other = found["weft ethereal"]["mean_s"], found[first]["mean_s"]
    return {
        "torch": torch.__version__,
        "cluster": CLUSTER,
        "gradient_bytes": gradient,
        "parameters": reference.numel(),
        "bound_s": bound,
        "ways": found,
        "schemes_of_weft_agree_bitwise": same,
        "agree": same and close and not any(one["ranks_differ_in"] for one in found.values()),
        f"{first}_over_weft": other / weft,
        "faster": weft < other,
    }


def show(measured: dict[str, Any]) -> None:
    """The result, for people."""
    print(
        f"{measured['gradient_bytes'] / 1e6:.1f} MB of gradients, {HOSTS} ranks; a ring takes "
        f"{measured['bound_s']:.3f} s if all uplinks are full"
    )
    first = next(iter(measured["ways"]))
    print(
        f"{'':<14} {'mean':>8} {'median':>8} {'best':>8} {'worst':>8}   from {first}'s parameters"
    )
    for name, way in measured["ways"].items():
        times = " ".join(f"{way[key]:8.3f}" for key in ("mean_s", "median_s", "best_s", "worst_s"))
        most = way[f"most_from_{first}"]
        where = f"{way[f'differs_from_{first}_in']} differ, at most {most:.1e}"
        print(f"{name:<14} {times}   {where}")
    print(f"weft ethereal is {measured[f'{first}_over_weft']:.2f} times as fast as {first}")
    print(f"parameters agree: {measured['agree']}")


def tell(process: subprocess.Popen[str], line: str) -> None:
    """Send a line to a rank."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def answers(way: Way) -> list[dict[str, Any]]:
    """A line of each rank."""
    found = []
    for rank, process in enumerate(way.processes):
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"error: ddp: {way.name}: rank {rank} has ended; see above")
        found.append(json.loads(line))
    return found


if __name__ == "__main__":
    sys.exit(main())
