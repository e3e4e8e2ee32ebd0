"""What `make beside` runs: for each case the input files, and the command of each side.

Both sides read the same files. Analytical simulators know no links: there Weft runs on a fabric
of its own.
No command line of another simulator has been run against that simulator here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

WEFT = (sys.executable, "-m", "weft")
ONE = "--seeds 1 --threads 1 --json -q"
"""Of the command line of Weft: one run on one core."""


@dataclass(frozen=True)
class Case:
    """One input, and the command of each side for it; `{program}` is the other simulator's."""

    name: str
    simulator: str
    other: str
    weft: str


# Arguments as the programs' own help has them: -end of htsim is in microseconds.
CASES = (
    *(
        Case(
            f"permutation of 2 MB, {hosts} hosts",
            "htsim",
            f"{{program}} -tm perm{hosts}.cm -topo leaf-spine-{hosts}.topo -end 100000 -seed 1",
            f"run perm{hosts}.cm --fabric leaf-spine-{hosts}.topo --schemes reps {ONE}",
        )
        for hosts in (128, 1024)
    ),
    Case(
        "all-to-all of 1 MB as GOAL, 64 ranks",
        "loggopsim",
        "{program} -f all-to-all.bin",
        f"run all-to-all.bin --schemes ecmp {ONE}",
    ),
    Case(
        "ring all-reduce of 64 MB as Chakra, 16 ranks",
        "astra-sim",
        "{program} --workload-configuration=ring --system-configuration=system.json"
        " --network-configuration=network.yml --remote-memory-configuration=memory.json",
        f"run ring.0.et --schemes ecmp {ONE}",
    ),
    Case(
        "gradients of 8 layers as text, 16 ranks",
        "astra-sim-1",
        "{program} --workload-configuration=data.txt --system-configuration=system.txt"
        " --network-configuration=switch.json --path=astra-sim-1/ --run-name=data"
        " --num-passes=1 --total-stat-rows=1 --stat-row=0",
        f"run data.txt --set workload.ranks=16 --set workload.time_unit=1ns --schemes ecmp {ONE}",
    ),
    Case(
        "4 layers of a transformer as text, 64 ranks",
        "simai",
        "{program} -w layers.txt -g 64 -g_p_s 8 -r layers- -busbw busbw.yaml",
        f"run layers.txt --schemes ecmp {ONE}",
    ),
    Case(
        "1 layer of a transformer on 8 servers of 8 GPUs",
        "simai-simulator",
        "{program} -t 1 -w layer.txt -n servers.topo -c SimAI.conf",
        f"run layer.txt --fabric servers.topo --schemes ecmp {ONE}",
    ),
)
SIMULATORS = tuple(dict.fromkeys(case.simulator for case in CASES))


def write_inputs(folder: Path, simulator: str) -> None:
    """Write the files of the cases of a simulator, for both sides.

    Raises:
        OSError: A file cannot be written.
        subprocess.CalledProcessError: Weft cannot write a trace.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _WRITERS[simulator](folder)


def _convert(folder: Path, workload: str, ranks: int, name: str) -> None:
    """Have Weft write a trace; in a few seconds."""
    words = ("trace", "convert", workload, "--ranks", str(ranks), "-o", name)
    subprocess.run([*WEFT, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


_TOPO = """\
# A non-blocking leaf-spine of {hosts} hosts, as htsim describes it.
Nodes {hosts}
Tiers 2
Podsize {hosts}
Tier 0
Downlink_speed_Gbps 400
Radix_Down 16
Radix_Up 16
Downlink_Latency_ns 500
Tier 1
Downlink_speed_Gbps 400
Radix_Down {leaves}
Downlink_Latency_ns 500
"""


def _htsim(folder: Path) -> None:
    for hosts in (128, 1024):
        text = _TOPO.format(hosts=hosts, leaves=hosts // 16)
        (folder / f"leaf-spine-{hosts}.topo").write_text(text)
        _convert(folder, "permutation:size=2MB", hosts, f"perm{hosts}.cm")


def _loggopsim(folder: Path) -> None:
    _convert(folder, "all-to-all:size=1MB", 64, "all-to-all.bin")


def _astra_sim(folder: Path) -> None:
    _convert(folder, "all-reduce:size=64MB,algorithm=ring", 16, "ring.et")
    ring = {"all-reduce-implementation": ["ring"], "scheduling-policy": "LIFO"}
    whole = {"endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1}
    (folder / "system.json").write_text(json.dumps(ring | whole, indent=1) + "\n")
    (folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}\n')
    (folder / "network.yml").write_text(
        "topology: [ Switch ]\nnpus_count: [ 16 ]\nbandwidth: [ 50.0 ]\nlatency: [ 1000.0 ]\n"
    )


_SYSTEM = """\
scheduling-policy: LIFO
endpoint-delay: 10
active-chunks-per-dimension: 1
preferred-dataset-splits: 1
boost-mode: 0
all-reduce-implementation: ring
all-gather-implementation: ring
reduce-scatter-implementation: ring
all-to-all-implementation: direct
collective-optimization: baseline
"""


def _astra_sim_1(folder: Path) -> None:
    """Data parallelism: each layer's gradients are reduced while the next is computed.

    Times are cycles of a nanosecond each.
    """
    layer = "layer{} -1 50000 NONE 0 50000 NONE 0 50000 ALLREDUCE 16777216 100\n"
    layers = "".join(layer.format(number) for number in range(8))
    (folder / "data.txt").write_text(f"DATA\n8\n{layers}")
    (folder / "system.txt").write_text(_SYSTEM)
    switch = {
        "topology-name": "Hierarchical",
        "topologies-per-dim": ["Switch"],
        "dimension-type": ["N"],
        "dimensions-count": 1,
        "units-count": [16],
        "links-count": [1],
        "link-latency": [1000],
        "link-bandwidth": [50],
        "nic-latency": [0],
        "router-latency": [0],
        "hbm-latency": [500],
        "hbm-bandwidth": [370],
        "hbm-scale": [0],
    }
    (folder / "switch.json").write_text(json.dumps(switch, indent=1) + "\n")
    (folder / "astra-sim-1").mkdir(exist_ok=True)


def _transformer(layers: int, tensor: int, gradients: int) -> str:
    """A transformer in the words of SimAI: bytes of an all-reduce of tensors, and of gradients."""
    header = (
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 "
        "all_gpus: 64 checkpoints: 0 checkpoint_initiates: 0\n"
    )
    rows = (
        f"attention_layer -1 400000 ALLREDUCE {tensor} 1 NONE 0 400000 NONE 0 100\n"
        f"mlp_layer -1 600000 ALLREDUCE {tensor} 1 NONE 0 600000 NONE 0 100\n"
    )
    last = f"grad_norm -1 1 NONE 0 1 NONE 0 1 ALLREDUCE {gradients} 100\n"
    return f"{header}{2 * layers + 1}\n{last}{layers * rows}"


_BUS_BANDWIDTHS = """\
weft
TP:
allreduce,: 300
allgather,: 280
reducescatter,: 280
alltoall,: 230
DP:
allreduce,: 45
allgather,: 45
reducescatter,: 45
alltoall,: 45
"""


def _simai(folder: Path) -> None:
    (folder / "layers.txt").write_text(_transformer(4, 64 << 20, 256 << 20))
    (folder / "busbw.yaml").write_text(_BUS_BANDWIDTHS)


_CONF = """\
# What Weft does unless told otherwise: DCTCP, go back to the gap, shared buffers with PFC.
ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 4096
CC_MODE 8
DCTCP_RATE_AI 1000Mb/s
MIN_RATE 100Mb/s
RATE_AI 50Mb/s
RATE_HAI 100Mb/s
EWMA_GAIN 0.0625
HAS_WIN 1
GLOBAL_T 0
VAR_WIN 1
RATE_BOUND 1
ACK_HIGH_PRIO 0
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
ERROR_RATE_PER_LINK 0.0000
LINK_DOWN 0 0 0
KMIN_MAP 2 400000000000 260 3600000000000 260
KMAX_MAP 2 400000000000 260 3600000000000 260
PMAX_MAP 2 400000000000 1.0 3600000000000 1.0
BUFFER_SIZE 64
SIMULATOR_STOP_TIME 40000000000000.00
ENABLE_TRACE 0
FLOW_FILE simai-flow.txt
TRACE_FILE simai-trace.txt
TRACE_OUTPUT_FILE simai-trace.tr
FCT_OUTPUT_FILE simai-fct.txt
PFC_OUTPUT_FILE simai-pfc.txt
QLEN_MON_FILE simai-qlen.txt
BW_MON_FILE simai-bw.txt
RATE_MON_FILE simai-rate.txt
CNP_MON_FILE simai-cnp.txt
MON_START 0
MON_END 0
QP_MON_INTERVAL 10000
QLEN_MON_INTERVAL 10000
BW_MON_INTERVAL 10000
"""


def _simai_simulator(folder: Path) -> None:
    (folder / "layer.txt").write_text(_transformer(1, 4 << 20, 16 << 20))
    (folder / "SimAI.conf").write_text(_CONF)
    for name in ("simai-flow.txt", "simai-trace.txt"):
        (folder / name).write_text("0\n")
    (folder / "servers.topo").write_text(servers())


def servers() -> str:
    """Eight servers of eight GPUs, each server at a leaf of its own, under eight spines.

    In SimAI's format: GPUs 0 to 63, an NVSwitch for each server, leaves, spines.
    """
    nvswitches, leaves, spines = range(64, 72), range(72, 80), range(80, 88)
    # To the NVSwitch and back are the 500 ns that Weft has between GPUs unless told.
    links = [(gpu, nvswitches[gpu // 8], "3600Gbps", "0.00025ms") for gpu in range(64)]
    links += [(gpu, leaves[gpu // 8], "400Gbps", "0.0005ms") for gpu in range(64)]
    links += [(leaf, spine, "400Gbps", "0.0005ms") for leaf in leaves for spine in spines]
    switches = " ".join(map(str, range(64, 88)))
    rows = "".join(f"{one} {other} {rate} {delay} 0\n" for one, other, rate, delay in links)
    return f"88 8 8 16 {len(links)} H100\n{switches}\n{rows}"


_WRITERS: Mapping[str, Callable[[Path], None]] = {
    "htsim": _htsim,
    "loggopsim": _loggopsim,
    "astra-sim": _astra_sim,
    "astra-sim-1": _astra_sim_1,
    "simai": _simai,
    "simai-simulator": _simai_simulator,
}
