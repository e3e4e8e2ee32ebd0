"""RoCE without RDMA hardware: boots a machine with Soft-RoCE, runs Weft's verbs back end in it.

    python tests/roce/run.py

What the machine says is kept in out/roce-test/guest.log. Exits with 0 if all is well, 1 if not, 77
if something is missing here that it needs.
"""

from __future__ import annotations

import sys
import time

import guest
import packages
import packets
import programs
from judge import judge

CACHE = programs.TOP / "target/roce-test"
OUT = programs.TOP / "out/roce-test"
MOST_SECONDS = 240


def main() -> int:
    """Build, boot, judge."""
    start = time.monotonic()
    OUT.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        root = packages.unpack(CACHE)
        guest.build(root, programs.build(CACHE), CACHE / "initramfs")
        built = time.monotonic()
        said = guest.boot(root, CACHE / "initramfs", OUT / "guest.log", MOST_SECONDS)
    except packages.Missing as missing:
        print(f"skipped: {missing}")
        return 77
    end = time.monotonic()
    show(said)
    wrong = judge(said)
    for line in wrong:
        print(f"wrong: {line}")
    log = (OUT / "guest.log").relative_to(programs.TOP)
    print(f"built in {built - start:.0f} s, ran in {end - built:.0f} s; log: {log}")
    print("RoCE: " + ("not as it should be" if wrong else "all is well"))
    return 1 if wrong else 0


def show(said: str) -> None:
    """Print what the wire carried, by stage and receiving queue pair."""
    print(f"{'stage':10} {'from':10} {'kind':7} {'queue pair':>10} {'port':>6} {'link':5} packets")
    for p in packets.read(said):
        if p.interface != "south":
            print(
                f"{p.stage:10} {p.source:10} {p.kind:7} {p.queue_pair:10} {p.port:6} "
                f"{p.interface:5} {p.count:7}"
            )


if __name__ == "__main__":
    sys.exit(main())
