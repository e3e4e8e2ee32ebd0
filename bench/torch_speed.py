"""Operations of PyTorch over Weft and over Gloo, on one machine: time, and processor time.

Every round starts the ranks of one back end, then those of the other, so that neither has threads
beside the other's. A rank repeats each operation and says how long that took, and how much
processor time; times are rank 0's, processor times are of all ranks.

Needs `make torch-test`'s environment. One record in bench/records/torch-speed, and the table of
docs/torch.md from it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import record

RECORDS = Path(__file__).parent / "records" / "torch-speed"
BACKENDS = ("gloo", "weft")
OPERATIONS = ("all_reduce", "all_to_all_single", "all_gather_into_tensor")
SIZES = {
    "4 KiB": 1 << 12,
    "64 KiB": 1 << 16,
    "1 MiB": 1 << 20,
    "16 MiB": 16 << 20,
    "64 MiB": 64 << 20,
}
"""Bytes that a rank gives."""
MOVED = 40_000_000
"""About so many bytes of a rank are timed, in 5 to 1,000 operations."""


def main() -> int:
    """Measure, print, and keep a record if asked; returns the exit status."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=5, help="of both back ends in turn")
    options.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    options.add_argument("--keep", action="store_true", help="keep the record in bench/records")
    options.add_argument("--table", type=Path, help="print the table of this record")
    options.add_argument("--rank", nargs=4, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.rank:
        backend, rank, ranks, meeting = arguments.rank
        print(json.dumps(be_rank(backend, int(rank), int(ranks), meeting)))
        return 0
    if arguments.table is not None:
        print(table(json.loads(arguments.table.read_text())["rows"]))
        return 0
    words = ["--rounds", str(arguments.rounds), "--ranks", *map(str, arguments.ranks)]
    origin = record.origin_of(["bench/torch_speed.py", *words])
    # Gloo's connections have it.
    origin["tcp_congestion"] = record.tcp_congestion()
    rows = [row for ranks in arguments.ranks for row in measure(ranks, arguments.rounds)]
    print(table(rows))
    if arguments.keep:
        record.keep(RECORDS, origin | {"rows": rows})
    return 0


def measure(ranks: int, rounds: int) -> list[dict[str, Any]]:
    """By operation and size: for each back end, of every round, seconds and processor seconds."""
    rows: list[dict[str, Any]] = [
        {"ranks": ranks, "operation": operation, "size": size}
        | {backend: {"seconds": [], "processor_s": []} for backend in BACKENDS}
        for operation in OPERATIONS
        for size in SIZES
    ]
    for number in range(rounds):
        for backend in BACKENDS if number % 2 == 0 else reversed(BACKENDS):
            said = once(backend, ranks)
            for place, row in enumerate(rows):
                row[backend]["seconds"].append(said[0][place][0])
                row[backend]["processor_s"].append(sum(rank[place][1] for rank in said))
        print(f"{ranks} ranks, round {number + 1} of {rounds}", flush=True)
    return rows


def once(backend: str, ranks: int) -> list[list[tuple[float, float]]]:
    """What each rank says, in the order of ranks."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--rank", backend]
        processes = [
            subprocess.Popen(
                [*command, str(rank), str(ranks), f"{folder}/meeting"],
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        try:
            return [json.loads(process.communicate(timeout=300)[0]) for process in processes]
        finally:
            for process in processes:
                process.kill()


def be_rank(backend: str, rank: int, ranks: int, meeting: str) -> list[tuple[float, float]]:
    """One rank: seconds and processor seconds of each operation and size."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    distributed.init_process_group(
        backend,
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=60),
    )
    said = []
    for operation in OPERATIONS:
        for size in SIZES.values():
            given = torch.ones(size // 4)
            taken = torch.empty(size // 4 * (ranks if operation == "all_gather_into_tensor" else 1))
            operate = getattr(distributed, operation)
            words = (given,) if operation == "all_reduce" else (taken, given)
            said.append(timed(partial(operate, *words), distributed.barrier, size))
    distributed.destroy_process_group()
    return said


def timed(operate: Callable[[], Any], meet: Callable[[], Any], size: int) -> tuple[float, float]:
    """Seconds and processor seconds of one operation, after two that are not timed."""
    runs = max(5, min(1000, MOVED // size))
    for _ in range(2):
        operate()
    meet()
    spent, began = time.process_time(), time.perf_counter()
    for _ in range(runs):
        operate()
    seconds = (time.perf_counter() - began) / runs
    return seconds, (time.process_time() - spent) / runs


def table(rows: list[dict[str, Any]]) -> str:
    """Medians by operation and size: times, and Weft's processor time as a share of Gloo's."""
    counts = sorted({row["ranks"] for row in rows})
    heads = [f"{ranks} ranks: Gloo | Weft | CPU" for ranks in counts]
    lines = [f"| operation | size | {' | '.join(heads)} |", "|---" * (2 + 3 * len(counts)) + "|"]
    for operation in OPERATIONS:
        for size in SIZES:
            cells = [f"`{operation}`", size]
            for ranks in counts:
                asked = {"operation": operation, "size": size, "ranks": ranks}
                cells += compared(next(row for row in rows if asked.items() <= row.items()))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def compared(row: dict[str, Any]) -> list[str]:
    """Gloo's time, Weft's, and how much of Gloo's processor time Weft takes."""
    times = [statistics.median(row[name]["seconds"]) for name in BACKENDS]
    gloo, weft = (statistics.median(row[name]["processor_s"]) for name in BACKENDS)
    return [*(f"{1e6 * seconds:,.0f} us" for seconds in times), f"{weft / gloo:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
