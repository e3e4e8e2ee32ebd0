"""The NCCL plugin beside plain sockets, on one machine: `weft bench-net` with each, in turn.

Ways: the plugin without a plan, the same encrypted, and sockets whose bytes the asking thread
moves. Each has its wall time and its processor time (all ranks, less what a run of eight bytes
takes). Ranks talk over loopback, or half of them are in a network namespace of its own each, with
a veth pair between (`--link veth`, root). One record in bench/records/sockets; from one over
loopback and one over veth the table of docs/nccl.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import record

from weft.testbed import system

RECORDS = Path(__file__).parent / "records" / "sockets"
OPERATIONS = {"all-reduce": "512KiB", "sendrecv": "128KiB", "all-to-all": "128KiB"}
"""Longest messages of each, as NCCL has them."""
RUNS = {"64KiB": 2000, "1MiB": 400, "64MiB": 12, "256MiB": 4}
"""Timed runs of each size."""
WAYS: dict[str, tuple[list[str], Mapping[str, str]]] = {
    "plugin": ([], {}),
    "encrypted": ([], {"WEFT_ENCRYPT": "1"}),
    # One a channel, as NCCL's own.
    "sockets": (["--over", "sockets", "--connections", "1"], {}),
}
SIDES = ("left", "right")
"""The namespaces at the ends of the veth pair."""


def main() -> int:
    """Measure, print, and keep a record if asked; returns the exit status."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=5, help="of all ways in turn")
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--link", choices=["loopback", "veth"], default="loopback")
    options.add_argument("--keep", action="store_true", help="keep the record in bench/records")
    options.add_argument("--table", type=Path, nargs="+", help="print the table of these records")
    arguments = options.parse_args()
    if arguments.table is not None:
        print(table([json.loads(path.read_text())["rows"] for path in arguments.table]))
        return 0
    link = arguments.link
    words = ["--rounds", str(arguments.rounds), "--ranks", str(arguments.ranks), "--link", link]
    origin = record.origin_of(["bench/sockets.py", *words])
    origin["load_before"] = os.getloadavg()[0]
    # Plain sockets have it.
    origin["tcp_congestion"] = record.tcp_congestion()
    ranks = Ranks(arguments.ranks, link)
    if link == "veth":
        make_veth()
    rows = [
        measure(operation, size, arguments.rounds, ranks)
        for operation in OPERATIONS
        for size in RUNS
    ]
    print(table([rows]))
    if arguments.keep:
        record.keep(RECORDS, origin | {"rows": rows})
    return 0


@dataclass(frozen=True)
class Ranks:
    """How many there are, and over what they talk."""

    count: int
    link: str

    def run(self, command: Sequence[str], variables: Mapping[str, str]) -> str:
        """Run a command of all ranks; what the first one prints."""
        if self.link == "loopback":
            return together([command], variables)
        return together(self._apart(command), {"WEFT_IFNAME": "=veth0", **variables})

    def _apart(self, command: Sequence[str]) -> list[list[str]]:
        """The command of each rank: the first half of them is at one end of the veth pair."""
        inside = ["ip", "netns", "exec"]
        meeting = ["--rendezvous", "10.0.0.1:29500"]
        return [
            [
                *inside,
                SIDES[rank * len(SIDES) // self.count],
                *command,
                *meeting,
                "--rank",
                str(rank),
            ]
            for rank in range(self.count)
        ]


def make_veth() -> None:
    """Two namespaces with a veth pair between, which go with this process."""
    system.require()
    system.hide_namespaces()
    left, right = SIDES
    pair = f"link add veth0 netns {left} type veth peer name veth0 netns {right}"
    system.batch("ip", [f"netns add {left}", f"netns add {right}", pair])
    for number, side in enumerate(SIDES, start=1):
        up = ["link set lo up", "link set veth0 up", f"address add 10.0.0.{number}/24 dev veth0"]
        system.batch("ip", up, side)


def measure(operation: str, size: str, rounds: int, ranks: Ranks) -> dict[str, Any]:
    """All ways in turn: seconds of a run, and processor seconds a GB, by way."""
    row: dict[str, Any] = {"operation": operation, "size": size}
    for way in WAYS:
        row[way] = {"seconds": [], "processor_s_per_gb": []}
    for _ in range(rounds):
        for way in WAYS:
            _, start_up = once(way, operation, "8", 1, ranks)
            timed, spent = once(way, operation, size, RUNS[size], ranks)
            # Two untimed runs before the others.
            gigabytes = timed["size_bytes"] * (RUNS[size] + 2) / 1e9
            row[way]["seconds"].append(timed["time_s"])
            row[way]["processor_s_per_gb"].append((spent - start_up) / gigabytes)
    print(operation, size, *(f"{way} {best(row, way):.6f} s" for way in WAYS), flush=True)
    return row


def once(
    way: str, operation: str, size: str, runs: int, ranks: Ranks
) -> tuple[dict[str, Any], float]:
    """A row of `weft bench-net`, and the processor time of all its processes in seconds."""
    options, variables = WAYS[way]
    command = [sys.executable, "-m", "weft", "bench-net", "--json", "--op", operation, *options]
    command += ["--chunk", OPERATIONS[operation], "--ranks", str(ranks.count)]
    command += ["-b", size, "-e", size, "-n", str(runs), "-w", "2", "-c", "0"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = ranks.run(command, variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(said)["rows"][0], spent


def together(commands: Sequence[Sequence[str]], variables: Mapping[str, str]) -> str:
    """Run all at once; what the first one prints."""
    processes = [
        subprocess.Popen(
            command, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for command in commands
    ]
    said = [process.communicate() for process in processes]
    for process, (_, why) in zip(processes, said, strict=True):
        if process.returncode != 0:
            raise SystemExit(why.decode())
    return said[0][0].decode()


def best(row: Mapping[str, Any], way: str) -> float:
    """The best time of a way."""
    return min(map(float, row[way]["seconds"]))


def table(records: list[list[dict[str, Any]]]) -> str:
    """Best times, and medians of processor time over those of sockets, of each record's rows."""
    heads = ["plugin | sockets | CPU | encrypted"] * len(records)
    lines = [f"| | size | {' | '.join(heads)} |", "|---" * (2 + 4 * len(records)) + "|"]
    for rows in zip(*records, strict=True):
        cells = [rows[0]["operation"], rows[0]["size"]]
        for row in rows:
            plugin, sockets, encrypted = (
                f"{1e6 * best(row, way):,.0f} us" for way in ("plugin", "sockets", "encrypted")
            )
            spent, least = (
                statistics.median(row[way]["processor_s_per_gb"]) for way in ("plugin", "sockets")
            )
            cells += [plugin, sockets, f"{spent / least:.2f}", encrypted]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
