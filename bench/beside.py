"""Runs other simulators and Weft on the same input files, and prints time and memory of both.

The other simulators are yours: give the program of each that you have; without any, Weft runs
alone.
Inputs are written into a folder that stays for you to look at; what each side models is in
docs/evidence/speed.md, whose table of commands is printed by `--table` from a record.

    python bench/beside.py --htsim ~/uet-htsim/htsim_uec --loggopsim ~/LogGOPSim/LogGOPSim
    make beside OTHERS="--htsim ~/uet-htsim/htsim_uec"
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import record

RECORDS = Path(__file__).parent / "records" / "beside"
ONE = "--seeds 1 --threads 1 --json -q"
"""Of the command line of Weft: one run on one core."""
WEFT = (sys.executable, "-m", "weft")

TOPOLOGY = """\
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


LAYERS = """\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 64 \
checkpoints: 0 checkpoint_initiates: 0
{count}
"""
LAYER = (
    "attention_layer -1 400000 ALLREDUCE 67108864 1 NONE 0 400000 NONE 0 100\n"
    "mlp_layer -1 600000 ALLREDUCE 67108864 1 NONE 0 600000 NONE 0 100\n"
)
GRADIENTS = "grad_norm -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 268435456 100\n"
"""A transformer of four layers in the words of SimAI."""
BUS_BANDWIDTHS = """\
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
        "4 layers of a transformer as text, 64 ranks",
        "simai",
        "{program} -w layers.txt -g 64 -g_p_s 8 -r layers- -busbw busbw.yaml",
        f"run layers.txt --schemes ecmp {ONE}",
    ),
)
WRITTEN = (
    ("permutation:size=2MB", 128, "perm128.cm"),
    ("permutation:size=2MB", 1024, "perm1024.cm"),
    ("all-to-all:size=1MB", 64, "all-to-all.bin"),
    ("all-reduce:size=64MB,algorithm=ring", 16, "ring.et"),
)


@dataclass(frozen=True)
class Measured:
    """One process: seconds of wall clock and of processors, and the most memory that it had."""

    command: str
    seconds: float
    processor_s: float
    peak_bytes: int
    status: int


def main(words: Sequence[str]) -> int:
    """Run what there is; returns the exit status."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in dict.fromkeys(case.simulator for case in CASES):
        options.add_argument(f"--{name}", metavar="PROGRAM", type=Path, help=f"{name}'s program")
    options.add_argument("--folder", type=Path, default=Path("out/beside"), help="of the inputs")
    options.add_argument("--keep", action="store_true", help="keep a record in bench/records")
    options.add_argument("--table", type=Path, metavar="RECORD", help="print the table of a record")
    given = vars(options.parse_args(words))
    folder, keep, shown = (given.pop(name) for name in ("folder", "keep", "table"))
    if shown is not None:
        print(table(json.loads(shown.read_text())["rows"]))
        return 0
    programs = {name.replace("_", "-"): path.resolve() for name, path in given.items() if path}
    for name, path in programs.items():
        if not os.access(path, os.X_OK):
            options.error(f"--{name} {path}: is no program")
    origin = record.origin_of(["bench/beside.py", *words])
    origin["load_before"] = os.getloadavg()[0]
    write_inputs(folder)
    chosen = [case for case in CASES if not programs or case.simulator in programs]
    rows = [row for case in chosen for row in both(case, programs, folder)]
    (folder / "beside.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"kept in {folder / 'beside.json'}")
    if keep:
        RECORDS.mkdir(parents=True, exist_ok=True)
        path = RECORDS / f"{origin['date']}-{origin['commit'][:10]}.json"
        path.write_text(json.dumps(origin | {"rows": rows}, indent=1) + "\n")
        print(f"kept as {path.relative_to(RECORDS.parents[2])}")
    return max((int(row["status"] != 0) for row in rows), default=0)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The commands of both sides, and what Weft took, as docs/evidence/speed.md has them."""
    lines = ["| input | the other side | Weft | s | MB |", "|---|---|---|---|---|"]
    ours = {row["case"]: row for row in rows if row["simulator"] == "weft"}
    for case in CASES:
        row = ours[case.name]
        theirs = case.other.replace("{program}", case.simulator)
        took = f"{row['seconds']:.1f} | {row['peak_bytes'] / 1e6:.0f}"
        lines.append(f"| {case.name} | `{theirs}` | `weft {case.weft}` | {took} |")
    return "\n".join(lines)


def write_inputs(folder: Path) -> None:
    """Write the files that both sides read."""
    folder.mkdir(parents=True, exist_ok=True)
    for hosts in (128, 1024):
        text = TOPOLOGY.format(hosts=hosts, leaves=hosts // 16)
        (folder / f"leaf-spine-{hosts}.topo").write_text(text)
    for workload, ranks, name in WRITTEN:
        words = ("trace", "convert", workload, "--ranks", str(ranks), "-o", name)
        subprocess.run([*WEFT, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (folder / "layers.txt").write_text(LAYERS.format(count=9) + GRADIENTS + 4 * LAYER)
    (folder / "busbw.yaml").write_text(BUS_BANDWIDTHS)
    ring = {"all-reduce-implementation": ["ring"], "scheduling-policy": "LIFO"}
    whole = {"endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1}
    (folder / "system.json").write_text(json.dumps(ring | whole, indent=1) + "\n")
    (folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}\n')
    (folder / "network.yml").write_text(
        "topology: [ Switch ]\nnpus_count: [ 16 ]\nbandwidth: [ 50.0 ]\nlatency: [ 1000.0 ]\n"
    )


def both(case: Case, programs: dict[str, Path], folder: Path) -> list[dict[str, object]]:
    """Run the sides of a case that are there, one after the other, and print a line for each."""
    print(case.name)
    sides = [("weft", [*WEFT, *shlex.split(case.weft)])]
    if program := programs.get(case.simulator):
        theirs = shlex.split(case.other.format(program=shlex.quote(str(program))))
        sides.insert(0, (case.simulator, theirs))
    rows: list[dict[str, object]] = []
    for name, command in sides:
        found = measure(command, folder)
        said = "" if found.status == 0 else f"  exit status {found.status}: its time says nothing"
        print(
            f"  {name:10s} {found.seconds:9.2f} s {found.processor_s:9.2f} s of processors "
            f"{found.peak_bytes / 1e6:9.1f} MB{said}"
        )
        rows.append({"case": case.name, "simulator": name, **asdict(found)})
    return rows


def measure(command: Sequence[str], folder: Path) -> Measured:
    """Run a command in a folder; what it prints goes to a file beside the inputs."""
    began = time.monotonic()
    with (folder / "output.txt").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        # Of this child alone, which `subprocess` does not tell.
        _, status, used = os.wait4(process.pid, 0)
    return Measured(
        command=shlex.join(command),
        seconds=time.monotonic() - began,
        processor_s=used.ru_utime + used.ru_stime,
        peak_bytes=used.ru_maxrss * 1024,
        status=os.waitstatus_to_exitcode(status),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
