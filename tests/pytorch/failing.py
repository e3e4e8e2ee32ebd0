"""A rank of a group in which rank 1 goes wrong, and what the others hear of it.

Usage: python failing.py RANK RANKS MEETING killed|idle|gone|mismatch|absent|forked; prints
JSON: the error, how long it took to come, and the error of the operation after it.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta

import torch
from torch import distributed as dist


def error_of(operation: Callable[[], object]) -> str:
    """Do it; the error that comes of it."""
    try:
        operation()
    except RuntimeError as error:
        return str(error)
    return "none"


def error_of_all_reduce(elements: int = 4_000_000) -> str:
    """Reduce some megabytes; the error that comes of it."""
    return error_of(lambda: dist.all_reduce(torch.ones(elements)))


def fork(rank: int) -> None:
    """Have rank 0's child do what its parent may, and wait for what that has begun."""
    work = dist.irecv(torch.ones(1), 1) if rank == 0 else None
    if work and not os.fork():
        print(json.dumps([error_of(work.wait), error_of_all_reduce()]), flush=True)
        dist.destroy_process_group()
        os._exit(0)
    if work:
        os.wait()
    dist.barrier()
    if work:
        work.wait()
    elif rank == 1:
        dist.send(torch.ones(1), 0)


def main(rank: int, size: int, meeting: str, how: str) -> None:
    """Go wrong, or hear of it."""
    dist.init_process_group(
        "weft",
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=4),
    )
    dist.barrier()
    if how == "mismatch":
        print(json.dumps({"error": error_of_all_reduce(3 + rank)}))
        return
    if how == "forked":
        fork(rank)
        return
    if how == "absent":
        if rank == 0:
            wrong = error_of(lambda: dist.new_group(timeout=timedelta(seconds=1)))
            print(json.dumps({"error": wrong}))
        dist.barrier()
        return
    if rank == 1:
        if how == "killed":
            work = dist.all_reduce(torch.ones(4_000_000), async_op=True)
            os.kill(os.getpid(), signal.SIGKILL)
            del work
        elif how == "idle":
            time.sleep(8)
        return
    begun = time.monotonic()
    first = error_of_all_reduce()
    after = time.monotonic() - begun
    print(json.dumps({"error": first, "after_s": after, "then": error_of_all_reduce()}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
