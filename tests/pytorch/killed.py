"""Ranks one of which is killed while the others wait for it; how soon they hear of it.

All ranks are forked from one process, which loads PyTorch once.

Usage: python killed.py RANKS FOLDER OPERATION ...; prints a line of JSON for each operation: by
rank that lives, the error and the seconds from the kill to it.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist

DEAD = 1
LIMIT = timedelta(seconds=20)


def lists() -> list[Any]:
    """Room for what all ranks give."""
    return [torch.empty(4) for _ in range(dist.get_world_size())]


OPERATIONS: dict[str, Callable[[], Any]] = {
    "all_reduce": lambda: dist.all_reduce(torch.ones(4)),
    "large_all_reduce": lambda: dist.all_reduce(torch.ones(4_000_000)),
    "broadcast": lambda: dist.broadcast(torch.ones(4), DEAD),
    "reduce": lambda: dist.reduce(torch.ones(4), 0),
    "gather": lambda: dist.gather(torch.ones(4), None if dist.get_rank() else lists()),
    "scatter": lambda: dist.scatter(torch.empty(4), src=DEAD),
    "all_gather": lambda: dist.all_gather(lists(), torch.ones(4)),
    "all_to_all": lambda: dist.all_to_all(lists(), lists()),
    "barrier": dist.barrier,
    "recv": lambda: dist.recv(torch.ones(4), DEAD),
    "recv_with_a_tag": lambda: dist.recv(torch.ones(4), DEAD, tag=3),
    "recv_from_anybody": lambda: dist.recv(torch.ones(4)),
    "large_send": lambda: dist.send(torch.ones(300_000), DEAD),
}


def live(rank: int, size: int, folder: Path, name: str, warm: bool) -> None:
    """Wait for a rank that is killed; it is this one, or it is not."""
    meeting = folder / f"store-{name}"
    dist.init_process_group(
        "weft", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=LIMIT
    )
    if warm:
        # Else no two of them have ever talked.
        dist.barrier()
    died = folder / f"died-{name}"
    if rank == DEAD:
        time.sleep(0.5)
        died.with_suffix(".new").write_text(str(time.monotonic()))
        died.with_suffix(".new").rename(died)
        os.kill(os.getpid(), signal.SIGKILL)
    error = "none"
    try:
        OPERATIONS[name]()
    except dist.DistBackendError as wrong:
        error = str(wrong)
    after_s = time.monotonic() - float(died.read_text()) if died.exists() else -1
    print(json.dumps({"rank": rank, "error": error, "after_s": after_s}), file=sys.stderr)


def main(size: int, folder: Path, names: list[str]) -> None:
    """Do all of them in turn."""
    import weft.torch

    weft.torch.register()
    for number, name in enumerate(names):
        children = {}
        for rank in range(size):
            out = folder / f"{name}-{rank}"
            child = os.fork()
            if not child:
                os.dup2(os.open(out, os.O_CREAT | os.O_WRONLY), 2)
                live(rank, size, folder, name, warm=number % 2 == 0)
                os._exit(0)
            children[child] = out
        for child in children:
            os.waitpid(child, 0)
        texts = [out.read_text().splitlines() for out in children.values()]
        reports = [json.loads(lines[-1]) for lines in texts if lines]
        print(json.dumps({"operation": name, "reports": reports}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(OPERATIONS))
