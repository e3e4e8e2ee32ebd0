"""Large jobs: how long they take and how much memory, each in a process of its own.

One record a case in bench/records/large: date, commit, command, machine, what was run, and what
it took, by packets and with `--fidelity fast`, where that skips any. A case is a command line of
`weft compare` or `weft run`, so anybody can repeat it without this file. What takes half an hour by
packets goes by packets only if it is named, or with --all.
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

ROOT = Path(__file__).parent.parent
FOLDER = Path(__file__).parent / "records" / "large"
TRAINING = "experiments/training"
# Every message a queue pair of its own, all in turn, as in Ethereal (2025).
NIC = "nic.mtu=9000B,nic.serve=round-robin"
PODS = f"fat-tree:k=32,link=400Gbps,delay=500ns,{NIC}"
RACKS = f"leaf-spine:leaves=64,spines=64,hosts=64,link=400Gbps,delay=500ns,{NIC}"


def collective(fabric: str, workload: str) -> list[str]:
    """One collective under Ethereal."""
    words = ["--fabric", fabric, "--workload", workload, "--schemes", "ethereal"]
    return ["compare", *words]


def training(name: str, whole: str, scheme: str) -> list[str]:
    """One iteration of experiments/training, whole, under one of its schemes."""
    chosen = ["--set", f"workload.{whole}", "--set", f"balance.scheme={scheme}"]
    return ["run", f"{TRAINING}/{name}.toml", *chosen]


CASES = {
    "recursive-doubling-8192": collective(
        PODS, "all-reduce:algorithm=recursive-doubling,size=64MB"
    ),
    "ring-4096": collective(RACKS, "all-reduce:algorithm=ring,size=64MB"),
    "all-to-all-1024": collective(RACKS, "all-to-all:algorithm=direct,size=16MB,ranks=1024"),
    "gpt-13b": training("gpt-13b", "layers=40", "ethereal"),
    "gpt-13b-ecmp": training("gpt-13b", "layers=40", "ecmp"),
    "gpt-175b-simai": training("gpt-175b-simai", "ranks=1024", "ethereal"),
    "mixtral-8x7b": training("mixtral-8x7b", "layers=32", "ethereal"),
    "mixtral-8x7b-ecmp": training("mixtral-8x7b", "layers=32", "ecmp"),
}
# Half an hour of a core by packets, and the same work as that of a case above.
LONG = {
    "gpt-175b-simai-ecmp": training("gpt-175b-simai", "ranks=1024", "ecmp"),
    "ring-8192": collective(PODS, "all-reduce:algorithm=ring,size=64MB"),
}
# Of these, what `fast` does in seconds.
QUICK = "ring-8192"


def main() -> int:
    """Run the cases that were named, or all, and keep a record of each; returns the status."""
    known = CASES | LONG
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = f"default: all but {', '.join(LONG)}; {QUICK} only fast"
    options.add_argument("cases", nargs="*", help=f"of {', '.join(known)}; {default}")
    options.add_argument("--all", action="store_true", help=f"also {', '.join(LONG)}")
    given = options.parse_args()
    names = given.cases or list(known if given.all else [*CASES, QUICK])
    for name in names:
        if name not in known:
            print(f"error: {name} is no case; use one of {', '.join(known)}", file=sys.stderr)
            return 2
    for name in names:
        fast = measure(known[name], "fast")
        is_skipped = fast["skipped_pct"] > 0
        if is_skipped:
            say(name, "fast", fast)
            record.keep(FOLDER, fast, f"{name}-fast")
        if name in CASES or given.cases or given.all:
            packet = measure(known[name], "packet") if is_skipped else fast
            say(name, "packet", packet)
            record.keep(FOLDER, packet, name)
    return 0


def say(name: str, fidelity: str, measured: dict[str, Any]) -> None:
    """A line of the table."""
    print(
        f"{name:<26} {fidelity:<6} {measured['wall_s']:8.1f} s  "
        f"{measured['user_s']:8.1f} s of one core  {measured['peak_bytes'] / 1e6:8.0f} MB  "
        f"{measured['packet_hops'] / 1e6:8.0f} M hops  slowdown {measured['slowdown']:.3f}",
        flush=True,
    )


def measure(words: list[str], fidelity: str) -> dict[str, Any]:
    """One command of Weft on one core."""
    words = [*words, "--fidelity", fidelity]
    command = [sys.executable, "-m", "weft", *words, "--threads", "1", "--json", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(process.returncode)
    (row,) = json.loads(text)
    wanted = ("cct_s", "bound_s", "slowdown", "messages", "packet_hops", "skipped_pct", "max_qps")
    measured = {key: row[key] for key in (*wanted, "wall_s")}
    # The system counts in KiB.
    origin = record.origin_of(["weft", *words])
    own = {"user_s": round(usage.ru_utime, 1), "peak_bytes": usage.ru_maxrss * 1024}
    return origin | own | measured


if __name__ == "__main__":
    sys.exit(main())
