"""RoCE without RDMA hardware: boots a machine with Soft-RoCE, runs Weft's verbs back end in it.

    python tests/roce/run.py

Exits with 0 if all is well, 1 if not, 77 if something is missing here that it needs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import guest
import packages

TOP = Path(__file__).parents[2]
CACHE = TOP / "target/roce-test"
OUT = TOP / "out/roce-test"


def main() -> int:
    """Build, boot, judge."""
    start = time.monotonic()
    OUT.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        root = packages.unpack(CACHE)
        guest.build(root, [], [], CACHE / "initramfs")
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
