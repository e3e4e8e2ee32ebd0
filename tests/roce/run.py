"""RoCE without RDMA hardware: boots a machine with Soft-RoCE, runs Weft's verbs back end in it.

    python tests/roce/run.py

Exits with 0 if all is well, 1 if not, 77 if something is missing here that it needs.
"""

from __future__ import annotations

import sys
import time

import guest
import packages
import programs

CACHE = programs.TOP / "target/roce-test"
OUT = programs.TOP / "out/roce-test"


def main() -> int:
    """Build, boot, judge."""
    start = time.monotonic()
    OUT.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        root = packages.unpack(CACHE)
        tools = programs.build("-p", "weft-verbs", "--examples")
        guest.build(root, tools, [], CACHE / "initramfs")
        print(f"built after {time.monotonic() - start:.0f} s")
        said = guest.boot(root, CACHE / "initramfs", OUT / "guest.log", 60)
    except packages.Missing as missing:
        print(f"skipped: {missing}")
        return 77
    print(said)
    print(f"done after {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
