"""Large jobs: how long they take and how much memory, each in a process of its own.

One record a case in bench/records/large: date, commit, command, machine, what was run, and what
it took. A case is a command line of `weft compare`, so anybody can repeat it without this file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import record

FOLDER = Path(__file__).parent / "records" / "large"
# Every message a queue pair of its own, all in turn, as in Ethereal (2025).
NIC = "nic.mtu=9000B,nic.serve=round-robin"
PODS = f"fat-tree:k=32,link=400Gbps,delay=500ns,{NIC}"
RACKS = f"leaf-spine:leaves=64,spines=64,hosts=64,link=400Gbps,delay=500ns,{NIC}"
CASES = {
    "ring-8192": (PODS, "all-reduce:algorithm=ring,size=64MB"),
    "recursive-doubling-8192": (PODS, "all-reduce:algorithm=recursive-doubling,size=64MB"),
    "ring-4096": (RACKS, "all-reduce:algorithm=ring,size=64MB"),
    "all-to-all-1024": (RACKS, "all-to-all:algorithm=direct,size=16MB,ranks=1024"),
}


def main() -> int:
    """Run the cases that were named, or all, and keep a record of each; returns the status."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; default: all")
    names = options.parse_args().cases or list(CASES)
    for name in names:
        if name not in CASES:
            print(f"error: {name} is no case; use one of {', '.join(CASES)}", file=sys.stderr)
            return 2
    for name in names:
        measured = measure(name)
        print(
            f"{name:<26} {measured['wall_s']:8.1f} s  {measured['user_s']:8.1f} s of one core  "
            f"{measured['peak_bytes'] / 1e6:8.0f} MB  "
            f"{measured['packet_hops'] / 1e6:8.0f} M hops  slowdown {measured['slowdown']:.3f}",
            flush=True,
        )
        keep(name, measured)
    return 0


def measure(name: str) -> dict[str, Any]:
    """One case on one core."""
    fabric, workload = CASES[name]
    words = ["compare", "--fabric", fabric, "--workload", workload, "--schemes", "ethereal"]
    command = [sys.executable, "-m", "weft", *words, "--threads", "1", "--json", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(process.returncode)
    (row,) = json.loads(text)
    wanted = ("cct_s", "bound_s", "slowdown", "messages", "packet_hops", "max_qps", "wall_s")
    measured = {key: row[key] for key in wanted}
    # The system counts in KiB.
    origin = record.origin_of(["weft", *words])
    own = {"user_s": round(usage.ru_utime, 1), "peak_bytes": usage.ru_maxrss * 1024}
    return origin | own | measured


def keep(name: str, measured: dict[str, Any]) -> None:
    """Write the record."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{measured['date']}-{measured['commit'][:10]}-{name}.json"
    path.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
